"""Checks and values of MDPs that several test modules share."""

import numpy as np

from tsallax.planning.mdp import MDP


def optimal_values(mdp: MDP) -> np.ndarray:
    """Iterate V(s) = max_a r(s,a) + γ Σ T(s'|s,a) V(s') until nothing changes."""
    value = np.zeros(mdp.n_states)
    for _ in range(100_000):
        q = mdp.table(mdp.rewards + mdp.discount * (mdp.transitions @ value), -np.inf)
        new = np.where(mdp.terminal, 0.0, q.max(axis=1))
        if np.abs(new - value).max() < 1e-13:
            return new
        value = new
    raise AssertionError("no fixed point")


def bytes_of(mdp: MDP) -> int:
    csr = mdp.transitions
    return csr.data.nbytes + csr.indices.nbytes + csr.indptr.nbytes


def assert_stochastic(mdp: MDP) -> None:
    np.testing.assert_allclose(mdp.transitions.sum(axis=1), 1.0, rtol=0, atol=4e-15)
    assert (mdp.transitions.data > 0).all()
    assert mdp.transitions.indices.dtype == mdp.transitions.indptr.dtype == np.int32


def same(one: MDP, other: MDP, *, exact: bool = True) -> bool:
    """Whether two MDPs have the same fields, bit by bit or up to rounding."""
    close = np.array_equal if exact else lambda a, b: np.allclose(a, b, rtol=1e-14, atol=1e-15)
    fields = []
    for m in (one, other):
        t, stops = m.transitions, np.zeros(m.n_pairs) if m.termination is None else m.termination
        fields.append((
            (t.indptr, t.indices, m.pointer, m.action_of),
            (t.data, m.rewards, stops, m.initial),
            (t.shape, m.discount, m.n_actions, m.state_names, m.action_names),
        ))  # fmt: skip
    (indices, numbers, rest), (indices_2, numbers_2, rest_2) = fields
    return (
        rest == rest_2
        and all(map(np.array_equal, indices, indices_2))
        and all(map(close, numbers, numbers_2))
    )
