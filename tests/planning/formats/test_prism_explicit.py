"""PRISM's explicit files, with the variants that Storm reads."""

from pathlib import Path

import numpy as np
import pytest

from exchange_cases import NO_STORM, example, models
from mdp_checks import optimal_values, same
from tsallax import problems
from tsallax.errors import InvalidInput
from tsallax.planning.formats import text_lines
from tsallax.planning.mdp import MDP

FILES = {
    ".tra": "4 5 7\n0 0 1 0.5 a\n0 0 2 0.5 a\n0 1 2 0.25 b\n0 1 3 0.75 b\n"
    "1 0 0 1 a\n2 0 2 1\n3 0 3 1\n",
    ".lab": '0="init" 1="deadlock" 2="goal"\n0: 0\n3: 2\n',
    ".sta": "(b,x)\n0:(false,0)\n1:(false,1)\n2:(false,2)\n3:(true,3)\n",
    ".srew": '# Reward structure "r"\n# State rewards\n4 1\n1 0.25\n',
    ".trew": "4 5 2\n0 1 2 1\n0 1 3 2\n",
}
"""A model as PRISM 4.8 exports it."""


def written(folder: Path, **changes: str) -> Path:
    """The files of a model, some of them changed."""
    for ending, text in {**FILES, **{f".{key}": text for key, text in changes.items()}}.items():
        (folder / f"m{ending}").write_text(text)
    return folder / "m.tra"


def test_what_prism_writes_is_read(tmp_path: Path):
    mdp = MDP.load(written(tmp_path), 0.9)
    assert mdp.action_names == ("a", "b", "unnamed")
    assert mdp.state_names == ("b=false, x=0", "b=false, x=1", "b=false, x=2", "b=true, x=3")
    assert mdp.rewards.tolist() == [0, 1.75, 0.25, 0, 0]
    assert mdp.initial.tolist() == [1, 0, 0, 0]
    assert mdp.transitions.toarray()[1].tolist() == [0, 0, 0.25, 0.75]


@pytest.mark.parametrize("block", [64, 1 << 22])
@pytest.mark.parametrize("mdp", models().values(), ids=models())
def test_files_hold_the_whole_mdp_but_for_the_discount(
    mdp: MDP, block, tmp_path: Path, monkeypatch
):
    monkeypatch.setattr(text_lines, "BLOCK", block)
    mdp.save(tmp_path / "a.tra")
    assert same(MDP.load(tmp_path / "a.tra", mdp.discount), mdp)
    with pytest.raises(InvalidInput, match="holds no discount: give discount"):
        MDP.load(tmp_path / "a.tra")


def test_files_of_an_older_model_are_replaced(tmp_path: Path):
    path = written(tmp_path)
    mdp = MDP([[[0.5, 0.5], [1, 0]], [[0, 1], [1, 0]]], [[1, 2], [3, 4]], 0.9)
    mdp.save(path)
    assert same(MDP.load(path, 0.9), mdp)


@pytest.mark.parametrize("mdp", models().values(), ids=models())
def test_storm_finds_the_same_values(mdp: MDP, tmp_path: Path):
    stormpy = pytest.importorskip("stormpy", reason=NO_STORM)
    rewards = mdp.rewards - mdp.rewards.min() + 1  # Storm takes no negative ones from these files
    mdp = MDP(
        mdp.transitions, rewards, mdp.discount, terminal=mdp.terminal, termination=mdp.termination,
        pairs=np.stack([mdp.state_of, mdp.action_of], axis=1),
    )  # fmt: skip
    mdp.save(tmp_path / "a.tra")
    for ending in (".tra", ".trew"):
        text = (tmp_path / f"a{ending}").read_text()
        (tmp_path / f"a{ending}").write_text("mdp\n" + text.split("\n", 1)[1])
    (tmp_path / "a.lab").write_text("#DECLARATION\ninit terminal\n#END\n0 init\n")
    (tmp_path / "a.srew").write_text("")
    files = (str(tmp_path / name) for name in ("a.tra", "a.lab"))
    model = stormpy.build_model_from_explicit(*files, transition_rewards=str(tmp_path / "a.trew"))
    formula = f"Rmax=? [Cdiscount={mdp.discount}]"
    found = stormpy.model_checking(model, stormpy.parse_property(formula)).get_value_vector()
    np.testing.assert_allclose(found[: mdp.n_states], optimal_values(mdp), rtol=1e-5)
    again = MDP.load(tmp_path / "a.tra", mdp.discount)
    np.testing.assert_allclose(
        optimal_values(again)[: mdp.n_states], optimal_values(mdp), atol=1e-12
    )
    assert again.initial[0] == 1


def test_lines_in_any_order_and_chains_are_read(tmp_path: Path):
    lines = FILES[".tra"].splitlines()
    shuffled = "\n".join([lines[0], *reversed(lines[1:])])
    mdp = MDP.load(written(tmp_path, tra=shuffled), 0.9)
    assert mdp.rewards.tolist() == [0, 1.75, 0.25, 0, 0]
    assert mdp.transitions.toarray()[1].tolist() == [0, 0, 0.25, 0.75]
    chain = written(tmp_path, tra="2 3\n0 0 0.5\n0 1 0.5\n1 1 1\n", lab='0="init"\n0: 0\n',
                    sta="(x)\n0:(0)\n1:(1)\n", srew="2 1\n0 3\n", trew="2 1\n0 1 2\n")  # fmt: skip
    mdp = MDP.load(chain, 0.9)
    assert mdp.n_actions == 1
    assert mdp.rewards.tolist() == [4, 0]


