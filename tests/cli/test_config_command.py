"""`tsallax config` prints complete, commented YAML which it reads back unchanged."""

import dataclasses
from pathlib import Path

import pytest

from command_line import OLD_RUN, assert_error, call
from tsallax.deep.learners import LEARNERS
from tsallax.files import yaml_text
from tsallax.runs import settings


@pytest.mark.parametrize("algorithm", [*LEARNERS])
def test_every_option_is_printed_with_its_default_and_its_help(capsys, algorithm):
    code, out, err = call(capsys, f"config --algorithm {algorithm}")
    assert (code, err) == (0, "")
    values = yaml_text.parse(out)
    config_class = LEARNERS[algorithm].Config
    for field in (*dataclasses.fields(settings.Run), *dataclasses.fields(config_class)):
        line = next(line for line in out.splitlines() if line.startswith(f"{field.name}:"))
        assert line.endswith(f"# {field.metadata['help']}")
    assert settings.from_flat(values) == settings.from_flat({"algorithm": algorithm})


def test_a_file_is_completed_and_printed_again_unchanged(tmp_path: Path, capsys):
    given = "env: Reacher-v5\nactions: [5, 7]\nalpha: 1:0.1:50\nlearning_rate: 1e-3\nnet_arch: 32\n"
    (tmp_path / "a.yaml").write_text(given)
    changes = "--set max_grad_norm=10 --set env_options={}"
    code, out, _ = call(capsys, f"config {tmp_path / 'a.yaml'} {changes}")
    assert code == 0
    (tmp_path / "b.yaml").write_text(out)
    assert call(capsys, f"config {tmp_path / 'b.yaml'}") == (0, out, "")
    found = settings.from_flat(yaml_text.read(tmp_path / "b.yaml"))
    assert found.run.actions == (5, 7)
    assert (found.config.alpha, found.config.net_arch) == ((1.0, 0.1, 50), (32,))
    assert (found.config.learning_rate.end, found.config.max_grad_norm) == (1e-3, 10.0)
    assert "(default: 0.0001)" in out


def test_a_file_of_version_0_1_is_printed_with_the_current_names(capsys):
    code, out, _ = call(capsys, f"config {OLD_RUN / 'config.yaml'}")
    values = yaml_text.parse(out)
    assert code == 0
    assert (values["net_arch"], values["buffer_size"]) == ([8], 256)
    assert "hidden" not in values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("alpha: [0.1\n", "not YAML"),
        ("alhpa: 0.1\n", "did you mean alpha?"),
        ("explore: tsallis\n", "--set explore_q=1.5"),
        (None, "no such file"),
    ],
)
def test_a_wrong_file_is_named_in_one_line(tmp_path: Path, capsys, text, message):
    path = tmp_path / "a.yaml"
    if text is not None:
        path.write_text(text)
    assert_error(call(capsys, f"config {path}"), f"{path}: ", message)


@pytest.mark.parametrize("words", ["--set batch_size=0", "--set batch=64", "--algorithm dqn"])
def test_a_wrong_option_is_one_line(capsys, words):
    assert_error(call(capsys, f"config {words}"), words.split("=")[0].split()[-1])
