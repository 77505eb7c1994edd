"""The networks of learners in NumPy and double precision, written from the formulas."""

from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def double(tree: Any) -> Any:
    """The arrays of a pytree in double precision."""
    return jax.tree.map(lambda x: np.asarray(x, np.float64), tree)


def forward(net: Any, x: Floats) -> tuple[list[Floats], Floats]:
    """The input and the outputs of all hidden layers, and the output."""
    layers = [x]
    for weight, bias in net.body.hidden:
        layers.append(np.maximum(layers[-1] @ weight + bias, 0))
    q = layers[-1] @ net.output.weight.T + net.output.bias
    if net.body.common is not None:
        q = q + layers[-1] @ net.body.common.weight.T + net.body.common.bias
    return layers, q


def backward(net: Any, layers: list[Floats], dq: Floats) -> tuple[Any, Floats]:
    """The gradients of the weights and of the input, from that of the output."""
    gradient = jax.tree.map(np.zeros_like, net)
    gradient.output.weight[:], gradient.output.bias[:] = dq.T @ layers[-1], dq.sum(0)
    dh = dq @ net.output.weight
    if net.body.common is not None:
        total = dq.sum(1, keepdims=True)
        gradient.body.common.weight[:] = total.T @ layers[-1]
        gradient.body.common.bias[:] = total.sum(0)
        dh = dh + total @ net.body.common.weight
    for i in reversed(range(len(net.body.hidden))):
        dh = dh * (layers[i + 1] > 0)
        gradient.body.hidden[i].weight[:] = layers[i].T @ dh
        gradient.body.hidden[i].bias[:] = dh.sum(0)
        dh = dh @ net.body.hidden[i].weight.T
    return gradient, dh
