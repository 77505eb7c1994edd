"""The policy state by state: the support with its probabilities, the most probable first."""

import json

import numpy as np
import pytest

from tsallax import MDP, Hard, Soft, Sparse, solve
from tsallax.planning.policy_table import as_data, as_text, state_rows
from tsallax.problems import forest, gridworld


def test_rows_are_the_policy_of_the_solution():
    solution = solve(gridworld(4, 3), Sparse(0.3))
    mdp = solution.mdp
    rows = state_rows(solution)
    assert [row.state for row in rows] == list(mdp.state_names)
    assert [row.value for row in rows] == solution.value.tolist()
    for s, row in enumerate(rows):
        used = solution.support[s].nonzero()[0]
        taken = {mdp.action_names[a]: solution.policy[s, a] for a in used}
        assert row.actions == taken
        assert list(row.actions.values()) == sorted(taken.values(), reverse=True)
    assert rows[int(np.argmax(mdp.terminal))].actions == {}
    assert state_rows(solution, 2) == rows[:2]
    data = json.loads(json.dumps(as_data(rows)))
    assert [row["policy"] for row in data] == [row.actions for row in rows]


def test_rows_of_a_finite_horizon_are_those_of_one_step():
    solution = solve(forest(), Sparse(1.0), horizon=5)
    for t in (0, 4):
        rows = state_rows(solution, step=t)
        assert [row.value for row in rows] == solution.values[t].tolist()
        for row, policy in zip(rows, solution.policy_at(t)):
            assert row.actions == {a: p for a, p in zip(("wait", "cut"), policy) if p > 0}
    assert as_text(solution, 1, step=4).splitlines()[0].split(maxsplit=2) == [
        "state", "value", "policy of step 4"
    ]  # fmt: skip


def test_indices_stand_for_missing_names():
    rows = state_rows(solve(MDP([[[1.0]]], [[2.0]], 0.5), Hard()))
    assert [(row.state, row.actions) for row in rows] == [(0, {0: 1.0})]
    assert as_data(rows)[0]["policy"] == {"0": 1.0}


def test_text_is_aligned_and_says_what_is_left_out():
    solution = solve(forest(states=5), Sparse(8.0), tolerance=1e-3)
    head, *lines, rest = as_text(solution, 3).splitlines()
    assert rest == "and 2 more states"
    assert head.split() == ["state", "value", "policy"]
    columns = {line.index("wait") for line in lines}
    assert columns == {head.index("policy")}
    assert len(lines) == 3
    assert len(as_text(solution).splitlines()) == 6
    for line, row in zip(lines, state_rows(solution), strict=False):
        assert float(line.split()[1]) == pytest.approx(row.value, abs=1e-3)


def test_a_terminal_state_a_single_action_and_many_actions_fit_into_a_line():
    transitions = np.zeros((2, 20, 2))
    transitions[:, :, 1] = 1
    rewards = np.tile(np.arange(20.0), (2, 1))
    mdp = MDP(transitions, rewards, 0.5, terminal=[1], action_names=[f"a{i}" for i in range(20)])
    assert as_text(solve(mdp, Hard())).splitlines()[1].endswith("  a19")
    first, second = as_text(solve(mdp, Soft(1000.0))).splitlines()[1:]
    assert first.endswith(" and 14 more")
    assert first.index("a19 ") < first.index("a18 ")
    assert second.endswith("terminal")


def test_names_that_a_terminal_cannot_show_are_quoted():
    mdp = MDP([[[1.0]]], [[2.0]], 0.5, state_names=["a\nb\ud800"], action_names=["\x1b[31m"])
    text = as_text(solve(mdp, Hard()))
    assert text.isascii()
    assert len(text.splitlines()) == 2
    assert "\x1b" not in text
