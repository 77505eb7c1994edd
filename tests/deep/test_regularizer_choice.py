"""A selected regulariser computes what the regulariser itself does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tsallax.deep.regularizer_choice import Choice
from tsallax.regularizer import by_name

NAMES = (("hard", None), ("soft", None), ("sparse", None), ("tsallis", 1.5))
CHOICE = Choice(NAMES)
Q = jnp.asarray(np.random.default_rng(0).normal(size=(3, 5)), jnp.float32)


@jax.jit
def all_four(which, alpha):
    policy = CHOICE.policy(Q, which, alpha)
    value, entropy = CHOICE.value(Q, which, alpha), CHOICE.entropy(policy, which)
    return value, policy, entropy, CHOICE.max_entropy(5, which)[1:]


@pytest.mark.parametrize("which", range(len(NAMES)))
def test_the_selected_regularizer_is_used(which):
    name, index = NAMES[which]
    r = by_name(name, None if name == "hard" else 0.3, index)
    largest = [r.max_entropy(n) for n in range(1, 6)]
    expected = r.value(Q), r.policy(Q), r.entropy(r.policy(Q)), largest
    for found, wanted in zip(all_four(which, 0.3), expected, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_a_selection_can_be_mapped_over_members():
    which, alphas = np.arange(4), np.float32([0.1, 0.2, 0.3, 0.4])
    mapped = jax.jit(jax.vmap(lambda w, a: CHOICE.policy(Q, w, a)))(which, alphas)
    for i in range(4):
        np.testing.assert_allclose(np.asarray(mapped)[i], all_four(i, alphas[i])[1], atol=1e-6)


def test_a_single_regularizer_needs_no_selection():
    only = Choice((("sparse", None),))
    found = jax.jit(only.policy)(Q, 0, 0.3)
    np.testing.assert_allclose(found, by_name("sparse", 0.3).policy(Q), atol=1e-7)
