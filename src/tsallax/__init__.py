"""Planning and reinforcement learning with sparse, multi-modal policies.

>>> import tsallax
>>> mdp = tsallax.problems.forest(states=3, discount=0.9)
>>> solution = tsallax.solve(mdp, tsallax.Sparse(alpha=0.5))
>>> bool(((solution.lower <= solution.value) & (solution.value <= solution.upper)).all())
True

Everything public is a name of this package or of its modules `simplex`, `problems` and `envs`;
all other modules are private. A name is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tsallax.provenance import __version__

if TYPE_CHECKING:
    from tsallax import envs, problems, simplex
    from tsallax.deep.ddpg_agent import DDPG
    from tsallax.deep.ddpg_config import DDPGConfig
    from tsallax.deep.deep_q_agent import DeepQ
    from tsallax.deep.deep_q_config import DeepQConfig
    from tsallax.deep.evaluation_episodes import Episodes
    from tsallax.deep.fleet import Diverged, Fleet, Member
    from tsallax.deep.load import load_agent
    from tsallax.errors import InvalidInput
    from tsallax.paper.report import reproduce
    from tsallax.planning.evaluation import (
        Evaluation,
        evaluate,
        gap_certificate,
        performance_bound,
    )
    from tsallax.planning.mdp import MDP
    from tsallax.planning.solution import NotConverged, Solution
    from tsallax.planning.solver import bellman, solve
    from tsallax.regularizer import Hard, Regularizer, Soft, Sparse, Tsallis
    from tsallax.tabular.learning import q_learning
    from tsallax.tabular.step_size import StepSize
    from tsallax.tabular.tabular_result import Interrupted, TabularResult

_MODULES = ("envs", "problems", "simplex")
_MODULE_OF = {
    "DDPG": "deep.ddpg_agent",
    "DDPGConfig": "deep.ddpg_config",
    "DeepQ": "deep.deep_q_agent",
    "DeepQConfig": "deep.deep_q_config",
    "Diverged": "deep.fleet",
    "Episodes": "deep.evaluation_episodes",
    "Evaluation": "planning.evaluation",
    "Fleet": "deep.fleet",
    "Hard": "regularizer",
    "Interrupted": "tabular.tabular_result",
    "InvalidInput": "errors",
    "MDP": "planning.mdp",
    "Member": "deep.fleet",
    "NotConverged": "planning.solution",
    "Regularizer": "regularizer",
    "Soft": "regularizer",
    "Solution": "planning.solution",
    "Sparse": "regularizer",
    "StepSize": "tabular.step_size",
    "TabularResult": "tabular.tabular_result",
    "Tsallis": "regularizer",
    "bellman": "planning.solver",
    "evaluate": "planning.evaluation",
    "gap_certificate": "planning.evaluation",
    "load_agent": "deep.load",
    "performance_bound": "planning.evaluation",
    "q_learning": "tabular.learning",
    "reproduce": "paper.report",
    "solve": "planning.solver",
}

__all__ = ["__version__", *_MODULES, *_MODULE_OF]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import tsallax` itself is quick."""
    if name in _MODULES:
        return import_module(f"tsallax.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'tsallax' has no attribute {name!r}")
    value = getattr(import_module(f"tsallax.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
