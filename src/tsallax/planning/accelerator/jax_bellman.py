"""The Bellman operator in JAX: the same certificates as `planning.bellman`, on any device.

The rounding of a sweep is bounded as on the CPU: a sum of n terms in any order is off by at most
n u sum|terms|, where u is 2^-53 in float64 and 2^-24 in float32.  Models from functions divide the
probabilities by their sum, which is another such sum.  In float32 the model's own numbers are
rounded, too, which the bound includes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from tsallax.errors import InvalidInput
from tsallax.planning.accelerator.action_lists import ActionLists
from tsallax.planning.accelerator.device_sweep import SweepModel
from tsallax.planning.accelerator.functional_sweep import FunctionalSweep
from tsallax.planning.accelerator.krylov import bicgstab
from tsallax.planning.accelerator.stored_sweep import StoredSweep
from tsallax.planning.operator import Certificate, Iterate, NewtonStart, enclosure_ends
from tsallax.planning.precision import double_precision
from tsallax.planning.validation import ULPS
from tsallax.regularizer import Regularizer
from tsallax.time_limits import check_deadline

MAX_FOLLOW_COST = 0.5
"""The largest time of a sweep of a policy, in sweeps of U, at which such sweeps are made."""

MAX_SYSTEM_COST = 1.25
"""The same at which linear systems of policies are solved, which need far fewer products."""

MIN_LIST_SIZE = 16
"""The smallest default length of the list of actions that a sweep makes for each state."""

ACTIONS_PER_LISTED = 32
"""The number of actions of a state for each entry of its list, where that is the longer list."""


class CertificatePolicy(NamedTuple):
    """The greedy policy of a sweep, with the largest number of actions in use in a state."""

    greedy: Any
    max_support: int
    value: Array  # v, in which it is greedy


@dataclass(frozen=True, eq=False)
class GreedyPolicy:
    """The greedy policy of a model from functions, computed for the states that are asked for."""

    operator: JaxBellman
    policy: CertificatePolicy
    support_ratio: float

    def rows(self, states: NDArray[Any]) -> NDArray[np.float64]:
        """pi(a|s) of some states, a row for each."""
        operator = self.operator
        assert isinstance(operator.model, FunctionalSweep)
        with operator.scope():
            return operator.model.policy_rows(operator.regularizer, self.policy.greedy, states)

    @property
    def list_size(self) -> int:
        """The number of actions that `lists` has of every state."""
        return self.operator.list_size(self.policy.max_support)

    def lists(self) -> ActionLists:
        """The actions that the policy uses in every state, and their probabilities."""
        with self.operator.scope():
            found: ActionLists = self.operator.prepared(self.policy)
            return found

    def most_probable(self) -> NDArray[np.int32]:
        """The most probable action of every state."""
        operator = self.operator
        assert isinstance(operator.model, FunctionalSweep)
        with operator.scope():
            return operator.model.most_probable(
                operator.regularizer, self.policy.greedy, self.list_size
            )


class JaxBellman:
    """The `Operator` of a model whose sweeps run in JAX, and a regulariser.

    Args:
        model: computes the sweeps.
        regularizer: its alpha and index are those of U.
        discount: gamma.
        single: compute in float32; bounds are then those of float32.
        device: where to compute; None for JAX's default.
    """

    def __init__(
        self,
        model: SweepModel,
        regularizer: Regularizer,
        discount: float,
        single: bool = False,
        device: Any = None,
    ) -> None:
        self.model, self.regularizer, self.discount = model, regularizer, discount
        self.n_states = model.n_states
        self._single, self._device = single, device
        self.precision = "float32" if single else "float64"
        self._unit = 2.0**-24 if single else 2.0**-53
        self._dtype = jnp.float32 if single else jnp.float64
        self._bonus = float(regularizer.alpha) * (1.0 + float(regularizer.max_entropy(model.width)))
        row_error = (model.terms + 16) * self._unit  # of a row's exact sum, from one
        if isinstance(model, StoredSweep):
            row_error += ULPS  # models from functions divide their rows by the sum instead
        self._shift_high = discount * (1.0 + row_error)
        self._shift_low = max(discount * (1.0 - row_error), 0.0)
        if self._shift_high >= 1.0:
            raise InvalidInput(f"discount {discount!r} is too close to 1 for {self.precision}")
        with self.scope():
            self._terminal, self.ends, self._reward = model.survey
        if not math.isfinite(self._reward):
            model.refuse()
        if self.ends:
            self._shift_low = 0.0

    def scope(self) -> AbstractContextManager[Any]:
        """The precision and device of the operator."""
        scope = ExitStack()
        scope.enter_context(double_precision(not self._single))
        if self._device is not None:
            scope.enter_context(jax.default_device(self._device))
        return scope

    @property
    def scale(self) -> float:
        """A bound on |V*| (1 - gamma): the largest reward and entropy bonus of one step."""
        return self._reward + self._bonus

    @property
    def sweep_cost(self) -> float:
        """The time of a sweep, in passes over the transitions."""
        return 1.0

    def newton_cost(self, support_ratio: float) -> float:
        """About the time of policy iteration: five steps of BiCGSTAB, without a preconditioner."""
        return 5.0 * (1.0 + 60.0 * support_ratio)

    def start(self, v: Any) -> Iterate:
        """v, or 0, on the device; 0 at terminal states."""
        with self.scope():
            placed = self.model.place(np.zeros(self.n_states) if v is None else v)
        return Iterate(placed if v is None else self.shifted(placed, 0.0), self._sweep_list(1))

    def certify(self, iterate: Iterate) -> Certificate:
        """Uv, the policy that is greedy in v, and the enclosure of V* that they prove."""
        with self.scope():
            found = self.model.sweep(self.regularizer, iterate.value, iterate.hint)
            numbers = (found.low, found.high, found.size, found.pairs_used, found.max_support)
            low, high, size, used, support = (x.item() for x in jax.device_get(numbers))
            valid = bool(found.valid)
        if not valid:
            self.model.refuse()  # returns where the values overflow
            low, high, size = -math.inf, math.inf, math.inf
        rounding = self.rounding(size)
        down, up = enclosure_ends((low, high), (self._shift_low, self._shift_high))
        rounding += 4 * self._unit * max(-down, up, 0.0)
        return Certificate(
            updated=found.updated,
            policy=CertificatePolicy(found.policy, int(support), iterate.value),
            hint=self._sweep_list(int(support)),
            pairs_used=int(used),
            n_pairs=self.model.n_pairs,
            change=(low, high),
            low=down - rounding,
            high=up + rounding,
            rounding=rounding,
            size=size,
        )

    def shifted(self, v: Array, by: float) -> Array:
        """v + by, with the terminal states left at zero."""
        with self.scope():
            moved = v + jnp.asarray(by, self._dtype)
            return jnp.where(self._terminal, 0.0, moved) if self.ends else moved

    def policy_sweeps(
        self, certificate: Certificate, v: Array, max_sweeps: int, max_span: float
    ) -> tuple[Array, int, float]:
        """v <- r_pi + alpha Omega(pi) + gamma T_pi v for the certificate's policy, repeated.

        None are made where they would take hardly less time than sweeps of U.
        """
        if self._follow_cost(certificate) > MAX_FOLLOW_COST:
            return v, 0, math.inf
        sweeps, span = 0, math.inf
        with self.scope():
            policy = self.prepared(certificate.policy)
            while sweeps < max_sweeps and span > max_span:
                check_deadline()
                new = self.model.follow(policy, v)
                span = float(_span(new, v))
                v, sweeps = new, sweeps + 1
        return v, sweeps, span

    def on_host(self, v: Any) -> NDArray[np.float64]:
        """A value function as an array of NumPy."""
        return np.asarray(v).astype(np.float64)

    def pair_policy(self, policy: CertificatePolicy) -> NDArray[np.float64]:
        """The probability of every pair of a stored MDP."""
        assert isinstance(self.model, StoredSweep)
        with self.scope():
            return self.model.pair_policy(self.regularizer, policy.greedy)

    def greedy(self, certificate: Certificate) -> GreedyPolicy:
        """The policy of a certificate, for the states that will be asked for."""
        return GreedyPolicy(self, certificate.policy, certificate.support_ratio)

    def action_values(
        self, v: NDArray[np.float64]
    ) -> Callable[[NDArray[Any]], NDArray[np.float64]]:
        """Q(s, a) = r + gamma E v of a model from functions, as rows for the states asked for."""
        model = self.model
        assert isinstance(model, FunctionalSweep)
        with self.scope():
            post_values = model.post_values(model.place(v))

        def rows(states: NDArray[Any]) -> NDArray[np.float64]:
            with self.scope():
                return model.action_value_rows(post_values, states)

        return rows

    def action_value_rounding(self, *values: NDArray[np.float64]) -> float:
        """A bound on the rounding of Q for these values, their own rounding included."""
        terms = self.model.roundings + 32
        size = max(float(np.abs(v).max()) for v in values)
        flushed = float(np.finfo(self.precision).tiny) * 8 * terms
        return self._unit * terms * (self._reward + size) + flushed

    def newton_start(self, certificate: Certificate) -> NewtonStart:
        """The certificate itself."""
        return NewtonStart(certificate, certificate.updated, None, 0)

    def policy_value(
        self, certificate: Certificate, guess: Array, tolerance: float, order: None
    ) -> tuple[Array, float]:
        """The value of the certificate's policy by BiCGSTAB, and its residual.

        Uv instead where a product would take much longer than a sweep of U.
        """
        if self._follow_cost(certificate) > MAX_SYSTEM_COST:
            return certificate.updated, certificate.span
        with self.scope():
            policy = self.prepared(certificate.policy)
            base = self.model.follow(policy, jnp.zeros_like(guess))

            def matrix(x: Array) -> Array:
                check_deadline()
                product: Array = _matrix(x, base, self.model.follow(policy, x))
                return product

            correction, residual = bicgstab(
                matrix, self.model.follow(policy, guess) - guess, tolerance
            )
            return guess + correction, residual

    def improved(self, v: Array, lower: Array, order: None, thorough: bool) -> tuple[Array, int]:
        """v itself."""
        return v, 0

    def _follow_cost(self, certificate: Certificate) -> float:
        """The time of a sweep of the certificate's policy, in sweeps of U."""
        return self.model.follow_cost(self.list_size(certificate.policy.max_support))

    def prepared(self, policy: CertificatePolicy) -> Any:
        """The policy as a list of the actions that it uses in every state."""
        size = self.list_size(policy.max_support)
        return self.model.prepared(self.regularizer, policy.greedy, size)

    def list_size(self, support: int) -> int:
        """The length of lists for a policy that uses up to `support` actions of a state.

        A power of two, or all actions: what works on lists is compiled for each length.
        """
        return min(1 << max(support - 1, 0).bit_length(), self.model.width)

    def _sweep_list(self, support: int) -> int:
        """The length of a sweep's lists, after one whose policy used `support` actions of a state.

        Its policy may use a few more. Lists are short where policies are not evaluated, or where
        long ones would take much memory: `prepared` makes new ones where they do not suffice.
        """
        size, most = self.list_size(support + support // 8), self.model.longest_list
        if size > most or self.model.follow_cost(size) > MAX_FOLLOW_COST:
            size = 1
        short = self.list_size(max(MIN_LIST_SIZE, self.model.width // ACTIONS_PER_LISTED))
        return max(size, min(short, most))

    def compacted(self, certificate: Certificate) -> Certificate | None:
        """The certificate without what takes much memory, or None where a sweep is needed."""
        policy = certificate.policy
        greedy = self.model.compacted(policy.greedy)
        if greedy is None:
            return None
        return certificate._replace(policy=policy._replace(greedy=greedy))

    def rounding(self, size: float) -> float:
        """How far the enclosure moves by the rounding of one sweep (running error analysis)."""
        dot = (self.model.roundings + 16) * (self._reward + size)
        maximum = 8 * (self.model.width + 8) * self._bonus
        operations = 8 * (self.model.roundings + self.model.width + 16)
        flushed = float(np.finfo(self.precision).tiny) * operations  # XLA makes denormals zero
        return (self._unit * (dot + maximum) + flushed) / (1.0 - self._shift_high)


@jax.jit
def _span(new: Array, old: Array) -> Array:
    change = new - old
    return jnp.max(change) - jnp.min(change)


@jax.jit
def _matrix(x: Array, base: Array, followed: Array) -> Array:
    """(I - gamma T_pi) x, from base = r_pi and followed = r_pi + gamma T_pi x."""
    return x - (followed - base)