def test_a_state_without_transitions_is_terminal(tmp_path: Path):
    tra = FILES[".tra"].replace("4 5 7", "4 4 6").replace("3 0 3 1\n", "")
    assert MDP.load(written(tmp_path, tra=tra), 0.9).terminal.tolist() == [False] * 3 + [True]


def test_one_of_several_reward_files_is_chosen(tmp_path: Path):
    path = written(tmp_path)
    (tmp_path / "m2.srew").write_text("4 1\n0 7\n")
    assert MDP.load(path, 0.9, rewards="2").rewards.tolist() == [7, 7, 0, 0, 0]
    with pytest.raises(InvalidInput, match=r"no rewards: m3.srew and .trew are missing"):
        MDP.load(path, 0.9, rewards="3")
    with pytest.raises(InvalidInput, match="part of a file's name"):
        MDP.load(path, 0.9, rewards="/../x")


@pytest.mark.parametrize(
    ("ending", "old", "new", "match"),
    [
        ("tra", "4 5 7", "ctmc", "line 1: 'ctmc' is no MDP's header"),
        ("tra", "4 5 7", "4 5 7 8", "line 1: not a header"),
        ("tra", "4 5 7", "999999999999 5 7", "line 1: 999999999999 entries in"),
        ("tra", "4 5 7", "3 5 7", "names state 3, but there are 3 states"),
        ("tra", "4 5 7", "4 6 7", "has 5 choices, but its header says 6"),
        ("tra", "4 5 7", "4 5 8", "has 7 transitions, but its header says 8"),
        ("tra", "1 0 0 1 a", "1 0 0", "line 6: not 4 numbers and a label"),
        ("tra", "1 0 0 1 a", "1 0 0 1 a b", "line 6: not 4 numbers and a label"),
        ("tra", "1 0 0 1 a", "1 0 -3 1 a", "line 6: a state or choice is negative"),
        ("tra", "1 0 0 1 a", "1 0 x 1 a", "line 6: a state or choice is not a number"),
        ("tra", "1 0 0 1 a", "1 0 0 nan a", "state 1, choice 0: the probability"),
        ("tra", "1 0 0 1 a", "1 0 0 abc a", "a probability or a reward is not a number: 'abc'$"),
        ("tra", "1 0 0 1 a", "1 0 0 0.9 a", "sum to 0.9, not to 1; the file may be damaged"),
        ("lab", '0="init" 1', "init 1", "m.lab: line 1: not a list of labels"),
        ("lab", "3: 2", "9: 2", "m.lab: line 3: no state of 4"),
        ("lab", "3: 2", "x: 2", "m.lab: line 3: a state is not a number"),
        ("lab", '0="init"', '#DECLARATION 0="init"', "m.lab: #END is missing"),
        ("sta", "(b,x)", "b,x", "m.sta: line 1: not a list of variables"),
        ("sta", "1:(false,1)", "1:(false)", "m.sta: line 3: 1 values of 2"),
        ("sta", "1:(false,1)", "7:(false,1)", "m.sta: line 3: not one of 4 states"),
        ("srew", "1 0.25", "4 0.25", "m.srew: line 4: no state of 4"),
        ("srew", "1 0.25", "1 x", "m.srew: line 4: a reward is not a number"),
        ("srew", "1 0.25", "1 2 3", "m.srew: line 4: not a state and its reward"),
        ("srew", "1 0.25", "1 inf", "is not finite"),
        ("trew", "0 1 2 1", "0 1 1 1", "m.trew: .* reward of a transition that does not exist"),
        ("trew", "0 1 2 1", "0 1 3 1", "m.trew: holds the reward of a transition twice"),
        ("trew", "0 1 2 1", "0 2 2 1", "m.trew: state 0 has no choice 2"),
        ("trew", "0 1 2 1", "9 1 2 1", "m.trew: names state 9 of 4"),
    ],
)
def test_damaged_lines_are_refused_by_file_and_number(ending, old, new, match, tmp_path: Path):
    assert old in FILES[f".{ending}"]
    path = written(tmp_path, **{ending: FILES[f".{ending}"].replace(old, new, 1)})
    with pytest.raises(InvalidInput, match=match) as caught:
        MDP.load(path, 0.9)
    assert "\n" not in str(caught.value)


def test_what_the_files_cannot_hold_is_refused(tmp_path: Path):
    with pytest.raises(InvalidInput, match=r"probabilities that differ: save as .umb or .drn"):
        example().save(tmp_path / "a.tra")
    spaced = MDP([[[1.0]]], [[2.0]], 0.5, action_names=["go on"])
    with pytest.raises(InvalidInput, match=r"cannot hold the name 'go on': save as .umb"):
        spaced.save(tmp_path / "a.tra")
    lines = MDP([[[1.0]]], [[2.0]], 0.5, state_names=["a\nb"])
    with pytest.raises(InvalidInput, match="cannot hold the name"):
        lines.save(tmp_path / "a.tra")
    number = MDP([[[1.0]]], [[2.0]], 0.5, action_names=["7"])
    with pytest.raises(InvalidInput, match="cannot hold the name '7'"):
        number.save(tmp_path / "a.tra")
    assert list(tmp_path.iterdir()) == []


def test_rewards_whose_file_is_missing_are_not_zero(tmp_path: Path):
    problems.forest().save(tmp_path / "model.tra")
    (tmp_path / "model.trew").unlink()
    with pytest.raises(InvalidInput, match=r"no rewards: model.srew is empty and .trew missing"):
        MDP.load(tmp_path / "model.tra", discount=0.9)
    (tmp_path / "model.srew").unlink()
    with pytest.raises(InvalidInput, match=r"no rewards: model.srew and .trew are missing"):
        MDP.load(tmp_path / "model.tra", discount=0.9)
