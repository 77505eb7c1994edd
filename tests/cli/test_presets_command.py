"""The list of presets: aligned, with results where there are any."""

from command_line import assert_error, call
from tsallax.files import yaml_text
from tsallax.runs import preset_catalogue
from tsallax.runs.preset_catalogue import Preset, PresetResult

MEASURED = Preset(
    "A-v0", 500, {"gamma": 0.9, "net_arch": [8]},
    result=PresetResult(12.5, (11.0, 14.25), 10, 400, "tsallax reproduce classic"),
)  # fmt: skip


def test_presets_are_listed_with_results_in_lines_that_fit_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(
        preset_catalogue,
        "all_presets",
        lambda: (MEASURED, Preset("Bee-v1", 7, {}), Preset("most", 5, {}, purpose="the others")),
    )
    code, out, err = call(capsys, "presets")
    assert (code, err) == (0, "")
    head, first, second, third, _, remark = out.splitlines()
    begins = [head.index(word) for word in ("steps", "result")]
    cells = [first[a:b].strip() for a, b in zip([0, *begins], [*begins, None])]
    assert cells == ["A-v0", "500", "12.5 [11, 14.25], 10 seeds, 400 steps"]
    assert second[begins[1] :] == "not measured"
    assert third[begins[1] :] == "the others"
    assert remark.endswith("tsallax presets NAME")


def test_the_lines_of_all_presets_fit_a_terminal(capsys):
    _, out, _ = call(capsys, "presets")
    assert max(map(len, out.splitlines())) <= 92


def test_one_preset_is_printed_as_its_file(capsys):
    code, out, _ = call(capsys, "presets Taxi-v3")
    assert code == 0
    assert yaml_text.parse(out)["options"] == preset_catalogue.preset("Taxi-v4")
    assert_error(call(capsys, "presets Pong"), "unknown preset 'Pong'", "CartPole-v1")
