"""An MDP read from a Gymnasium environment has the values of its own transition table."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest

from gymnasium_versions import newest, since
from mdp_checks import optimal_values, same
from refusals import refused
from tsallax.errors import InvalidInput
from tsallax.planning.mdp import MDP

ENVIRONMENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "lake": ("FrozenLake-v1", {}),
    "lake 8x8": ("FrozenLake-v1", {"map_name": "8x8"}),
    "dry lake": ("FrozenLake-v1", {"is_slippery": False}),
    "dry lake 8x8": ("FrozenLake8x8-v1", {"is_slippery": False}),
    "sure lake": ("FrozenLake-v1", {"success_rate": 1.0}),
    "own lake": ("FrozenLake-v1", {"desc": ["SFH", "HFS", "FFG"]}),
    "paid lake": ("FrozenLake-v1", {"reward_schedule": (10, -5, -1)}),
    "cliff": ("CliffWalking", {}),
    "slippery cliff": ("CliffWalking", {"is_slippery": True}),
    "taxi": ("Taxi", {}),
    "taxi in the rain": ("Taxi", {"is_rainy": True}),
}
NEW_IN = {"sure lake": "1.3", "paid lake": "1.3", "taxi in the rain": "1.2"}
"""Versions of Gymnasium with the options of a case."""
CASES = [pytest.param(case, marks=since(NEW_IN.get(case, "1.1"))) for case in ENVIRONMENTS]


def values_of_table(table: Any, discount: float, sweeps: int) -> np.ndarray:
    """Iterate V(s) = max_a Σ p·(r + γ·V(s') unless terminated) in plain Python."""
    value = dict.fromkeys(range(len(table)), 0.0)
    for _ in range(sweeps):
        value = {
            state: max(
                sum(p * (r + (0.0 if end else discount * value[to])) for p, to, r, end in outcomes)
                for outcomes in table[state].values()
            )
            for state in range(len(table))
        }
    return np.array([value[state] for state in range(len(table))])


@pytest.mark.parametrize("case", CASES)
def test_values_rewards_and_ends_are_those_of_the_table(case):
    name, options = ENVIRONMENTS[case]
    mdp = MDP.from_gymnasium(newest(name), 0.5, **options)
    env = gymnasium.make(newest(name), **options)
    table, alive = env.unwrapped.P, ~mdp.terminal
    direct = values_of_table(table, 0.5, 50)
    np.testing.assert_allclose(optimal_values(mdp)[alive], direct[alive], rtol=0, atol=1e-11)
    assert np.abs(direct[alive]).max() > 0.01
    np.testing.assert_allclose(mdp.initial, env.unwrapped.initial_state_distrib)
    assert not mdp.initial[mdp.terminal].any()
    stops = np.zeros(mdp.n_pairs) if mdp.termination is None else mdp.termination
    np.testing.assert_allclose(mdp.transitions.sum(axis=1) + stops, 1.0, atol=1e-14)
    assert same(MDP.from_gymnasium(env, 0.5), mdp)
    ends = stops + mdp.transitions @ mdp.terminal.astype(float)
    for pair, (state, action) in enumerate(zip(mdp.state_of, mdp.action_of, strict=True)):
        outcomes = table[state][action]
        assert mdp.rewards[pair] == pytest.approx(sum(p * r for p, _, r, _ in outcomes), abs=1e-13)
        assert ends[pair] == pytest.approx(sum(p for p, _, _, end in outcomes if end), abs=1e-13)


def test_terminal_states_are_those_that_only_an_end_enters():
    lake = MDP.from_gymnasium("FrozenLake-v1", 0.9)
    assert np.flatnonzero(lake.terminal).tolist() == [5, 7, 11, 12, 15]
    assert lake.termination is None
    assert lake.action_names == ("left", "down", "right", "up")
    cliff = MDP.from_gymnasium(newest("CliffWalking"), 0.9)
    assert np.flatnonzero(cliff.terminal).tolist() == [47]
    assert cliff.termination is None
    assert cliff.action_names == ("up", "right", "down", "left")
    taxi = MDP.from_gymnasium(newest("Taxi"), 0.9)
    assert not taxi.terminal.any()
    assert taxi.termination is not None
    assert sorted(taxi.termination)[-5:] == [0, 1, 1, 1, 1]
    assert taxi.action_names is not None
    assert {taxi.action_names[a] for a in taxi.action_of[taxi.termination > 0]} == {"drop off"}


@pytest.mark.parametrize(
    ("name", "moves"),
    [
        ("FrozenLake-v1", {"right": (0, 1), "down": (0, 4)}),
        ("CliffWalking", {"right": (0, 1), "down": (0, 12)}),
        ("Taxi", {"east": ((2, 1, 0, 1), (2, 2, 0, 1)), "south": ((2, 1, 0, 1), (3, 1, 0, 1))}),
    ],
)
def test_action_names_are_what_the_actions_do(name, moves):
    env = gymnasium.make(newest(name), **({"is_slippery": False} if "Lake" in name else {}))
    names = MDP.from_gymnasium(env, 0.9).action_names
    for action, places in moves.items():
        here, there = (env.unwrapped.encode(*p) if name == "Taxi" else p for p in places)
        assert env.unwrapped.P[here][names.index(action)][0][1] == there


def test_an_end_in_a_state_that_goes_on_is_a_termination():
    table = {
        0: {0: [(0.25, 1, 4.0, True), (0.5, 1, 0.0, False), (0.25, 0, 0.0, False)]},
        1: {0: [(1.0, 0, 8.0, True)]},
    }
    env = SimpleNamespace(P=table, initial_state_distrib=[1.0, 0.0])
    mdp = MDP.from_gymnasium(env, 0.5)
    assert not mdp.terminal.any()
    np.testing.assert_array_equal(mdp.transitions.toarray(), [[0.25, 0.5], [0, 0]])
    np.testing.assert_array_equal(mdp.termination, [0.25, 1.0])
    np.testing.assert_array_equal(mdp.rewards, [1.0, 8.0])


def test_a_table_alone_is_read_and_starts_in_all_states():
    env = gymnasium.make("FrozenLake-v1")
    lake, table = MDP.from_gymnasium(env, 0.9), MDP.from_gymnasium(env.unwrapped.P, 0.9)
    np.testing.assert_array_equal(optimal_values(table), optimal_values(lake))
    np.testing.assert_array_equal(table.initial > 0.0, ~table.terminal)
    assert table.initial.max() == 1.0 / np.count_nonzero(~table.terminal)
    with refused("the table P: P[0][0] leads to state 3 of 0 to 0"):
        MDP.from_gymnasium({0: {0: [(1.0, 3, 0.0, True)]}}, 0.9)
    with refused("transitions is a dict: use MDP.from_gymnasium"):
        MDP(env.unwrapped.P, None, 0.9)


def test_a_state_of_a_table_alone_is_terminal_only_where_nothing_follows():
    cases = (
        ([(1.0, 1, 0.0, False)], [(1.0, 0, 1.0, True)], [0.9, 1.0]),
        ([(1.0, 1, 3.0, True)], [(1.0, 1, 2.0, True)], [3.0, 2.0]),
        ([(1.0, 1, 3.0, True)], [(1.0, 1, 0.0, True)], [3.0, 0.0]),
    )
    for first, second, value in cases:
        mdp = MDP.from_gymnasium({0: {0: first}, 1: {0: second}}, 0.9)
        np.testing.assert_array_equal(mdp.terminal, [False, value[1] == 0.0])
        np.testing.assert_allclose(optimal_values(mdp), value)


def test_outcomes_of_probability_zero_are_ignored():
    table = [[[(1.0, 1, 1.0, True), (0.0, 1, 9.0, False)]], [[(1.0, 0, 0.0, False)]]]
    mdp = MDP.from_gymnasium(SimpleNamespace(P=table, initial_state_distrib=[1, 0]), 0.5)
    np.testing.assert_array_equal(mdp.terminal, [False, True])
    np.testing.assert_array_equal(mdp.rewards, [1.0])


def test_a_state_where_episodes_start_is_not_terminal():
    table = [[[(1.0, 1, 1.0, True)]], [[(1.0, 1, 2.0, True)]]]
    for initial, terminal in (([1, 0], [False, True]), ([0.5, 0.5], [False, False])):
        env = SimpleNamespace(P=table, initial_state_distrib=initial)
        np.testing.assert_array_equal(MDP.from_gymnasium(env, 0.5).terminal, terminal)


@pytest.mark.filterwarnings("ignore:.*out of date:DeprecationWarning")
@pytest.mark.parametrize(
    ("env", "options", "message"),
    [
        ("Blackjack-v1", {}, r"Blackjack-v1: has no table P\[state\]\[action\]"),
        ("NoSuchEnv-v0", {}, r"NoSuchEnv-v0: Gymnasium cannot make it"),
        ("not an id!", {}, r"not an id!: Gymnasium cannot make it"),
        ("FrozenLake-v1", {"colour": "red"}, r"FrozenLake-v1: Gymnasium cannot make it"),
        (newest("Taxi"), {"fickle_passenger": True}, r"Taxi.*fickle_passenger"),
        (SimpleNamespace(), {}, r"SimpleNamespace: has no table P"),
        (SimpleNamespace(P=[]), {}, r"SimpleNamespace: has no table P"),
        (SimpleNamespace(P=[[[(1.0, 0, 0.0, False)]]]), {"a": 1}, r"a: only for an environment"),
        (SimpleNamespace(P=[[[(1.0, 3, 0.0, False)]]]), {}, r"P\[0\]\[0\] leads to state 3"),
        (SimpleNamespace(P=[[[(1.0, 0)]]]), {}, r"P\[0\] cannot be read"),
        (SimpleNamespace(P={1: {}}), {}, r"P\[0\] cannot be read"),
        (SimpleNamespace(P=[[[(1.0, 0, "a", False)]]]), {}, r"P\[0\] cannot be read: ValueError"),
        (SimpleNamespace(P=[[[(None, 0, 0.0, False)]]]), {}, r"P\[0\] cannot be read: TypeError"),
        (SimpleNamespace(P=[[[]]]), {}, r"table P holds no transition"),
        (SimpleNamespace(P=[[[(0.5, 0, 0.0, False)]]]), {}, r"state 0, action 0 sum to 0\.5"),
        (SimpleNamespace(P=[[[(np.nan, 0, 0.0, False)]]]), {}, r"is not finite: nan"),
        (
            SimpleNamespace(P=[[[(1.0, 0, 0.0, False)]]], initial_state_distrib=[1, 0]),
            {},
            r"2 initial probabilities for 1 states",
        ),
    ],
)
def test_refused_in_one_line_that_names_the_environment(env, options, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        MDP.from_gymnasium(env, 0.9, **options)
    assert "\n" not in str(caught.value)


def test_without_gymnasium_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(InvalidInput, match="pip install gymnasium"):
        MDP.from_gymnasium("FrozenLake-v1", 0.9)
    table = SimpleNamespace(P=[[[(1.0, 0, 1.0, False)]]])
    assert MDP.from_gymnasium(table, 0.9).n_pairs == 1
