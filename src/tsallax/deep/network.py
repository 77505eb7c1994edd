"""The Q network: a multilayer perceptron, after convolutions for images, with an output per action.

The output layer holds a row of weights per action. Learning from Q(s, a) may take the rows of the
actions in the batch out of it, and neither compute nor differentiate the other outputs.

The type of the inputs says what they are (`envs/observation_format.py`): real vectors, integers,
which select a row of the first layer, or images of bytes.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from tsallax.envs.observation_format import ObservationFormat
from tsallax.errors import InvalidInput

LARGE_CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
"""Channels, side and stride of the convolutions of images of at least LARGE_IMAGE pixels a side."""
SMALL_CONVOLUTIONS = ((16, 3, 1),)
LARGE_IMAGE = 36
NORM_EPSILON = 1e-6


class Layer(NamedTuple):
    """x -> x @ weight + bias; in an output layer `weight` has a row per output."""

    weight: Array
    bias: Array


class Body(NamedTuple):
    """The layers before the output, with ReLU, and an output that is added to all others."""

    hidden: tuple[Layer, ...]
    common: Layer | None = None
    convolutions: tuple[Layer, ...] = ()


class Network(NamedTuple):
    """Q(s, .; theta)."""

    body: Body
    output: Layer


def init(
    key: Array,
    inputs: int | ObservationFormat,
    hidden: Sequence[int],
    outputs: int,
    scale: float,
    common: bool = False,
) -> Network:
    """Weights uniform in +-1/sqrt(inputs), those of the output times `scale`; biases of zero.

    A small scale matters with thousands of outputs: the maximum of outputs that start apart is an
    overestimate, which the target of Q-learning repeats.
    """
    form = ObservationFormat.vector(inputs) if isinstance(inputs, int) else inputs
    convolutions, size = _convolutions(key, form) if form.kind == "image" else ((), form.size)
    widths = (size, *hidden)
    keys = jax.random.split(key, len(widths))
    layers = tuple(
        Layer(_weights(k, (a, b), a), jnp.zeros(b))
        for k, a, b in zip(keys[:-1], widths[:-1], widths[1:])
    )
    weight = scale * _weights(keys[-1], (outputs, widths[-1]), widths[-1])
    shared = Layer(jnp.zeros((1, widths[-1])), jnp.zeros(1)) if common else None
    return Network(Body(layers, shared, convolutions), Layer(weight, jnp.zeros(outputs)))


def _weights(key: Array, shape: tuple[int, ...], fan_in: int) -> Array:
    bound = fan_in**-0.5
    return jax.random.uniform(key, shape, minval=-bound, maxval=bound)


def _convolutions(key: Array, form: ObservationFormat) -> tuple[tuple[Layer, ...], int]:
    """The convolutions of images, and the number of features that come out of them."""
    *sides, channels = form.shape
    layers = []
    for i, (filters, side, stride) in enumerate(convolution_shapes(min(sides))):
        sides = [(length - side) // stride + 1 for length in sides]
        if min(sides) < 1:
            raise InvalidInput(f"images of {form.shape[0]} x {form.shape[1]} pixels are too small")
        shape, fan_in = (side, side, channels, filters), side * side * channels
        weight = _weights(jax.random.fold_in(key, i), shape, fan_in)
        layers.append(Layer(weight, jnp.zeros(filters)))
        channels = filters
    return tuple(layers), sides[0] * sides[1] * channels


def convolution_shapes(side: int) -> tuple[tuple[int, int, int], ...]:
    """Channels, side and stride of the convolutions of images by their shorter side."""
    return LARGE_CONVOLUTIONS if side >= LARGE_IMAGE else SMALL_CONVOLUTIONS


def features(body: Body, x: Array, layer_norm: bool) -> Array:
    """The outputs of the last hidden layer, for inputs x (..., d), integers or images.

    With `layer_norm` the inputs of each ReLU have mean 0 and variance 1 over the layer.
    """
    if jnp.issubdtype(x.dtype, jnp.unsignedinteger):
        x = _convolve(body.convolutions, x)
    for layer in body.hidden:
        integer = jnp.issubdtype(x.dtype, jnp.integer)
        x = (layer.weight[x] if integer else x @ layer.weight) + layer.bias
        x = _activate(x, layer_norm)
    return x


def _real(h: Array, output: Layer) -> Array:
    """Features as real numbers: integers that reach an output layer directly become one-hot."""
    integer = jnp.issubdtype(h.dtype, jnp.integer)
    return jax.nn.one_hot(h, output.weight.shape[-1]) if integer else h


def _activate(x: Array, layer_norm: bool) -> Array:
    if layer_norm:
        x = x - jnp.mean(x, -1, keepdims=True)
        x = x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + NORM_EPSILON)
    return jax.nn.relu(x)


def _convolve(convolutions: tuple[Layer, ...], x: Array) -> Array:
    """The features of images x (..., height, width, channels) of bytes."""
    lead = x.shape[:-3]
    shapes = convolution_shapes(min(x.shape[-3:-1]))
    y = x.reshape(math.prod(lead), *x.shape[-3:]).astype(jnp.float32) / 255
    for layer, (_, _, stride) in zip(convolutions, shapes, strict=True):
        y = lax.conv_general_dilated(
            y, layer.weight, (stride, stride), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        y = jax.nn.relu(y + layer.bias)
    return y.reshape(*lead, math.prod(y.shape[1:]))


def values(network: Network, x: Array, layer_norm: bool = False) -> Array:
    """All outputs, Q(s, .), for inputs x (..., d), integers or images."""
    h = _real(features(network.body, x, layer_norm), network.output)
    q = h @ network.output.weight.T + network.output.bias
    common = network.body.common
    return q if common is None else q + (h @ common.weight.T + common.bias)


def output_rows(network: Network, action: Array) -> Layer:
    """The rows of the output layer of the given actions."""
    return Layer(network.output.weight[action], network.output.bias[action])


def action_values(body: Body, rows: Layer, x: Array, layer_norm: bool = False) -> Array:
    """Q(s, a) of one action for each input x (B, d), given the output rows of the actions."""
    h = _real(features(body, x, layer_norm), rows)
    weight, bias = rows
    if body.common is not None:
        weight, bias = weight + body.common.weight, bias + body.common.bias
    return jnp.sum(h * weight, -1) + bias
