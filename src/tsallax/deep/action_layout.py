"""`ActionLayout`: which outputs of a Q network belong to which dimension of an action.

An action is one number, or, factored, one number for each dimension. The network has an output for
each choice of each dimension, in the order of the dimensions; a mask has the same order.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray


@dataclass(frozen=True)
class ActionLayout:
    """The number of choices in each dimension of an action, and whether it is factored.

    Not factored, all combinations of choices are the outputs of a single dimension.

    >>> ActionLayout((3, 2), factored=True).n_outputs, ActionLayout((3, 2)).n_outputs
    (5, 6)
    >>> print(ActionLayout((3, 2), factored=True).split(jnp.arange(5.0)))
    [[  0.   1.   2.]
     [  3.   4. -inf]]
    """

    choices: tuple[int, ...]
    factored: bool = False

    @cached_property
    def sizes(self) -> NDArray[np.int32]:
        """The number of outputs of each dimension."""
        return np.array(self.choices if self.factored else [math.prod(self.choices)], np.int32)

    @cached_property
    def offsets(self) -> NDArray[np.int32]:
        """The first output of each dimension."""
        return np.cumsum(self.sizes, dtype=np.int32) - self.sizes

    @property
    def n_outputs(self) -> int:
        """The number of outputs of the network, and the length of a mask."""
        return int(self.sizes.sum())

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an action."""
        return (len(self.choices),) if self.factored else ()

    def split(self, outputs: Array) -> Array:
        """Outputs (..., n_outputs) as (..., dimensions, most choices), -inf where there is none."""
        dimensions, most = len(self.sizes), int(self.sizes.max())
        if dimensions * most == self.n_outputs:
            return outputs.reshape(*outputs.shape[:-1], dimensions, most)
        beyond = jnp.full((*outputs.shape[:-1], 1), -jnp.inf, outputs.dtype)
        index = np.arange(most) + self.offsets[:, None]
        index = np.where(np.arange(most) < self.sizes[:, None], index, self.n_outputs)
        return jnp.concatenate([outputs, beyond], -1)[..., index]

    def join(self, rows: Array) -> Array:
        """The inverse of `split`."""
        dimension = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return rows[..., dimension, np.arange(self.n_outputs) - self.offsets[dimension]]

    def numbers(self, action: Array) -> Array:
        """Actions (..., dimensions) as the environment's loop takes them."""
        return action if self.factored else action[..., 0]

    def output_index(self, action: Array) -> Array:
        """The outputs (..., dimensions) that belong to actions."""
        return (action if self.factored else action[..., None]) + self.offsets
