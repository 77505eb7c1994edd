"""Functions that overflow 32-bit integers are refused; those that do not are left alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from planning.functional_models import stock_model
from tsallax import MDP, Hard, InvalidInput, problems, solve
from tsallax.planning import integer_overflow
from tsallax.planning.precision import double_precision

OVERFLOWING = {
    "decide": {"decide": lambda s, a: (s, -a * 10**9, True)},
    "a power": {"decide": lambda s, a: (s, -((a * 1000) ** 3), True)},
    "a sum of large numbers": {"decide": lambda s, a: (s, 2_000_000_000 + a * 0 + s + 2**30, True)},
    "evolve": {"evolve": lambda x, e: (jnp.maximum(x - e, 0), e * 1_500_000_000, False)},
    "a next state": {"evolve": lambda x, e: (jnp.where(x * 10**9 // 10**9 == x, x, 0), 0.0, False)},
    "within a function of JAX": {"decide": lambda s, a: (s, jax.jit(lambda n: n * 10**9)(a), True)},
}


def may_overflow(model) -> bool:
    with double_precision():
        return integer_overflow._may_overflow(integer_overflow._traced(model))


@pytest.mark.parametrize("case", OVERFLOWING)
def test_overflow_is_refused_by_solve_and_to_mdp(case):
    model = stock_model(**OVERFLOWING[case])
    message = "(decide|evolve) overflows 32-bit integers at state .*, action .*: it returns"
    with pytest.raises(InvalidInput, match=message):
        solve(model, Hard(), 1.0)
    with pytest.raises(InvalidInput, match=message):
        model.to_mdp()


@pytest.mark.parametrize(
    "functions",
    [
        {"decide": lambda s, a: (s, -a * 1000, True)},
        # 32-bit integers are divided in single precision: rounding, not overflow
        {"decide": lambda s, a: (s, jnp.log(1 + a * 3) / (1 + s), True)},
        # 3 a is larger than 32 bits for forbidden pairs only
        {"decide": lambda s, a: (s, jnp.where(a > 1, a * 10**9, 0), a <= 1)},
    ],
)
def test_what_does_not_overflow_is_accepted(functions):
    model = stock_model(**functions)
    assert may_overflow(model)
    stored = model.to_mdp()
    value = solve(model, Hard(), 1e-3).value
    np.testing.assert_allclose(value, solve(stored, Hard(), 1e-3).value, atol=2e-3)


def test_functions_that_only_add_small_integers_are_not_called_again():
    real = stock_model(decide=lambda s, a: (s, -a * 1e9, True))
    for model in (problems.perishables(2), problems.savings(50), real):
        assert not may_overflow(model)


def two_states(**changes):
    """Action 0 of two states, each of which leads to itself; the second earns 1."""
    arguments = {
        "decide": lambda s, a: (s, jnp.where(s == 1, 1.0, 0.0), True),
        "evolve": lambda x, e: (x, 0.0, False),
        "states": 2, "actions": 1, "events": 1, "probabilities": [1.0], "discount": 0.5,
    }  # fmt: skip
    return MDP.from_functions(**(arguments | changes))


def heavy(x):
    """1/4 and 3/4 of state 0, 3/4 and 1/4 of state 1 but for the overflow."""
    share = jnp.abs((1 + 2 * x) * 1_000_000_000) / 4e9
    return jnp.stack([share, 1 - share])


SMALL_RESULTS = {
    "evolve overflows 32-bit integers at state 1, action 0: it returns 0, and 1": {
        "evolve": lambda x, e: (((x + 1) * 1_500_000_000 > 2_000_000_000) * 1, 0.0, False)
    },
    "decide overflows 32-bit integers at state 1, action 0: it returns False, and True": {
        "decide": lambda s, a: (s, (s + 1) * 1_500_000_000 > 2_000_000_000, True)
    },
    "decide overflows 32-bit integers at state 1, action 0: it returns True, and False": {
        "decide": lambda s, a: (s, 1.0, (s + 1) * 1_500_000_000 < 2_000_000_000)
    },
    # the reward is divided in single precision, the next state depends on integers alone
    "evolve overflows 32-bit integers at state 1, action 0, : it returns 0, and 1": {
        "evolve": lambda x, e: (
            ((x + 1) * 1_500_000_000 > 2_000_000_000) * 1, x / 3, False
        )
    },
    "probabilities overflows": {
        "evolve": lambda x, e: (e, 1.0 * e, False),
        "events": 2, "post": 2, "probabilities": heavy,
    },
}  # fmt: skip


@pytest.mark.parametrize("message", SMALL_RESULTS)
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_overflow_that_changes_small_numbers_is_refused(message, precision):
    model = two_states(**SMALL_RESULTS[message])
    with pytest.raises(InvalidInput, match=message.replace(", :", ":")):
        solve(model, Hard(), 1e-3, precision=precision)


def test_booleans_and_infinities_are_no_overflow():
    def decide(s, a):
        return (s[0], jnp.clip(s[1] + a - 1, 0, 2)), s[0] * 3 + s[1] == 4, True

    grid = {"states": (3, 3), "actions": 3, "events": 1, "probabilities": [1.0], "discount": 0.9}
    model = MDP.from_functions(decide, lambda x, e: (x, 0.0, False), **grid)
    assert may_overflow(model)
    assert solve(model, Hard()).value.reshape(3, 3)[1, 1] == pytest.approx(10.0)
    unlimited = two_states(decide=lambda s, a: ((s, jnp.inf), s * 3 == 3, True),
                           evolve=lambda x, e: (x[0], 0.0, False))  # fmt: skip
    assert solve(unlimited, Hard()).value == pytest.approx([0.0, 2.0], abs=1e-5)


@pytest.mark.filterwarnings("error")  # JAX warns of 64-bit coordinates left over from float64
def test_a_solve_in_float32_has_no_integers_of_64_bits():
    large = two_states(
        decide=lambda s, a: (s, a * 2 / 1e9, True), actions=np.array([0, 1_500_000_000])
    )
    assert solve(large, Hard()).value == pytest.approx([6.0, 6.0])
    with pytest.raises(InvalidInput, match=r"decide overflows 32-bit integers .* 64-bit integers"):
        solve(large, Hard(), 1e-3, precision="float32")
    larger = two_states(
        decide=lambda s, a: (s, a / 1e9, True), actions=np.array([0, 5_000_000_000])
    )
    assert solve(larger, Hard()).value == pytest.approx([10.0, 10.0])
    with pytest.raises(InvalidInput, match=r"actions has the integer 5000000000.* precision out"):
        solve(larger, Hard(), 1e-3, precision="float32")
