"""States and actions are found by index or name; an unknown name is refused with the nearest."""

import numpy as np
import pandas as pd
import pytest

from tsallax import MDP, InvalidInput, evaluate, problems
from tsallax.planning import names
from tsallax.planning.names import Index, names_in

STATES = ("working", "worn", "broken")
ACTIONS = ("run", "repair")


def machine(**options) -> MDP:
    """A machine that wears out; a broken one can only be repaired."""
    rows = [[0.9, 0.1, 0], [1, 0, 0], [0, 0.8, 0.2], [1, 0, 0], [0.5, 0, 0.5]]
    pairs = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 1)]
    named = {"state_names": STATES, "action_names": ACTIONS}
    return MDP(rows, [3.0, 1, 2, 0, -1], 0.9, pairs=pairs, **{**named, **options})


@pytest.mark.parametrize(
    ("initial", "expected"),
    [
        ("worn", [0, 1, 0]),
        (np.str_("worn"), [0, 1, 0]),
        ({"working": 1.0}, [1, 0, 0]),
        ({"working": 0.25, 2: 0.75}, [0.25, 0, 0.75]),
        ({0: 1}, [1, 0, 0]),
    ],
)
def test_the_start_is_given_by_name(initial, expected):
    assert machine(initial=initial).initial.tolist() == expected


@pytest.mark.parametrize(
    "terminal", ["broken", ["broken"], {"broken"}, {2}, np.array(["broken"]), ("broken", 2)]
)
def test_terminal_states_are_given_by_name(terminal):
    assert machine(terminal=terminal).terminal.tolist() == [False, False, True]


@pytest.mark.parametrize(
    "policy",
    [
        ["run", "repair", "repair"],
        ("run", 1, "repair"),
        np.array(["run", "repair", "repair"]),
        {"working": "run", "worn": "repair", "broken": "repair"},
        {0: 0, 1: "repair", "broken": 1},
        {"working": {"run": 1.0}, "worn": {"run": 0.0, "repair": 1.0}, "broken": {1: 1}},
    ],
    ids=str,
)
def test_a_policy_by_names_is_that_by_indices(policy):
    expected = evaluate(machine(), [0, 1, 1])
    assert np.array_equal(evaluate(machine(), policy).value, expected.value)


def test_probabilities_of_named_actions_are_those_of_the_table():
    policy = {"working": {"run": 0.25, "repair": 0.75}, "worn": "run", "broken": "repair"}
    table = [[0.25, 0.75], [1, 0], [0, 1]]
    found, expected = (evaluate(machine(), p) for p in (policy, table))
    assert np.array_equal(found.value, expected.value)
    assert np.array_equal(found.state_action_visitation, expected.state_action_visitation)


