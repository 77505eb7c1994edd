"""UMB files: umbi agrees with what is written, and damaged members are refused by name."""

import json
from pathlib import Path

import numpy as np
import pytest

from exchange_cases import NO_STORM, example, models, rewritten, with_index
from mdp_checks import same
from tsallax.errors import InvalidInput
from tsallax.planning.mdp import MDP

PRISM_PROGRAM = """mdp
module m
 x:[0..3] init 0;
 b: bool init false;
 [a] x=0 -> 0.5:(x'=1)+0.5:(x'=2);
 [b] x=0 -> 1/3:(x'=2)+2/3:(x'=3)&(b'=true);
 [a] x=1 -> (x'=0);
 [] x>1 -> true;
endmodule
rewards "r"
 [b] true : 1;
 x=1 : 0.25;
endrewards
rewards "steps"
 true : 1;
endrewards
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """The file of the example."""
    path = tmp_path_factory.mktemp("whole") / "mdp.umb"
    example().save(path)
    return path


def storm_model(path: Path, program: str = PRISM_PROGRAM):
    """The model of a PRISM program, as Storm builds it."""
    stormpy = pytest.importorskip("stormpy", reason=NO_STORM)
    path.write_text(program)
    options = stormpy.BuilderOptions(build_full=True)
    return stormpy.build_model(stormpy.parse_prism_program(str(path)), options=options)


@pytest.mark.parametrize("mdp", models().values(), ids=models())
def test_umbi_reads_the_same_model_and_writes_it_back(mdp: MDP, tmp_path: Path):
    umbi = pytest.importorskip("umbi", reason="the reference implementation of UMB")
    mdp.save(tmp_path / "a.umb")
    ats = umbi.ats.read(tmp_path / "a.umb")
    ends = mdp.termination is not None
    assert ats.num_states == mdp.n_states + ends
    assert ats.num_choices == mdp.n_pairs + np.count_nonzero(mdp.terminal) + ends
    umbi.umb.write(umbi.umb.read(tmp_path / "a.umb"), tmp_path / "b.umb")
    again = MDP.load(tmp_path / "b.umb", mdp.discount)
    np.testing.assert_array_equal(again.transitions.toarray(), mdp.transitions.toarray())
    np.testing.assert_array_equal(again.rewards, mdp.rewards)
    np.testing.assert_array_equal(again.terminal, mdp.terminal)
    np.testing.assert_array_equal(again.initial, mdp.initial)
    np.testing.assert_array_equal(again.action_of, mdp.action_of)
    assert again.action_names == mdp.action_names


def test_models_of_storm_are_read_with_their_names_and_rewards(tmp_path: Path):
    model = storm_model(tmp_path / "m.prism")
    import stormpy

    stormpy.io.export_to_umb(model, str(tmp_path / "m.umb"))
    with pytest.raises(
        InvalidInput, match="2 reward structures: give rewards, such as rewards='r'"
    ):
        MDP.load(tmp_path / "m.umb", 0.9)
    mdp = MDP.load(tmp_path / "m.umb", 0.9, rewards="r")
    assert mdp.action_names is not None
    assert mdp.state_names is not None
    chosen = [mdp.action_names[a] for a in mdp.action_of]
    assert chosen == ["a", "b", "a", "unnamed", "unnamed"]
    assert mdp.state_names[0] == "b=false, x=0"
    assert mdp.state_names[3] == "b=true, x=3"
    assert mdp.rewards.tolist() == [0, 1, 0.25, 0, 0]
    assert mdp.initial.tolist() == [1, 0, 0, 0]
    assert MDP.load(tmp_path / "m.umb", 0.9, rewards="steps").rewards.tolist() == [1] * 5
    with pytest.raises(InvalidInput, match="has no reward structure 'cost', but 'r', 'steps'"):
        MDP.load(tmp_path / "m.umb", 0.9, rewards="cost")


def test_rewards_of_states_choices_and_branches_are_added(whole: Path, tmp_path: Path):
    def edit(index: dict) -> None:
        kinds = ["states", "choices", "branches"]
        index["annotations"]["rewards"]["reward"]["applies-to"] = kinds

    place = "annotations/rewards/reward"
    added = {
        f"{place}/states/values.bin": np.array([10.0, 20, 0, 0]).tobytes(),
        f"{place}/branches/values.bin": np.arange(10.0).tobytes(),
    }
    mdp = MDP.load(with_index(whole, tmp_path / "a.umb", edit, added))
    assert not mdp.terminal.any()  # the states with these labels earn something now
    expected = [10 + 1 + 0.5 * 1 + 0.25 * 2, 20 - 2 + 0.1 * 3 + 0.9 * 4, 20 + 3 + 6, 8, 9]
    np.testing.assert_allclose(mdp.rewards, expected, rtol=1e-15)


def test_rational_probabilities_are_read(whole: Path, tmp_path: Path):
    pairs = [(1, 4), (1, 2), (1, 4), (1, 10), (9, 10), (2**61, 3 * 2**61), (1, 3), (1, 3), (1, 1)]
    pairs.append((5, 5))

    def edit(index: dict) -> None:
        index["transition-system"]["branch-probability-type"] = {"type": "rational", "size": 128}

    changed = {"branch-to-probability.bin": np.array(pairs, "<i8").tobytes()}
    assert same(MDP.load(with_index(whole, tmp_path / "a.umb", edit, changed)), example())


@pytest.mark.parametrize(
    ("key", "value", "match"),
    [
        ("time", "stochastic", "time is 'stochastic': only discrete time is read"),
        ("time", None, "time is None"),
        ("#players", 2, "#players is 2: games are not read"),
        ("#observations", 3, "#observations is not 0: partially observable"),
        ("branch-probability-type", {"type": "double-interval"}, "has type 'double-interval'"),
        ("branch-probability-type", {"type": "rational", "size": 256}, "of size 256, not double"),
        ("branch-probability-type", "double", "'branch-probability-type' is not an object"),
        ("#states", 2**62, "branch-to-target.bin|state-to-choices.bin has 40 bytes, not"),
        ("#states", -1, "#states must be an integer of at least 0"),
        ("#states", 1.5, "#states must be an integer of at least 0"),
        ("#states", 0, "#states is 0"),
        ("#branches", 10**15, "branch-to-target.bin has 80 bytes, not"),
        ("#choices", 10**15, "choice-to-branches.bin has 48 bytes, not"),
        ("#choice-actions", 1, "names action 2 of 1"),
        ("#initial-states", 3, "state-is-initial.bin has 2 states, but #initial-states is 3"),
    ],
)
def test_other_models_and_wrong_counts_are_refused(key, value, match, whole: Path, tmp_path: Path):
    def edit(index: dict) -> None:
        index["transition-system"][key] = value
        index["annotations"].pop("tsallax")

    path = with_index(whole, tmp_path / "a.umb", edit)
    with pytest.raises(InvalidInput, match=match) as caught:
        MDP.load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("member", "content", "match"),
    [
        ("branch-to-target.bin", np.full(10, 9, "<u8"), "branch 0 leads to state 9, not 0 to 3"),
        ("branch-to-target.bin", None, "branch-to-target.bin is missing"),
        ("branch-to-probability.bin", np.full(10, np.nan), "of reaching state 0 is nan"),
        ("branch-to-probability.bin", np.full(10, 0.3), "sum to"),
        ("state-to-choices.bin", np.array([0, 3, 1, 4, 5], "<u8"), "does not rise from 0 to 5"),
        ("state-to-choices.bin", np.array([0, 2**63, 3, 4, 5], "<u8"), "does not rise from 0 to 5"),
        ("choice-to-branches.bin", np.array([1, 3, 5, 8, 9, 10], "<u8"), "does not rise from 0"),
        ("choice-to-branches.bin", None, "choice-to-branches.bin is missing"),
        ("state-is-initial.bin", b"", "has 0 bytes for 4 bits"),
        ("actions/choices/strings.bin", b"\xff\xff\xff\xff\xff\xff\xff", "is not UTF-8"),
        ("actions/choices/string-mapping.bin", b"", "has 0 bytes, not 32"),
        ("annotations/rewards/reward/choices/values.bin", None, "choices/values.bin is missing"),
        ("annotations/aps/terminal/states/values.bin", None, "states/values.bin is missing"),
        ("annotations/rewards/reward/choices/values.bin", np.full(5, np.inf), "reward of state 0"),
        ("index.json", b"[" * 100_000, "index.json: "),
        ("index.json", b"[]", "index.json is not a JSON object"),
        ("index.json", b"\xff", "index.json: "),
        ("index.json", b" " * (1 << 23), "index.json has more than 4194304 bytes"),
        ("index.json", None, "not a UMB file: index.json is missing"),
        ("index.json", b'{"format-version": 2}', r"format-version 2 is not one of"),
    ],
)  # fmt: skip
def test_damaged_members_are_refused_by_name(member, content, match, whole: Path, tmp_path: Path):
    def edit(members: dict[str, bytes]) -> None:
        members[member] = b"" if content is None else bytes(content)
        if content is None:
            del members[member]
        members.pop("annotations/tsallax/initial/states/values.bin", None)
        if member != "index.json":
            index = json.loads(members["index.json"])
            del index["annotations"]["tsallax"]
            members["index.json"] = json.dumps(index).encode()

    path = rewritten(whole, edit, tmp_path / "a.umb")
    with pytest.raises(InvalidInput, match=match) as caught:
        MDP.load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["0.9", True, None, [], 2, 10**400, float("nan")])
def test_a_discount_that_is_none_is_refused(value, whole: Path, tmp_path: Path):
    def edit(index: dict) -> None:
        index["file-data"]["parameters"]["discount"] = value

    with pytest.raises(InvalidInput, match="discount"):
        MDP.load(with_index(whole, tmp_path / "a.umb", edit))


def test_deep_and_long_values_are_refused_in_short_lines(whole: Path, tmp_path: Path):
    for value in ("[" * 400 + "]" * 400, '"' + "x" * 10**6 + '"'):

        def edit(members: dict[str, bytes], value: str = value) -> None:
            text = members["index.json"].decode()
            members["index.json"] = text.replace('"discrete"', value).encode()

        with pytest.raises(InvalidInput, match="time is") as caught:
            MDP.load(rewritten(whole, edit, tmp_path / "a.umb"))
        assert len(str(caught.value)) < 500


def test_a_model_without_rewards_is_refused(whole: Path, tmp_path: Path):
    path = with_index(whole, tmp_path / "a.umb", lambda index: index["annotations"].pop("rewards"))
    with pytest.raises(InvalidInput, match="the model has no rewards"):
        MDP.load(path)
