"""Functions that overflow 32-bit integers are refused; those that do not are left alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from planning.functional_models import stock_model
from tsallax import Hard, InvalidInput, problems, solve
from tsallax.planning import integer_overflow

OVERFLOWING = {
    "decide": {"decide": lambda s, a: (s, -a * 10**9, True)},
    "a power": {"decide": lambda s, a: (s, -((a * 1000) ** 3), True)},
    "a sum of large numbers": {"decide": lambda s, a: (s, 2_000_000_000 + a * 0 + s + 2**30, True)},
    "evolve": {"evolve": lambda x, e: (jnp.maximum(x - e, 0), e * 1_500_000_000, False)},
    "a next state": {"evolve": lambda x, e: (jnp.where(x * 10**9 // 10**9 == x, x, 0), 0.0, False)},
    "within a function of JAX": {"decide": lambda s, a: (s, jax.jit(lambda n: n * 10**9)(a), True)},
}


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
    assert integer_overflow._may_overflow(model)
    stored = model.to_mdp()
    value = solve(model, Hard(), 1e-3).value
    np.testing.assert_allclose(value, solve(stored, Hard(), 1e-3).value, atol=2e-3)


def test_functions_that_only_add_small_integers_are_not_called_again():
    real = stock_model(decide=lambda s, a: (s, -a * 1e9, True))
    for model in (problems.perishables(2), problems.savings(50), real):
        assert not integer_overflow._may_overflow(model)
