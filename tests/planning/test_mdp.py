"""An MDP is the same whatever form it is given in, and nothing else is accepted."""

from __future__ import annotations

import copy
import pickle
import re
import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from mdp_checks import same
from refusals import refused
from tsallax import memory
from tsallax.errors import InvalidInput
from tsallax.planning.mdp import MDP

EPS = np.finfo(float).eps


def random_arrays(seed: int, states: int, actions: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw dense T (S, A, S), about half of it zero, and r (S, A)."""
    rng = np.random.default_rng(seed)
    chances = rng.random((states, actions, states)) * (rng.random((states, actions, states)) < 0.5)
    chances[..., 0] += 0.01
    return chances / chances.sum(-1, keepdims=True), rng.normal(size=(states, actions))


def assert_canonical(mdp: MDP) -> None:
    """Check everything the solvers rely on."""
    csr = mdp.transitions
    assert isinstance(csr, sp.csr_array)
    assert csr.data.dtype == np.float64
    assert csr.indices.dtype == csr.indptr.dtype == mdp.pointer.dtype == np.int32
    assert mdp.action_of.dtype == mdp.state_of.dtype == np.int32
    assert (csr.data > 0).all()
    fresh = sp.csr_array((csr.data.copy(), csr.indices.copy(), csr.indptr.copy()), shape=csr.shape)
    assert fresh.has_canonical_format
    stops = 0.0 if mdp.termination is None else mdp.termination
    np.testing.assert_allclose(csr.sum(axis=1) + stops, 1.0, rtol=0, atol=20 * EPS)
    assert abs(mdp.initial.sum() - 1) < 20 * EPS
    key = mdp.state_of.astype(np.int64) * mdp.n_actions + mdp.action_of
    assert (np.diff(key) > 0).all()
    assert np.array_equal(mdp.terminal, np.bincount(mdp.state_of, minlength=mdp.n_states) == 0)
    for array in (csr.data, csr.indices, csr.indptr, mdp.rewards, mdp.pointer, mdp.action_of):
        assert not array.flags.writeable
        assert array.flags.c_contiguous
    assert not mdp.initial.flags.writeable


sizes = {"seed": st.integers(0, 10**6), "states": st.integers(1, 7), "actions": st.integers(1, 5)}
formats = st.sampled_from(["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])


@given(**sizes, fmt=formats, new=st.booleans())
def test_every_form_gives_the_same_mdp(seed, states, actions, fmt, new):
    dense, rewards = random_arrays(seed, states, actions)
    rng = np.random.default_rng(seed)

    def sparse(matrix: np.ndarray) -> Any:
        return (sp.coo_array if new else sp.coo_matrix)(matrix).asformat(fmt)

    flat = dense.reshape(states * actions, states)
    expected = MDP(dense, rewards, 0.9)
    assert_canonical(expected)
    shuffled = rng.permutation(states * actions)
    pairs = np.stack([shuffled // actions, shuffled % actions], axis=1)
    forms = {
        "one dense matrix": MDP(flat, rewards, 0.9),
        "nested lists": MDP(dense.tolist(), rewards.tolist(), 0.9),
        "one sparse matrix": MDP(sparse(flat), rewards, 0.9),
        "sparse matrices": MDP([sparse(dense[:, a]) for a in range(actions)], rewards, 0.9),
        "sparse pairs": MDP(sparse(flat[shuffled]), rewards.ravel()[shuffled], 0.9, pairs=pairs),
        "dense pairs": MDP(flat[shuffled], rewards, 0.9, pairs=pairs.tolist()),
    }
    matrices = tuple(dense[:, a] for a in range(actions))
    if actions != states or states == 1:  # otherwise they could be those of states
        forms["dense matrices"] = MDP(matrices, rewards.ravel(), 0.9)
    for name, mdp in forms.items():
        assert_canonical(mdp)
        assert same(mdp, expected), name
    np.testing.assert_array_equal(expected.table(expected.rewards), rewards)
    np.testing.assert_allclose(expected.transitions.toarray(), flat, rtol=1e-14)


@given(**sizes)
def test_rewards_of_transitions_are_averaged(seed, states, actions):
    dense, _ = random_arrays(seed, states, actions)
    each = np.random.default_rng(seed).normal(size=dense.shape)
    each[np.random.default_rng(seed + 1).random(each.shape) < 0.3] = 0.0
    by_hand = [
        [sum(dense[s, a, t] * each[s, a, t] for t in range(states)) for a in range(actions)]
        for s in range(states)
    ]
    expected = MDP(dense, by_hand, 0.5)
    flat = each.reshape(-1, states)
    shuffled = np.random.default_rng(seed).permutation(states * actions)
    pairs = np.stack([shuffled // actions, shuffled % actions], axis=1)
    rows = sp.csr_array(dense.reshape(-1, states)[shuffled])
    for mdp in (
        MDP(dense, each, 0.5),
        MDP(dense, flat, 0.5),
        MDP(dense, sp.coo_array(flat), 0.5),
        MDP(dense, np.stack([each[:, a] for a in range(actions)], axis=1), 0.5),
        MDP(dense, [sp.csc_array(each[:, a]) for a in range(actions)], 0.5),
        MDP(rows, sp.csr_array(flat[shuffled]), 0.5, pairs=pairs),
    ):
        assert same(mdp, expected, exact=False)


@given(**sizes, dtype=st.sampled_from([np.float32, np.float64]), copies=st.integers(1, 3))
def test_unsorted_duplicates_and_zeros_are_merged_without_touching_the_input(
    seed, states, actions, dtype, copies
):
    dense, rewards = random_arrays(seed, states, actions)
    flat = sp.coo_array(dense.reshape(-1, states))
    rng = np.random.default_rng(seed)
    row, column = (np.tile(c, copies) for c in flat.coords)
    data = np.tile(flat.data / copies, copies)
    row, column = np.append(row, [0, 0]), np.append(column, [0, states - 1])
    data = np.append(data, [0.0, -0.0])
    order = rng.permutation(len(row))
    order = order[np.argsort(row[order], kind="stable")]
    starts = np.searchsorted(row[order], np.arange(states * actions + 1))
    rows = (data[order].astype(dtype), column[order].astype(np.int32), starts.astype(np.int32))
    given_csr = sp.csr_array(rows, shape=(states * actions, states))
    before = [a.copy() for a in (given_csr.data, given_csr.indices, given_csr.indptr)]
    mdp = MDP(given_csr, rewards, 0.9)
    assert_canonical(mdp)
    after = (given_csr.data, given_csr.indices, given_csr.indptr)
    assert all(np.array_equal(x, y) for x, y in zip(before, after, strict=True))
    assert all(a.flags.writeable for a in after)
    tolerance = 1e-6 if dtype == np.float32 else 1e-14
    np.testing.assert_allclose(
        mdp.transitions.toarray(), dense.reshape(-1, states), rtol=tolerance, atol=tolerance
    )


def test_a_canonical_csr_is_shared_and_stays_the_callers_to_write():
    matrix = sp.csr_array(random_arrays(3, 5, 2)[0].reshape(10, 5).round(15))
    matrix.data /= np.repeat(matrix.sum(axis=1), np.diff(matrix.indptr))
    indices, indptr = (a.astype(np.int32) for a in (matrix.indices, matrix.indptr))
    matrix = sp.csr_array((matrix.data, indices, indptr), shape=matrix.shape)
    mdp = MDP(matrix, np.zeros(10), 0.5)
    assert np.shares_memory(mdp.transitions.data, matrix.data)
    assert np.shares_memory(mdp.transitions.indices, matrix.indices)
    assert matrix.data.flags.writeable
    assert not mdp.transitions.data.flags.writeable


def test_sparse_input_is_never_made_dense_and_hardly_copied():
    states, actions = 200_000, 2
    target = np.random.default_rng(0).integers(0, states, (states * actions, 4), np.int32)
    target.sort(axis=1)
    target = (target + np.arange(4, dtype=np.int32)) % np.int32(states)
    target.sort(axis=1)
    starts = np.arange(0, states * actions * 4 + 1, 4, dtype=np.int32)
    data = np.full(target.size, 0.25)
    matrix = sp.csr_array((data, target.ravel(), starts), shape=(states * actions, states))
    rewards = np.zeros((states, actions))
    size = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    tracemalloc.start()
    mdp = MDP(matrix, rewards, 0.99)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert mdp.transitions.nnz == matrix.nnz
    assert peak < 0.7 * size
    listed = MDP([matrix[a::actions].tocsc() for a in range(actions)], rewards, 0.99)
    assert same(listed, mdp)


def test_rows_at_float32_accuracy_are_rescaled_and_others_left_alone():
    rng = np.random.default_rng(1)
    rows = rng.dirichlet(np.ones(300), 600).astype(np.float32)
    assert np.abs(rows.astype(float).sum(axis=1) - 1).max() > 1e-9
    mdp = MDP(sp.csr_array(rows), np.zeros(600), 0.9)
    assert_canonical(mdp)
    again = MDP(mdp.transitions, mdp.rewards, 0.9)
    assert same(again, mdp)
    exact = np.array([[[0.1, 0.2, 0.7]], [[1 / 3, 1 / 3, 1 / 3]], [[0.3, 0.3, 0.4]]])
    kept = MDP(exact, np.zeros((3, 1)), 0.9)
    np.testing.assert_array_equal(kept.transitions.toarray(), exact[:, 0])


@pytest.mark.filterwarnings("ignore:the reward")
def test_terminal_states_have_no_pairs_and_their_rows_do_not_matter():
    dense, rewards = random_arrays(5, 4, 3)
    broken, spoiled = dense.copy(), rewards.copy()
    broken[[1, 3]], spoiled[[1, 3]] = np.nan, np.inf
    for terminal in ([1, 3], np.array([3, 1]), np.array([False, True, False, True])):
        mdp = MDP(broken, spoiled, 0.9, terminal=terminal)
        assert_canonical(mdp)
        np.testing.assert_array_equal(mdp.terminal, [False, True, False, True])
        np.testing.assert_array_equal(mdp.pointer, [0, 3, 3, 6, 6])
        np.testing.assert_array_equal(mdp.state_of, [0, 0, 0, 2, 2, 2])
        np.testing.assert_allclose(mdp.transitions.toarray(), dense[[0, 2]].reshape(6, 4))
        np.testing.assert_array_equal(mdp.initial, [0.5, 0, 0.5, 0])
    expected = MDP(dense, rewards, 0.9, terminal=[1, 3])
    each = np.broadcast_to(rewards[..., None], dense.shape).copy()
    each[1] = np.nan
    assert same(MDP(broken, each, 0.9, terminal=[1, 3]), expected, exact=False)
    matrices = list(np.swapaxes(broken, 0, 1)), [sp.csr_array(each[:, a]) for a in range(3)]
    assert same(MDP(*matrices, 0.9, terminal=[1, 3]), expected, exact=False)
    pairs = [(s, a) for s in range(4) for a in range(3)]
    assert same(MDP(broken.reshape(12, 4), spoiled, 0.9, terminal=[1, 3], pairs=pairs), expected)
    assert MDP(dense, rewards, 0.9, [0, 0.5, 0, 0.5], terminal=[1, 3]).initial[1] == 0.5


def test_states_may_differ_in_their_actions():
    rows, pairs = [[0, 1, 0], [0, 0, 1], [1, 0, 0]], [(1, 4), (0, 0), (1, 1)]
    mdp = MDP(rows, [3.0, 2.0, 1.0], 0.9, pairs=pairs, terminal=[2])
    assert_canonical(mdp)
    assert (mdp.n_states, mdp.n_actions, mdp.n_pairs) == (3, 5, 3)
    np.testing.assert_array_equal(mdp.state_of, [0, 1, 1])
    np.testing.assert_array_equal(mdp.action_of, [0, 1, 4])
    np.testing.assert_array_equal(mdp.rewards, [2, 1, 3])
    np.testing.assert_array_equal(mdp.transitions.toarray(), [[0, 0, 1], [1, 0, 0], [0, 1, 0]])
    table = mdp.table(mdp.rewards, -np.inf)
    assert table.shape == (3, 5)
    assert np.isneginf(table).sum() == 12
    np.testing.assert_array_equal(mdp.flatten(table), mdp.rewards)
    assert mdp.table(np.ones(3, bool), False).dtype == bool
    pairs = np.stack([mdp.state_of, mdp.action_of], 1)
    from_table = MDP(mdp.transitions, np.nan_to_num(table), 0.9, terminal=[2], pairs=pairs)
    assert same(from_table, mdp)


def test_tables_are_views_where_every_state_has_every_action_and_take_any_fill():
    mdp = MDP(*random_arrays(0, 3, 2), 0.9)
    assert np.shares_memory(mdp.table(mdp.rewards), mdp.rewards)
    assert np.shares_memory(mdp.flatten(mdp.table(mdp.rewards)), mdp.rewards)
    with pytest.raises(InvalidInput, match=re.escape("shape (3, 2), got (2, 3)")):
        mdp.flatten(np.zeros((2, 3)))
    with pytest.raises(InvalidInput, match=re.escape("shape (6,), one for each pair, got (5,)")):
        mdp.table(np.zeros(5))
    chain = MDP([[0.0, 1.0]], [1.0], 0.9, pairs=[(0, 0)], terminal=[1])
    assert chain.table(np.array([3]), fill=-np.inf).tolist() == [[3.0], [-np.inf]]
    assert chain.table(np.array([3])).dtype.kind == "i"
    assert chain.table([3]).tolist() == [[3], [0]]
    assert chain.flatten([[3], [0]]).tolist() == [3]


@given(**sizes, stop=st.floats(0, 1))
def test_termination_and_probabilities_sum_to_one(seed, states, actions, stop):
    dense, rewards = random_arrays(seed, states, actions)
    stops = np.random.default_rng(seed).random((states, actions)) * stop
    stops[0, 0] = 1.0
    left = dense * (1 - stops)[..., None]
    mdp = MDP(left, rewards, 0.9, termination=stops)
    assert_canonical(mdp)
    np.testing.assert_allclose(mdp.table(mdp.termination), stops, rtol=1e-12)
    sparse = MDP(sp.csr_array(left.reshape(-1, states)), rewards, 0.9, termination=stops.ravel())
    assert same(sparse, mdp)
    rough = MDP(left.astype(np.float32), rewards, 0.9, termination=stops.astype(np.float32))
    assert_canonical(rough)
    assert MDP(dense, rewards, 0.9, termination=np.zeros((states, actions))).termination is None


def test_initial_may_be_a_state_or_a_distribution():
    dense, rewards = random_arrays(0, 3, 2)
    np.testing.assert_array_equal(MDP(dense, rewards, 0.9, 2).initial, [0, 0, 1])
    np.testing.assert_allclose(MDP(dense, rewards, 0.9).initial, 1 / 3)
    rough = MDP(dense, rewards, 0.9, np.float32([0.1, 0.2, 0.7])).initial
    assert abs(rough.sum() - 1) < 4 * EPS


def test_the_mdp_is_read_only_and_its_discount_can_be_exchanged():
    dense, rewards = random_arrays(0, 3, 2)
    mdp = MDP(dense, rewards, 0.9)
    rewards[:] = 7.0
    assert (mdp.rewards != 7.0).all()
    for same_for_all in (np.broadcast_to(7.0, (3, 2)), np.broadcast_to(7.0, 6)):
        assert MDP(dense, same_for_all, 0.9).rewards.flags.c_contiguous
    strided = np.arange(12.0)[::2]
    assert_canonical(MDP(dense, strided, 0.9, np.broadcast_to(1 / 3, 3)))
    with pytest.raises(AttributeError):
        mdp.discount = 0.5  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        mdp.rewards[0] = 1.0
    other = mdp.with_discount(0.25)
    assert (other.discount, mdp.discount) == (0.25, 0.9)
    assert other.transitions is mdp.transitions
    with pytest.raises(InvalidInput, match="discount"):
        mdp.with_discount(1.5)
    assert same(pickle.loads(pickle.dumps(mdp)), mdp)
    assert same(copy.deepcopy(mdp), mdp)


@pytest.mark.parametrize("kind", [">f8", ">f4", np.float16, np.longdouble])
def test_probabilities_may_be_any_real_numbers(kind):
    dense, rewards = np.array([[[0.25, 0.75]], [[0.5, 0.5]]]), np.zeros((2, 1))
    assert same(MDP(dense.astype(kind), rewards, 0.9), MDP(dense, rewards, 0.9))


def test_actions_of_terminal_states_alone_have_their_names():
    given = {"pairs": [(0, 0), (1, 1)], "terminal": [1], "action_names": ["go", "rest"]}
    mdp = MDP([[0.0, 1.0], [0.0, 1.0]], [1.0, 9.0], 0.9, **given)
    assert mdp.rewards.tolist() == [1.0]
    assert mdp.n_actions == 2


T, R = random_arrays(11, 3, 2)


def changed(array: np.ndarray, where: Any, value: Any) -> np.ndarray:
    other = array.copy()
    other[where] = value
    return other


PAIRS = [(s, a) for s in range(3) for a in range(2)]
FLAT = T.reshape(6, 3)
ONE = {"pairs": PAIRS}

REFUSED: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "fewer reward matrices than actions": (
        (T, [np.zeros((3, 3))], 0.9), {}, r"2 matrices of shape \(3, 3\), not 1 of shape \(3, 3\)"),
    "reward matrices for fewer states": (
        (np.stack([np.eye(4)] * 2, 1), [np.zeros((2, 2))] * 2, 0.9), {},
        r"2 matrices of shape \(4, 4\), not 2 of shape \(2, 2\)"),
    "a name that a file would not keep": (
        (T, R, 0.9), {"action_names": ["a", "a\0"]}, "which a file would not keep"),
    "negative": ((changed(T, (1, 0), [-0.5, 1.0, 0.5]), R, 0.9), {},
        r"probability from state 1, action 0 to state 0 is negative: -0\.5"),
    "negative that merges": ((sp.csr_array((np.array([1.5, -0.5, 1, 1]), np.array([0, 0, 0, 0]),
        np.array([0, 2, 3, 4])), shape=(3, 1)), np.zeros(3), 0.9), {},
        r"probability from state 0, action 0 to state 0 is negative"),
    "nan": ((changed(T, (2, 1, 1), np.nan), R, 0.9), {},
        r"probability from state 2, action 1 to state 1 is not finite: nan"),
    "infinite": ((changed(T, (0, 1, 2), np.inf), R, 0.9), {"state_names": list("abc"),
        "action_names": ["stop", "go"]},
        r"from state 0 \('a'\), action 1 \('go'\) to state 2 \('c'\) is not finite: inf"),
    "sum": ((changed(T, (1, 1), [0.5, 0.25, 0.125]), R, 0.9), {},
        r"probabilities of state 1, action 1 sum to 0\.875, not to 1; divide them by their s"),
    "sum as written": ((changed(T, (1, 1), [0.9, 0.05, 0.04]), R, 0.9), {}, r"sum to 0\.99, not"),
    "exchanged": ((R, T, 0.9), {}, r"and rewards of shape \(3, 2, 3\) look exchanged: trans"),
    "exchanged pairs": ((R.ravel(), FLAT, 0.9), {"pairs": PAIRS}, "transitions come first"),
    "sum slightly off": ((changed(T, (2, 0), [0.5, 0.25, 0.25001]), R, 0.9), {},
        r"probabilities of state 2, action 0 sum to 1\.00001"),
    "empty row": ((changed(T, (1, 1), 0.0), R, 0.9), {}, r"state 1, action 1 sum to 0, .*pairs="),
    "sum in pairs": ((FLAT[::-1] * 0.5, R, 0.9), {"pairs": PAIRS[::-1]},
        r"state 0, action 0 sum to 0\.5"),
    "sum with termination": ((T, R, 0.9), {"termination": np.full((3, 2), 0.1)},
        r"probabilities and termination of state 0, action 0 sum to 1\.1"),
    "termination above one": ((T, R, 0.9), {"termination": np.full((3, 2), 1.5)},
        r"termination of state 0, action 0 is 1\.5, not a probability"),
    "termination nan": ((T, R, 0.9), {"termination": np.full(6, np.nan)}, "is nan, not a prob"),
    "termination shape": ((T, R, 0.9), {"termination": np.zeros(3)},
        r"termination must have shape \(3, 2\) or \(6,\), not \(3,\)"),
    "actions first": ((np.swapaxes(T, 0, 1), R, 0.9), {},
        r"must have shape \(S, A, S\), not \(2, 3, 3\); it looks like \(A, S, S\)"),
    "shape": ((T[:, :, :2], R, 0.9), {}, r"must have shape \(S, A, S\), not \(3, 2, 2\)"),
    "rows": ((sp.csr_array(FLAT[:5]), R, 0.9), {}, r"shape \(S\*A, S\), not \(5, 3\).*pairs="),
    "one dimension": ((T.ravel(), R, 0.9), {}, r"an array of shape \(S, A, S\).*not of shape"),
    "no states": ((np.zeros((0, 2, 0)), R, 0.9), {}, r"hold no state-action pair"),
    "list": (([T[:, 0], T[:2, 1]], R, 0.9), {},
        r"matrices of shape \(S, S\), but that of action 1 has shape \(2, 3\)"),
    "list of numbers": (([np.float64(1.0)], R, 0.9), {}, r"that of action 0 has shape \(\)"),
    "empty list": (([], R, 0.9), {}, r"transitions must be"),
    "ragged list": (([[[1.0], [0.5, 0.5]]], R, 0.9), {}, r"transitions must be a regular array"),
    "words": (([[["a"]]], R, 0.9), {}, r"transitions must be real numbers, not of type <U1"),
    "complex": ((sp.csr_array(FLAT * 1j), R, 0.9), {}, r"must be real numbers, not of type compl"),
    "nothing": ((None, R, 0.9), {}, r"transitions must be real numbers, not of type object"),
    "objects": ((T, R.astype(object), 0.9), {}, r"of type object: pass rewards\.astype\(float\)"),
    "one object": ((T, [[1.0, None], [0, 0], [0, 0]], 0.9), {}, r"; rewards\[0, 1\] is None"),
    "masked": ((np.ma.masked_less(T, 0.2), R, 0.9), {}, r"transitions has masked entries"),
    "masked rewards": ((T, np.ma.masked_less(R, 1.0), 0.9), {}, r"rewards has .*with pairs="),
    "masked list": (([np.ma.masked_less(T[:, 0], 0.2), T[:, 1]], R, 0.9), {}, r"masked entries"),
    "pairs by name": ((FLAT, R, 0.9), {"pairs": [("a", "x")] * 6},
        r"pairs must be integers .*: of names, pass \[\(state_names\.index\(s\)"),
    "ragged pairs": ((FLAT, R, 0.9), {"pairs": [[0, 0], [1]]}, r"pairs must be a regular array"),
    "pairs shape": ((FLAT, R, 0.9), {"pairs": PAIRS[:5]}, r"pairs must have shape \(6, 2\)"),
    "pairs type": ((FLAT, R, 0.9), {"pairs": np.array(PAIRS, float)}, r"pairs must be integers"),
    "pairs with cube": ((T, R, 0.9), ONE, r"with pairs= must be a matrix of shape \(N, S\)"),
    "pair twice": ((FLAT, R, 0.9), {"pairs": [*PAIRS[:5], (0, 1)]},
        r"pairs holds state 0, action 1 twice"),
    "state out of range": ((FLAT, R, 0.9), {"pairs": [*PAIRS[:5], (3, 0)]},
        r"pairs names state 3 in row 5; it must be 0 to 2"),
    "negative state": ((FLAT, R, 0.9), {"pairs": [(-1, 0), *PAIRS[1:]]}, r"state -1 in row 0"),
    "negative action": ((FLAT, R, 0.9), {"pairs": [(0, -2), *PAIRS[1:]]}, r"action -2 in row 0"),
    "state without actions": ((FLAT[:4], R.ravel()[:4], 0.9), {"pairs": PAIRS[:4]},
        r"state 2 has no actions; list it in terminal="),
    "all terminal": ((T, R, 0.9), {"terminal": [0, 1, 2]}, r"every state is terminal"),
    "terminal out of range": ((T, R, 0.9), {"terminal": [3]}, r"terminal names state 3, not"),
    "terminal negative": ((T, R, 0.9), {"terminal": [-1]}, r"terminal names state -1, not"),
    "terminal mask": ((T, R, 0.9), {"terminal": [True, False]}, r"mask must have shape \(3,\)"),
    "terminal floats": ((T, R, 0.9), {"terminal": [1.0]}, r"terminal must be a list of state"),
    "reward nan": ((T, changed(R, (1, 1), np.nan), 0.9), {},
        r"reward of state 1, action 1 is not finite: nan"),
    "reward of a transition": ((T, changed(T, (2, 0, 1), np.inf), 0.9), {},
        r"a reward of state 2, action 0 is not finite"),
    "sparse reward": ((T, sp.csr_array(changed(FLAT, (3, 1), np.nan)), 0.9), {},
        r"a reward of state 1, action 1 is not finite"),
    "reward shape": ((T, R.T, 0.9), {},
        r"rewards must have shape \(3, 2\), \(6,\) or \(3, 2, 3\), not \(2, 3\)"),
    "reward shape of pairs": ((FLAT, R.T, 0.9), ONE,
        r"rewards must have shape \(3, 2\), \(6,\) or \(6, 3\), not \(2, 3\)"),
    "reward of states": ((T, np.zeros(3), 0.9), {}, r"left or entered; give shape \(3, 2\) or"),
    "reward list with pairs": ((FLAT, [T[:, 0], T[:, 1]], 0.9), ONE, r"not be a list of matrices"),
    "reward ambiguous": ((np.eye(2), np.zeros((2, 2)), 0.9), {"pairs": [(0, 0), (1, 1)]},
        r"could be a table \(S, A\) or one row for each pair"),
    "reward of termination": ((T * 0.5, T, 0.9), {"termination": np.full((3, 2), 0.5)},
        r"do not say what a termination earns"),
    "discount above one": ((T, R, 1.5), {}, "discount must be a number of .* up to 1, got 1.5"),
    "initial negative": ((T, R, 0.9, [1.5, -0.5, 0]), {}, r"initial probability of state 1 is -0"),
    "initial nan": ((T, R, 0.9, [np.nan, 1, 0]), {}, r"initial probability of state 0 is nan"),
    "initial sum": ((T, R, 0.9, [0.5, 0.25, 0]), {}, r"initial probabilities sum to 0\.75, not"),
    "initial length": ((T, R, 0.9, [0.5, 0.5]), {}, r"initial must have shape \(3,\), not \(2,\)"),
    "initial state": ((T, R, 0.9, 3), {}, r"initial names state 3, not 0 to 2"),
    "too few names": ((T, R, 0.9), {"state_names": ["a"]}, r"state_names has 1 names for 3 states"),
    "same name": ((T, R, 0.9), {"state_names": list("aba")}, r"state_names holds 'a' twice"),
    "name no string": ((T, R, 0.9), {"state_names": [0, 1, 2]},
        r"strings, not 0: pass \[str\(name\)"),
    "names no list": ((T, R, 0.9), {"action_names": 5}, r"action_names must be a list of names"),
    "one string": ((T, R, 0.9), {"state_names": "abc"}, r"list of names, not one string"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_one_line_that_names_the_place(case):
    arguments, options, message = REFUSED[case]
    with pytest.raises(InvalidInput, match=message) as caught:
        MDP(*arguments, **options)
    assert "\n" not in str(caught.value)


def test_sparse_rewards_in_three_dimensions_are_refused():
    try:
        rewards = sp.coo_array(np.ones((3, 2, 3)))
    except ValueError:
        pytest.skip("new in SciPy 1.15")
    with pytest.raises(InvalidInput, match="rewards is not a valid sparse matrix"):
        MDP(T, rewards, 0.9)


def test_a_csr_with_impossible_indices_is_refused():
    matrix = sp.csr_array(FLAT)
    matrix.indices[0] = 7
    with pytest.raises(InvalidInput, match="transitions is not a valid sparse matrix"):
        MDP(matrix, R, 0.9)


def test_a_table_that_does_not_fit_into_memory_is_refused(monkeypatch):
    mdp = MDP(np.eye(3)[[1, 2, 0]], np.ones(3), 0.5, pairs=[(0, 0), (1, 0), (2, 999)])
    assert mdp.table(mdp.rewards).sum() == 3.0
    monkeypatch.setattr(memory, "available_bytes", lambda device: 20_000)
    with refused("memory for a table of 3 states and 1,000 actions", "pair_policy"):
        mdp.table(mdp.rewards)


def test_a_discount_next_to_one_is_not_shown_as_one():
    mdp = MDP(T, R, 1 - 1e-9)
    assert "discount 0.999999999," in repr(mdp)
    assert "discount 1," in repr(mdp.with_discount(1.0))
