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
    from tsallax.deep.fleet import Diverged, Fleet
    from tsallax.deep.fleet_members import Member
    from tsallax.deep.learners import load_agent
    from tsallax.errors import InvalidInput
    from tsallax.explorer.explorer_page import explore
    from tsallax.paper.report import reproduce
    from tsallax.planning.alpha_choice import ChosenAlpha, choose_alpha
    from tsallax.planning.alpha_path import AlphaPath, solve_path
    from tsallax.planning.evaluation import Evaluation, evaluate, gap_certificate, performance_bound
    from tsallax.planning.finite_horizon import FiniteHorizonSolution
    from tsallax.planning.functional_evaluation import FunctionalEvaluation
    from tsallax.planning.functional_mdp import FunctionalMDP
    from tsallax.planning.functional_solution import FunctionalSolution
    from tsallax.planning.mdp import MDP
    from tsallax.planning.simulation import Simulation, simulate
    from tsallax.planning.solution import NotConverged, Solution, SolveInterrupted
    from tsallax.planning.solver import bellman, solve
    from tsallax.regularizer import Hard, Regularizer, Soft, Sparse, Tsallis
    from tsallax.runs.preset_catalogue import preset
    from tsallax.tabular.learning import q_learning
    from tsallax.tabular.step_size import StepSize
    from tsallax.tabular.tabular_result import Interrupted, TabularResult

_MODULES = ("envs", "problems", "simplex")
_NAMES = {
    "deep.ddpg_agent": "DDPG",
    "deep.ddpg_config": "DDPGConfig",
    "deep.deep_q_agent": "DeepQ",
    "deep.deep_q_config": "DeepQConfig",
    "deep.evaluation_episodes": "Episodes",
    "deep.fleet": "Diverged Fleet",
    "deep.fleet_members": "Member",
    "deep.learners": "load_agent",
    "errors": "InvalidInput",
    "explorer.explorer_page": "explore",
    "paper.report": "reproduce",
    "planning.alpha_choice": "ChosenAlpha choose_alpha",
    "planning.alpha_path": "AlphaPath solve_path",
    "planning.evaluation": "Evaluation evaluate gap_certificate performance_bound",
    "planning.finite_horizon": "FiniteHorizonSolution",
    "planning.functional_evaluation": "FunctionalEvaluation",
    "planning.functional_mdp": "FunctionalMDP",
    "planning.functional_solution": "FunctionalSolution",
    "planning.mdp": "MDP",
    "planning.simulation": "Simulation simulate",
    "planning.solution": "NotConverged Solution SolveInterrupted",
    "planning.solver": "bellman solve",
    "regularizer": "Hard Regularizer Soft Sparse Tsallis",
    "runs.preset_catalogue": "preset",
    "tabular.learning": "q_learning",
    "tabular.step_size": "StepSize",
    "tabular.tabular_result": "Interrupted TabularResult",
}
"""The public names of each private module."""
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}

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
