"""DRN files: what Storm writes is read, and damaged lines are refused."""

from pathlib import Path

import pytest

from tsallax import problems
from tsallax.errors import InvalidInput
from tsallax.planning.mdp import MDP

BY_STORM = """// Exported by storm
// Original model type: MDP
@type: MDP
@value_type: double
@parameters

@reward_models
r steps
@nr_states
4
@nr_choices
5
@model
state 0 [0, 1] init
//[!b\t& x=0]
\taction a [0, 0]
\t\t1 : 0.5
\t\t2 : 0.5
\taction b [1, 0]
\t\t2 : 1/3
\t\t3 : 2/3
state 1 [0.25, 1] "init" "two words"
//[!b\t& x=1]
\taction a [0, 0]
\t\t0 : 1
state 2 [0, 1]
//[!b\t& x=2]
\taction __NOLABEL__ [0, 0]
\t\t2 : 1
state 3 [0, 1] goal
//[b\t& x=3]
\taction __NOLABEL__ [0, 0]
\t\t3 : 1
"""


@pytest.fixture
def by_storm(tmp_path: Path) -> Path:
    path = tmp_path / "storm.drn"
    path.write_text(BY_STORM)
    return path


def test_what_storm_writes_is_read(by_storm: Path):
    mdp = MDP.load(by_storm, 0.9, rewards="r")
    assert mdp.action_names == ("a", "b", "unnamed")
    assert mdp.state_names == ("[!b & x=0]", "[!b & x=1]", "[!b & x=2]", "[b & x=3]")
    assert mdp.rewards.tolist() == [0, 1, 0.25, 0, 0]
    assert mdp.initial.tolist() == [0.5, 0.5, 0, 0]
    assert mdp.transitions.toarray()[1].tolist() == [0, 0, 1 / 3, 2 / 3]
    assert MDP.load(by_storm, 0.9, rewards="steps").rewards.tolist() == [1] * 5
    with pytest.raises(
        InvalidInput, match="has 2 reward structures: give rewards, such as rewards='r'"
    ):
        MDP.load(by_storm, 0.9)
    with pytest.raises(InvalidInput, match="has no reward structure 'cost', but r, steps"):
        MDP.load(by_storm, 0.9, rewards="cost")
    with pytest.raises(InvalidInput, match="holds no discount: give discount"):
        MDP.load(by_storm, rewards="r")


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("@type: MDP", "@type: Markov Automaton", "@type is 'Markov Automaton': only MDP is read"),
        ("@type: MDP\n", "", "@type is 'missing'"),
        ("@value_type: double", "@value_type: double-interval", "@value_type is 'double-interval'"),
        ("@parameters\n\n", "@parameters\np q\n", "@parameters is not empty"),
        ("@reward_models\nr steps", "@reward_models\n", "the model has no rewards"),
        ("@nr_states\n4", "@nr_states\n5", "has 4 states, but @nr_states is 5"),
        ("@nr_states\n4", "@nr_states\n999999999999999", "but @nr_states is 999999999999999"),
        ("@nr_states\n4", "@nr_states\n-4", "line 10 is not a count"),
        ("@nr_states\n4\n", "", "@nr_states is missing"),
        ("@nr_choices\n5", "@nr_choices\n6", "has 5 choices, but @nr_choices is 6"),
        ("@model", "@placeholders", "line 13: '@placeholders' is not read"),
        ("@model", "", "line 14: 'state 0 .*' is not read"),
        ("2 : 0.5", "4 : 0.5", "line 18: a target is not below 4"),
        ("2 : 0.5", "-2 : 0.5", "line 18: neither state, action nor branch"),
        ("2 : 0.5", "2 : nan", "state 0, choice 0: the probability of reaching state 2 is nan"),
        ("2 : 0.5", "2 : [0.1, 0.9]", "line 18: not of the form target : probability"),
        ("2 : 0.5", "2 : 0.5 : 1", "line 18: not of the form target : probability"),
        ("2 : 0.5", "2 0.5", "line 18: not of the form target : probability"),
        ("2 : 0.5", "2 :: 0.5", "line 18: not of the form target : probability"),
        ("2 : 0.5", "2 : half", "line 18: a probability is not a number"),
        ("2 : 0.5", "2 : 0.4", "sum to 0.9"),
        ("1/3", "1/0", "is nan"),
        ("\taction b [1, 0]", "\taction b [1]", "line 19: not an action with 2 rewards"),
        ("\taction b [1, 0]", "\taction b [1, x]", "state 0, .* is not finite|sum to"),
        ("\taction b [1, 0]", "\taction b [x, 0]", "line 19: a reward is not a number"),
        ("\taction b [1, 0]", "\taction b [inf, 0]", "reward of state 0.* is not finite"),
        ("\taction a [0, 0]", "\tactive a [0, 0]", "line 16: not an action with 2 rewards"),
        ("\taction a [0, 0]\n", "", "line 16: a branch without an action"),
        ("state 0 [0, 1] init\n", "", "an action without a state"),
        ("state 1 ", "state 2 ", "line 22: state 2 where state 1 is due"),
        ("state 1 ", "state x ", "line 22: not a state with rewards and labels"),
        ("state 1 [0.25, 1]", "state 1 [0.25]", "line 22: 1 rewards instead of 2"),
        ("state 1 [0.25, 1]", "state 1 [x, 1]", "line 22: a reward is not a number"),
    ],
)
def test_damaged_lines_are_refused_by_number(old, new, match, by_storm: Path):
    assert old in BY_STORM
    by_storm.write_text(BY_STORM.replace(old, new, 1))
    if new == "\taction b [1, x]":  # a column that is not asked for
        assert MDP.load(by_storm, 0.9, rewards="r").n_pairs == 5
        return
    with pytest.raises(InvalidInput, match=match) as caught:
        MDP.load(by_storm, 0.9, rewards=None if "no rewards" in match else "r")
    assert str(caught.value).startswith(f"{by_storm}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("// discount: x", "line 1: discount is damaged"),
        ("// discount: 2", "the discount in the file is not a number"),
        ('// action_names: ["\\ud800"]', "line 1: action_names is damaged"),
        ("// action_names: [1]", "line 1: action_names is damaged"),
        ("// action_names: " + "[" * 10_000, "line 1: action_names is damaged"),
        ("// action_names: []", "is not among the names of the actions"),
    ],
)
def test_damaged_comments_of_tsallax_are_refused(line, match, by_storm: Path):
    by_storm.write_text(f"{line}\n{BY_STORM}")
    with pytest.raises(InvalidInput, match=match):
        MDP.load(by_storm, 0.9, rewards="r")


def test_a_long_file_without_a_model_is_refused_early(tmp_path: Path):
    (tmp_path / "a.drn").write_bytes(b"\n" * (1 << 20))
    with pytest.raises(InvalidInput, match="not a DRN file: no @model in its first 10000 lines"):
        MDP.load(tmp_path / "a.drn")


def test_long_lines_of_blanks_are_refused_without_delay(by_storm: Path):
    blanks = " " * 1_000_000
    by_storm.write_text(BY_STORM.replace("state 1 [0.25, 1]", f"state 1 {blanks} ] {blanks}"))
    with pytest.raises(InvalidInput, match="line 22: not a state"):
        MDP.load(by_storm, 0.9, rewards="r")


def test_files_that_are_cut_off_are_refused_without_arguments_of_python(tmp_path: Path):
    file = tmp_path / "m.drn"
    problems.gridworld(3).save(file)
    text = file.read_text()
    file.write_text(text[: text.rindex("\n", 0, -1) + 1])
    with pytest.raises(InvalidInput, match=r"sum to 0, not to 1; the file may be .* cut off$"):
        MDP.load(file)
