"""The Q network equals plain matrix products, and its gradients equal autodiff's."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from numpy_network import double, forward
from refusals import refused
from tsallax.deep import adam, network
from tsallax.deep.network import Network
from tsallax.envs.observation_format import ObservationFormat

INPUTS, HIDDEN, OUTPUTS = 4, (8, 6), 5


@jax.jit
def values(net: Network, x: jax.Array, action: jax.Array) -> Any:
    """All values of a batch, of one input, and those of the given actions."""
    chosen = network.action_values(net.body, network.output_rows(net, action), x)
    return network.values(net, x), network.values(net, x[3]), chosen


all_values = jax.jit(network.values, static_argnums=2)


@partial(jax.jit, static_argnums=(0, 1))
def init(hidden: tuple[int, ...], common: bool, scale: float = 1.0) -> Network:
    return network.init(jax.random.PRNGKey(0), INPUTS, hidden, OUTPUTS, scale, common)


def some_network(common: bool, hidden: tuple[int, ...] = HIDDEN) -> Network:
    """A network whose weights and biases are all different from zero."""
    rng = np.random.default_rng(0)
    net = init(hidden, common)
    return jax.tree.map(lambda x: np.asarray(x) + 0.1 * rng.normal(size=x.shape).astype("f4"), net)


def some_inputs(n: int = 7) -> tuple[Any, Any]:
    """Inputs and actions, one action several times and one never."""
    rng = np.random.default_rng(1)
    action = np.resize([2, 0, 2, 4, 2, 0, 1], n)
    return rng.normal(size=(n, INPUTS)).astype(np.float32), action


def close(a: Any, b: Any) -> None:
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-6), a, b)


with_and_without_common = pytest.mark.parametrize("common", [False, True])


@with_and_without_common
@pytest.mark.parametrize("hidden", [HIDDEN, ()], ids=["deep", "linear"])
def test_values_are_those_of_a_multilayer_perceptron(hidden, common):
    net, (x, action) = some_network(common, hidden), some_inputs()
    _, expected = forward(double(net), np.asarray(x, np.float64))
    whole, one, chosen = map(np.asarray, values(net, x, action))
    assert whole == pytest.approx(expected, abs=1e-5)
    assert one == pytest.approx(expected[3], abs=1e-5)
    assert chosen == pytest.approx(expected[np.arange(7), action], abs=1e-5)


@jax.jit
@jax.grad
def gradient_of_indexing(net, x, action):
    """Autodiff through all outputs, of a loss that sees those of the actions."""
    chosen = network.values(net, x)[jnp.arange(len(x)), action]
    return jnp.sum(jnp.linspace(-1, 2, len(x)) * chosen**2)


@jax.jit
def gradient_of_rows(net, x, action):
    """The same loss without the other outputs: gradients of the body and of each row, the latter
    summed by action and scattered over all outputs."""

    def loss(body, rows):
        return jnp.sum(jnp.linspace(-1, 2, len(x)) * network.action_values(body, rows, x) ** 2)

    body, rows = jax.grad(loss, (0, 1))(net.body, network.output_rows(net, action))
    return body, adam.sum_rows(action, rows, OUTPUTS), adam.scatter_rows(action, rows, OUTPUTS)


@with_and_without_common
def test_gradients_of_action_values_are_those_of_plain_indexing(common):
    """Also of an action that was chosen several times, and of one that never was."""
    net, (x, action) = some_network(common), some_inputs()
    plain = gradient_of_indexing(net, x, action)
    body, summed, spread = gradient_of_rows(net, x, action)
    close(body, plain.body)
    close(summed.weight, np.asarray(plain.output.weight)[action])
    close(summed.bias, np.asarray(plain.output.bias)[action])
    assert np.all(np.asarray(plain.output.weight)[3] == 0)
    close(spread, plain.output)
    assert np.all(np.asarray(spread.weight)[3] == 0)


def test_fresh_weights_are_uniform_in_the_range_of_their_inputs():
    init = jax.jit(lambda key: network.init(key, 100, (400, 300), 200, 0.1))
    net = init(jax.random.PRNGKey(0))
    layers = (*net.body.hidden, net.output)
    for layer, bound in zip(layers, (100**-0.5, 400**-0.5, 0.1 * 300**-0.5), strict=True):
        weight = np.asarray(layer.weight)
        assert weight.std() == pytest.approx(bound / 3**0.5, rel=0.02)
        assert np.abs(weight).max() == pytest.approx(bound, rel=0.01)
        assert abs(weight.mean()) < 0.02 * bound
        assert not np.any(layer.bias)


def test_a_common_value_starts_at_nothing():
    plain, common = (values(init(HIDDEN, c, 0.1), *some_inputs())[0] for c in (False, True))
    assert np.array_equal(plain, common)


def test_integers_are_one_hot_vectors():
    net = some_network(common=True)
    numbers, vectors = np.array([2, 0, 3], np.int32), np.eye(INPUTS, dtype=np.float32)[[2, 0, 3]]
    close(all_values(net, numbers), all_values(net, vectors))
    linear = some_network(common=False, hidden=())
    close(all_values(linear, numbers), all_values(linear, vectors))
    rows = network.output_rows(linear, np.array([1, 4, 0]))
    chosen = np.asarray(all_values(linear, vectors))[np.arange(3), [1, 4, 0]]
    close(network.action_values(linear.body, rows, numbers), chosen)


@pytest.mark.parametrize("sides", [(10, 9), (40, 36)])
def test_images_pass_through_convolutions(sides):
    """Against sums over windows, in NumPy."""
    form = ObservationFormat.image(*sides, 2)
    net = jax.jit(lambda key: network.init(key, form, (8,), 3, 1.0))(jax.random.PRNGKey(0))
    x = np.random.default_rng(0).integers(256, size=(2, *sides, 2)).astype(np.uint8)
    y = x.astype(np.float64) / 255
    for layer, (_, side, stride) in zip(
        net.body.convolutions, network.convolution_shapes(min(sides)), strict=True
    ):
        windows = np.lib.stride_tricks.sliding_window_view(y, (side, side), (1, 2))
        windows = windows[:, ::stride, ::stride]  # (images, rows, columns, channels, side, side)
        y = np.einsum("nijcab,abcf->nijf", windows, np.asarray(layer.weight, np.float64))
        y = np.maximum(y + np.asarray(layer.bias), 0)
    hidden = net.body.hidden[0]
    h = np.maximum(y.reshape(2, -1) @ np.asarray(hidden.weight) + np.asarray(hidden.bias), 0)
    expected = h @ np.asarray(net.output.weight).T
    np.testing.assert_allclose(all_values(net, x), expected, rtol=1e-4, atol=1e-5)


def test_images_that_are_too_small_are_refused():
    with refused("too small"):
        network.init(jax.random.PRNGKey(0), ObservationFormat.image(2, 9, 1), (8,), 3, 1.0)


def test_with_layer_norm_the_scale_of_the_inputs_of_a_layer_does_not_matter():
    net = some_network(common=False)
    x, _ = some_inputs()
    hidden = net.body.hidden
    scaled = tuple(layer._replace(weight=5 * layer.weight, bias=5 * layer.bias) for layer in hidden)
    other = net._replace(body=net.body._replace(hidden=scaled))
    close(all_values(net, x, True), all_values(other, x, True))
    h = np.asarray(x @ hidden[0].weight + hidden[0].bias, np.float64)
    h = np.maximum((h - h.mean(1, keepdims=True)) / h.std(1, keepdims=True), 0)
    one = net.body._replace(hidden=hidden[:1])
    np.testing.assert_allclose(network.features(one, x, True), h, rtol=1e-3, atol=1e-4)