def test_terminal_states_need_no_action():
    mdp = machine(terminal="broken")
    expected = evaluate(mdp, [0, 0, 0]).value
    for policy in (["run", "run", None], {"working": "run", "worn": "run"}, ["run", "run", "x"]):
        assert np.array_equal(evaluate(mdp, policy).value, expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"initial": "wrking"}, r"initial names state 'wrking': did you mean 'working'\?"),
        ({"initial": "x"}, "initial names state 'x', which is none of its states"),
        ({"initial": "a", "state_names": None}, "no state_names: give its index"),
        ({"initial": {"worn": 0.5}}, "initial probabilities sum to 0.5"),
        ({"initial": {"worn": 0.5, 1: 0.5}}, "a state twice"),
        ({"initial": {"worn": "half"}}, "initial must be real numbers"),
        ({"initial": {"worn": [1.0]}}, "one probability for each state"),
        ({"initial": {1.5: 1.0}}, "initial names state 1.5: give an index or a name"),
        ({"initial": {7: 1.0}}, "initial names state 7, not 0 to 2"),
        ({"terminal": ["broke"]}, r"terminal names state 'broke': did you mean 'broken'\?"),
        ({"terminal": ["broken", -1]}, "terminal names state -1, not 0 to 2"),
    ],
)
def test_an_unknown_state_is_refused_with_the_nearest(options, message):
    with pytest.raises(InvalidInput, match=message):
        machine(**options)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (["run", "repare", "repair"], r"state 'worn' names action 'repare': did you .* 'repair'\?"),
        (["run", "run", "run"], "state 'broken' has no action 'run'"),
        ({0: 0, 1: 0, 2: 0}, "state 'broken' has no action 'run'"),
        (["run", "run"], "one for each of 3 states, not 2"),
        ({"working": "run", "worn": "run"}, "the policy has no action for state 'broken'"),
        ({"wornn": "run"}, r"the policy names state 'wornn': did you mean 'worn'\?"),
        ({"worn": "run", 1: "run"}, "has state 'worn' twice"),
        ({"working": {"run": "x"}}, "must be an action or a dict of probabilities"),
        ({"working": [0.5, 0.5]}, r"names action \[0.5, 0.5\]: give an index or a name"),
        ({0: {0: -1.0, 1: 2.0}, 1: 0, 2: 1}, "probability of action 'run' in .* is -1.0"),
        ({0: {0: 0.5}, 1: 0, 2: 1}, "state 'working' sums to 0.5"),
    ],
)
def test_an_unknown_action_is_refused_with_the_nearest(policy, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        evaluate(machine(), policy)
    assert "\n" not in str(caught.value)


def test_without_names_indices_are_asked_for():
    with pytest.raises(InvalidInput, match="no state_names: give its index"):
        evaluate(problems.forest(), {"young": "wait"})


def test_only_so_many_names_are_compared(monkeypatch):
    monkeypatch.setattr(names, "MAX_COMPARED", 2)
    with pytest.raises(InvalidInput, match="none of its states"):
        Index("state", 3, STATES).find("broke", "initial")


def test_what_holds_no_name_is_not_listed():
    for values in ("run", 3, [0, 1], None, np.zeros(3), np.array([["run"]]), [[0.5, 0.5]]):
        assert names_in(values) is None


def labelled(table, states=("broken", "working", "worn"), actions=("repair", "run")):
    """A DataFrame whose rows and columns have the names in another order than the MDP."""
    places = [STATES.index(s) for s in states], [ACTIONS.index(a) for a in actions]
    return pd.DataFrame(np.asarray(table)[np.ix_(*places)], index=states, columns=actions)


def test_labels_of_pandas_are_put_into_the_order_of_the_names():
    rng, names_of = np.random.default_rng(0), {"state_names": STATES, "action_names": ACTIONS}
    p, r, ends = rng.dirichlet(np.ones(3), (3, 2)), rng.normal(size=(3, 2)), np.full((3, 2), 0.25)
    d = np.array([0.2, 0.3, 0.5])
    plain = MDP(0.75 * p, r, 0.9, d, termination=ends + 0.0, **names_of)
    given = MDP(
        0.75 * p, labelled(r), 0.9, pd.Series(d, STATES)[::-1],
        termination=labelled(ends), **names_of,
    )  # fmt: skip
    assert np.array_equal(given.rewards, plain.rewards)
    assert np.array_equal(given.initial, plain.initial)
    assert np.array_equal(given.termination, plain.termination)
    policy = rng.dirichlet(np.ones(2), 3)
    expected = evaluate(plain, policy).value
    assert np.array_equal(evaluate(plain, labelled(policy)).value, expected)
    actions = pd.Series(["run", "repair", "run"], index=STATES)
    expected = evaluate(plain, ["run", "repair", "run"]).value
    assert np.array_equal(evaluate(plain, actions[::-1]).value, expected)
    assert MDP(p, 0 * r, 0.9, terminal=pd.Index(["broken"]), **names_of).terminal.tolist() == [
        name == "broken" for name in STATES
    ]


def test_labels_that_are_no_names_are_refused_or_not_looked_at():
    table = np.arange(6.0).reshape(3, 2)
    with pytest.raises(InvalidInput, match="rewards names state 'brokn': did you mean 'broken'"):
        names.in_order_of_names(
            labelled(table).rename(index={"broken": "brokn"}), "rewards", *indices()
        )
    for wrong, message in (
        (labelled(table)[:2], "rewards lacks state 'worn'"),
        (labelled(table)[["run"]], "rewards lacks action 'repair'"),
        (labelled(table).iloc[[0, 1, 2, 2]], "rewards holds a state twice"),
    ):
        with pytest.raises(InvalidInput, match=message):
            names.in_order_of_names(wrong, "rewards", *indices())
    unnamed = Index("state", 3, None), Index("action", 2, None)
    for given, axes in (
        (labelled(table), unnamed),
        (pd.DataFrame(table), indices()),
        (table, indices()),
    ):
        assert np.array_equal(names.in_order_of_names(given, "rewards", *axes), np.asarray(given))


def indices():
    return Index("state", 3, STATES), Index("action", 2, ACTIONS)
