"""The Q network: a multilayer perceptron with one output per action.

The output layer holds a row of weights per action. Learning from Q(s, a) takes the rows of the
actions in the batch out of it, and neither computes nor differentiates the other outputs.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array


class Layer(NamedTuple):
    """x -> x @ weight + bias; in an output layer `weight` has a row per output."""

    weight: Array
    bias: Array


class Body(NamedTuple):
    """The hidden layers, with ReLU, and optionally an output that is added to all others."""

    hidden: tuple[Layer, ...]
    common: Layer | None = None


class Network(NamedTuple):
    """Q(s, .; theta)."""

    body: Body
    output: Layer


def init(
    key: Array, inputs: int, hidden: Sequence[int], outputs: int, scale: float, common: bool = False
) -> Network:
    """Weights uniform in +-1/sqrt(inputs), those of the output times `scale`; biases of zero.

    A small scale matters with thousands of outputs: the maximum of outputs that start apart is an
    overestimate, which the target of Q-learning repeats.
    """
    widths = (inputs, *hidden)
    keys = jax.random.split(key, len(widths))

    def weights(key: Array, shape: tuple[int, int], fan_in: int) -> Array:
        bound = fan_in**-0.5
        return jax.random.uniform(key, shape, minval=-bound, maxval=bound)

    layers = tuple(
        Layer(weights(k, (a, b), a), jnp.zeros(b))
        for k, a, b in zip(keys[:-1], widths[:-1], widths[1:])
    )
    weight = scale * weights(keys[-1], (outputs, widths[-1]), widths[-1])
    shared = Layer(jnp.zeros((1, widths[-1])), jnp.zeros(1)) if common else None
    return Network(Body(layers, shared), Layer(weight, jnp.zeros(outputs)))


def features(body: Body, x: Array) -> Array:
    """The outputs of the last hidden layer, for inputs x (..., d)."""
    for layer in body.hidden:
        x = jax.nn.relu(x @ layer.weight + layer.bias)
    return x


def values(network: Network, x: Array) -> Array:
    """All outputs, Q(s, .), for inputs x (..., d)."""
    h = features(network.body, x)
    q = h @ network.output.weight.T + network.output.bias
    common = network.body.common
    return q if common is None else q + (h @ common.weight.T + common.bias)


def output_rows(network: Network, action: Array) -> Layer:
    """The rows of the output layer of the given actions."""
    return Layer(network.output.weight[action], network.output.bias[action])


def action_values(body: Body, rows: Layer, x: Array) -> Array:
    """Q(s, a) of one action for each input x (B, d), given the output rows of the actions."""
    h = features(body, x)
    weight, bias = rows
    if body.common is not None:
        weight, bias = weight + body.common.weight, bias + body.common.bias
    return jnp.sum(h * weight, -1) + bias
