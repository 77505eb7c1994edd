"""States and actions are found by index or name; an unknown name is refused with the nearest."""

import numpy as np
import pandas as pd
import pytest

from tsallax import MDP, Hard, InvalidInput, Soft, bellman, evaluate, problems, solve
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
            labelled(table).rename(index={"broken": "brokn"}), "rewards", indices()
        )
    for wrong, message in (
        (labelled(table)[:2], "rewards lacks state 'worn'"),
        (labelled(table)[["run"]], "rewards lacks action 'repair'"),
        (labelled(table).iloc[[0, 1, 2, 2]], "rewards holds a state twice"),
    ):
        with pytest.raises(InvalidInput, match=message):
            names.in_order_of_names(wrong, "rewards", indices())
    unnamed = Index("state", 3, None), Index("action", 2, None)
    for given, axes in (
        (labelled(table), unnamed),
        (pd.DataFrame(table), indices()),
        (table, indices()),
    ):
        assert np.array_equal(names.in_order_of_names(given, "rewards", axes), np.asarray(given))


def test_indices_as_labels_in_another_order_are_refused():
    start = pd.Series({2: 1.0, 0: 0.0, 1: 0.0})
    with pytest.raises(InvalidInput, match=r"initial has states by index .* its \.sort_index\(\)"):
        machine(initial=start)
    assert machine(initial=start.sort_index()).initial.tolist() == [0, 0, 1]
    assert machine(initial=start.to_numpy()).initial.tolist() == [1, 0, 0]
    assert machine(initial=start.set_axis([7, 8, 9])).initial.tolist() == [1, 0, 0]
    mdp = problems.forest()
    table = pd.DataFrame(np.full((3, 2), 0.5))
    for wrong, message in (
        (table[::-1], r"the policy has states by index"),
        (table[[1, 0]], r"actions by index .*\.sort_index\(axis=1\)"),
        (pd.Series([0, 0, 1], [1, 0, 2]), r"the policy has states"),
    ):
        with pytest.raises(InvalidInput, match=message):
            evaluate(mdp, wrong)
    by_pair = pd.Series(np.full(6, 0.5), index=[1, 0, 2, 3, 5, 4])
    assert np.array_equal(evaluate(mdp, by_pair).value, evaluate(mdp, table).value)


def test_labels_of_rows_that_are_no_states_do_not_count():
    names_of = {"state_names": ["a", "b"], "action_names": ["x", "y"]}
    by_pair = pd.Series([10.0, 1.0], index=["b", "a"])
    mdp = MDP([[0, 1.0], [1.0, 0]], by_pair, 0.5, pairs=[[1, 0], [0, 0]], state_names=["a", "b"])
    assert mdp.rewards.tolist() == [1.0, 10.0]
    rows, pairs = [[1.0, 0], [0, 1.0], [1.0, 0]], [[0, 0], [0, 1], [1, 0]]
    by_state = pd.Series([1.0, 2.0, 3.0], index=["a", "a", "b"])
    mdp = MDP(rows, by_state, 0.5, pairs=pairs, **names_of)
    assert mdp.rewards.tolist() == [1.0, 2.0, 3.0]
    ends = MDP(0.5 * np.array(rows), by_state, 0.5, pairs=pairs, termination=0 * by_state + 0.5,
               **names_of)  # fmt: skip
    assert ends.termination.tolist() == [0.5] * 3
    solution = solve(mdp, Soft(1.0))
    probability = solution.to_frame().set_index("state").probability
    assert np.array_equal(evaluate(mdp, probability).value, evaluate(mdp, solution).value)


def test_labels_of_successors_are_put_into_the_order_of_the_names():
    rows, pairs = np.array([[1.0, 0], [0.5, 0.5], [1.0, 0]]), [[0, 0], [0, 1], [1, 0]]
    options = {"pairs": pairs, "state_names": ["a", "b"], "action_names": ["x", "y"]}
    earned = np.arange(6.0).reshape(3, 2)
    plain = MDP(rows, earned, 0.5, **options)

    def exchanged(table, index=None):
        return pd.DataFrame(np.asarray(table), columns=["a", "b"], index=index)[["b", "a"]]

    given = MDP(exchanged(rows), exchanged(earned), 0.5, **options)
    assert np.array_equal(given.rewards, plain.rewards)
    assert np.array_equal(given.transitions.toarray(), plain.transitions.toarray())
    steps = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.3, 0.7]], [[1, 0], [0, 1]]])
    labelled_steps = [exchanged(p, ["a", "b"])[::-1] for p in steps]
    for p, frames in ((steps, labelled_steps), (steps[:1], labelled_steps[:1])):
        r = np.arange(2.0 * len(p)).reshape(2, len(p))
        plain = MDP(list(p), r, 0.5, state_names=["a", "b"])
        given = MDP(frames, r, 0.5, state_names=["a", "b"])
        assert np.array_equal(given.transitions.toarray(), plain.transitions.toarray())
    chain = MDP(labelled_steps[0], pd.Series([1.0, 0.0], index=["b", "a"]), 0.5,
                termination=None, state_names=["a", "b"])  # fmt: skip
    assert chain.rewards.tolist() == [0.0, 1.0]
    assert np.array_equal(chain.transitions.toarray(), steps[0])


