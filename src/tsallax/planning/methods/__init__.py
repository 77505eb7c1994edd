"""How a solver gets from one value function to the next: each method is a frozen object.

All methods see the same certificate, made by one sweep at the current v: Uv, the greedy policy and
the enclosure of V*.  They differ in how far they evaluate that policy before it is improved.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from tsallax.planning.methods.automatic import Automatic
from tsallax.planning.methods.modified_policy_iteration import ModifiedPolicyIteration
from tsallax.planning.methods.policy_iteration import PolicyIteration
from tsallax.planning.methods.value_iteration import ValueIteration
from tsallax.planning.operator import Certificate, Iterate, Operator


class Method(Protocol):
    """A way to solve v = Uv; all that one step passes on to the next is in its state.

    max_stalls: certificates without a smaller error after which it is to be restarted.
    """

    max_stalls: ClassVar[int]

    def init(self) -> Any:
        """The state before the first step."""

    def step(self, operator: Operator, certificate: Certificate, state: Any) -> tuple[Iterate, Any]:
        """The next value function and state, from the certificate of the current one."""


METHODS: dict[str, Callable[[float], Method]] = {
    "auto": Automatic,
    "value_iteration": ValueIteration,
    "policy_iteration": PolicyIteration,
    "modified_policy_iteration": ModifiedPolicyIteration,
}
"""The methods by name; each is made from the tolerance of the solve."""
