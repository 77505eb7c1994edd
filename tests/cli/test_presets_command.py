"""The list of presets: aligned, with results where there are any."""

from command_line import assert_error, call
from tsallax.files import yaml_text
from tsallax.runs import preset_catalogue
from tsallax.runs.preset_catalogue import Preset, PresetResult

MEASURED = Preset(
    "A-v0", 500, {"gamma": 0.9, "net_arch": [8]},
    result=PresetResult(12.5, (11.0, 14.25), 10, 400, "tsallax reproduce classic"),
)  # fmt: skip


def test_presets_are_listed_with_options_and_results(capsys, monkeypatch):
    monkeypatch.setattr(
        preset_catalogue, "all_presets", lambda: (MEASURED, Preset("Bee-v1", 7, {}))
    )
    code, out, err = call(capsys, "presets")
    assert (code, err) == (0, "")
    head, first, second = out.splitlines()
    begins = [head.index(word) for word in ("steps", "result", "command", "options")]
    cells = [first[a:b].strip() for a, b in zip([0, *begins], [*begins, None])]
    assert cells == [
        "A-v0", "500", "12.5 [11, 14.25], 10 seeds, 400 steps", "tsallax reproduce classic",
        "gamma 0.9, net_arch [8]",
    ]  # fmt: skip
    assert second[begins[1] :].startswith("not measured")
    assert second[begins[2] :].startswith("tsallax train Bee-v1 --out DIR")


def test_one_preset_is_printed_as_its_file(capsys):
    code, out, _ = call(capsys, "presets Taxi-v3")
    assert code == 0
    assert yaml_text.parse(out)["options"] == preset_catalogue.preset("Taxi-v4")
    assert_error(call(capsys, "presets Pong"), "unknown preset 'Pong'", "CartPole-v1")
