"""Planning and reinforcement learning with sparse, multi-modal policies.

>>> import tsallax
>>> mdp = tsallax.problems.forest(states=3, discount=0.9)
>>> solution = tsallax.solve(mdp, tsallax.Sparse(alpha=0.5))
>>> bool(((solution.lower <= solution.value) & (solution.value <= solution.upper)).all())
True
"""

import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import TYPE_CHECKING, Any

try:
    __version__ = version("tsallax")
except PackageNotFoundError:  # a source tree that is not installed
    __version__ = "0.1.0"

if TYPE_CHECKING:
    from tsallax import envs, problems, simplex
    from tsallax.errors import InvalidInput
    from tsallax.evaluate import Evaluation, evaluate, gap_certificate, performance_bound
    from tsallax.learn.agents import DeepQ
    from tsallax.learn.ddpg_agent import DDPG
    from tsallax.learn.q_learning import q_learning
    from tsallax.learn.schedule import StepSize
    from tsallax.learn.tabular import Interrupted, TabularResult
    from tsallax.mdp import MDP
    from tsallax.regularizer import Hard, Regularizer, Soft, Sparse, Tsallis
    from tsallax.solve import NotConverged, Solution, bellman, solve

_HOME = {
    "envs": "tsallax.envs",
    "simplex": "tsallax.simplex",
    "problems": "tsallax.problems",
    "InvalidInput": "tsallax.errors",
    "Hard": "tsallax.regularizer",
    "Soft": "tsallax.regularizer",
    "Sparse": "tsallax.regularizer",
    "Tsallis": "tsallax.regularizer",
    "Regularizer": "tsallax.regularizer",
    "MDP": "tsallax.mdp",
    "solve": "tsallax.solve",
    "bellman": "tsallax.solve",
    "Solution": "tsallax.solve",
    "NotConverged": "tsallax.solve",
    "evaluate": "tsallax.evaluate",
    "Evaluation": "tsallax.evaluate",
    "performance_bound": "tsallax.evaluate",
    "gap_certificate": "tsallax.evaluate",
    "DDPG": "tsallax.learn.ddpg_agent",
    "DeepQ": "tsallax.learn.agents",
    "q_learning": "tsallax.learn.q_learning",
    "StepSize": "tsallax.learn.schedule",
    "TabularResult": "tsallax.learn.tabular",
    "Interrupted": "tsallax.learn.tabular",
}
_MODULES = ("envs", "problems", "simplex")

__all__ = [*sorted(_HOME), "__version__"]


class _Package(ModuleType):
    """Keeps `tsallax.solve` the function when the module of that name is imported, and so on."""

    def __setattr__(self, name: str, value: Any) -> None:
        public = name in _HOME and name not in _MODULES
        if not (public and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import tsallax` itself is quick."""
    if name not in _HOME:
        raise AttributeError(f"module 'tsallax' has no attribute {name!r}")
    module = import_module(_HOME[name])
    value = module if name in _MODULES else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