def test_labels_of_values_and_of_masks_are_put_into_the_order_of_the_names():
    stay = np.array([[[1.0, 0]], [[0, 1.0]]])
    mdp = MDP(stay, np.ones((2, 1)), 0.5, state_names=["a", "b"])
    value = pd.Series([100.0, 0.0], index=["b", "a"])
    assert solve(mdp, Hard(), horizon=1, final_value=value).value.tolist() == [1.0, 51.0]
    assert bellman(mdp, Hard(), value).tolist() == [1.0, 51.0]
    correct = pd.Series([2.0, 6.0], index=["b", "a"])
    unequal = MDP(stay, [[3.0], [1.0]], 0.5, state_names=["a", "b"])
    assert solve(unequal, Hard(), initial_value=correct).iterations == 1
    mask = pd.Series([True, False], index=["b", "a"])
    ended = MDP(stay, np.ones((2, 1)), 0.5, terminal=mask, state_names=["a", "b"])
    assert ended.terminal.tolist() == [False, True]


def test_what_only_resembles_pandas_is_an_array():
    class DataArray:  # as in xarray, which has `reindex` and no `axes`
        def __init__(self, x):
            self._x = np.asarray(x)

        def reindex(self):
            return self

        def __array__(self, dtype=None, copy=None):
            return self._x

    names_of = {"state_names": ["a", "b"], "action_names": ["x", "y"]}
    mdp = MDP(np.full((2, 2, 2), 0.5), DataArray([[1.0, 2], [3, 4]]), 0.5, **names_of)
    assert mdp.rewards.tolist() == [1.0, 2.0, 3.0, 4.0]


def indices():
    return Index("state", 3, STATES), Index("action", 2, ACTIONS)


def test_labels_of_states_and_actions_are_put_into_the_order_of_the_pairs():
    rng = np.random.default_rng(3)
    pairs = np.array([[2, 1], [0, 0], [1, 1], [0, 1], [2, 0]])
    p, r = rng.dirichlet(np.ones(3), 5), rng.normal(size=5)
    names_of = {"state_names": STATES, "action_names": ACTIONS}
    by_index = pd.MultiIndex.from_arrays(pairs.T)
    by_name = pd.MultiIndex.from_tuples([(STATES[s], ACTIONS[a]) for s, a in pairs])
    ends = rng.uniform(0, 0.5, 5)
    p *= 1 - ends[:, None]
    plain = MDP(p, r, 0.9, pairs=pairs, termination=ends, **names_of)
    solution = solve(plain, Soft(1.0))
    shuffle = [3, 0, 4, 2, 1]
    for labels in (by_index, by_name):
        given = MDP(
            pd.DataFrame(p, index=labels).iloc[shuffle],
            pd.Series(r, index=labels).iloc[shuffle[::-1]],
            0.9,
            pairs=pairs,
            termination=pd.Series(ends, index=labels).iloc[shuffle],
            **names_of,
        )
        assert np.array_equal(given.rewards, plain.rewards)
        assert np.array_equal(given.termination, plain.termination)
        assert np.array_equal(given.transitions.toarray(), plain.transitions.toarray())
    policy = solution.to_frame().set_index(["state", "action"]).probability
    expected = evaluate(plain, policy.to_numpy()).value
    assert np.array_equal(evaluate(plain, policy.iloc[shuffle]).value, expected)
    table = labelled(rng.normal(size=(3, 2)))
    p = rng.dirichlet(np.ones(3), (3, 2))
    plain = MDP(p, table, 0.9, **names_of)
    assert np.array_equal(MDP(p, table.stack()[::-1], 0.9, **names_of).rewards, plain.rewards)
    with pytest.raises(InvalidInput, match="rewards names state 'repair'"):
        MDP(p, table.T.stack(), 0.9, **names_of)
    wrong = table.stack()
    state, action = wrong.index[5]
    wrong.index = wrong.index[[0, 1, 2, 3, 4, 4]]
    with pytest.raises(InvalidInput, match=f"rewards lacks state '{state}', action '{action}'"):
        MDP(p, wrong, 0.9, **names_of)
    others = pd.MultiIndex.from_arrays([[7, 8, 9, 10, 11, 12], [0] * 6])
    other = pd.Series(table.to_numpy().ravel(), index=others)
    unlabelled = MDP(p, other.to_numpy(), 0.9, **names_of)
    assert np.array_equal(MDP(p, other, 0.9, **names_of).rewards, unlabelled.rewards)
