"""Models that a command names: a file, an environment, a problem, or `module:name`.

The options of commands that belong to a model are defined here, too.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import warnings
from operator import attrgetter
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tsallax import checks
from tsallax.cli.arguments import key_values
from tsallax.errors import InvalidInput, one_line, place_in_user_code

if TYPE_CHECKING:
    from tsallax.planning.functional_mdp import FunctionalMDP
    from tsallax.planning.mdp import MDP


DEFAULT_DISCOUNT = 0.99
"""The discount of a Gymnasium environment, which has none of its own."""
FILE_MODULE = "tsallax_model"
"""The name of a module that is given as a file."""
PROBLEMS: dict[str, dict[str, Any]] = {
    "multigoal": {},
    "unicycle": {},
    "gridworld": {"rows": 10},
    "maze": {"rows": 20},
    "garnet": {"states": 100, "actions": 5, "branching": 5},
    "forest": {},
    "inventory": {},
    "perishables": {},
    "savings": {},
}
"""The functions of `tsallax.problems`, with values for arguments that have no default."""
SOURCES = (
    "A file written by MDP.save (.npz, .umb, .drn, .tra), the id of a Gymnasium toy-text "
    f"environment, a problem ({', '.join(PROBLEMS)}), or module:name or path.py:name of an MDP, of "
    "a model from functions, or of a function without arguments that returns one"
)
"""The help of an argument that names a model."""
DiscountOption = Annotated[
    float | None,
    typer.Option(help=f"gamma.  [default: the model's; {DEFAULT_DISCOUNT} for an environment]"),
]
RewardsOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="One of several reward structures in a file of a model checker."
    ),
]
EnvOptions = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="Passed to gymnasium.make, or to the function of a problem; may be repeated.",
    ),
]


def read_model(
    source: str,
    discount: float | None,
    options: list[str] | None = None,
    rewards: str | None = None,
    stored: bool = False,
) -> Any:
    """The model of a file, a problem, a function or an environment, with the discount asked for.

    With `stored`, the transitions of a model from functions are stored.
    """
    from tsallax.planning.formats.exchange import FORMATS
    from tsallax.planning.mdp import MDP

    if source.endswith((".py", ".py:")):
        problem = "is Python: name the MDP, or the function that returns it"
        path = source.removesuffix(":")
        raise InvalidInput(f"{problem}, such as {path}:NAME", source=checks.input_file(path))
    if source.endswith((".npz", *FORMATS)) or os.path.isfile(source):
        refuse_unused(source, "a file", env_option=options)
        return MDP.load(source, discount, rewards)
    if source in PROBLEMS:
        refuse_unused(source, "a problem", rewards=rewards)
        model = _problem(source, key_values("--env-option", options))
        return _finished(model, discount, stored)
    if names_model(source):
        refuse_unused(source, "a model in Python", env_option=options, rewards=rewards)
        return _finished(make_model(source), discount, stored)
    refuse_unused(source, "an environment", rewards=rewards)
    search_current_folder(source)
    gamma = DEFAULT_DISCOUNT if discount is None else discount
    arguments = key_values("--env-option", options)
    try:
        with warnings.catch_warnings(action="ignore"):
            return MDP.from_gymnasium(source, gamma, **arguments)
    except InvalidInput:
        if os.path.isdir(source) or os.path.splitext(source)[1][1:].isalpha():
            checks.input_file(source)
        _check_name(source)
        raise


def refuse_unused(source: str, kind: str, **given: object) -> None:
    """Refuse options that a kind of source has no use for.

    >>> refuse_unused("mdp.npz", "a file", env_option=["rows=3"])
    Traceback (most recent call last):
    tsallax.errors.InvalidInput: mdp.npz: a file has no options: leave env_option out
    """
    for name, value in given.items():
        if value:
            what = {"env_option": "options", "rewards": "reward structures"}[name]
            raise InvalidInput(f"{kind} has no {what}", source=source, omit=name)


def _check_name(name: str) -> None:
    """Refuse a name that is neither of a problem nor of an environment, with the nearest one."""
    from tsallax.envs.gymnasium.gymnasium_make import check_id

    known = f"the problems are {', '.join(PROBLEMS)}"
    near = checks.nearest(name, PROBLEMS)
    try:
        check_id(name)
    except InvalidInput as error:
        if near is not None:
            problem = f"there is no such problem: did you mean {near}?"
            raise InvalidInput(f"{problem} ({known})", source=name) from None
        raise InvalidInput(f"{error.problem} ({known})", source=name) from None


def _finished(model: Any, discount: float | None, stored: bool) -> Any:
    """A model as a command needs it."""
    from tsallax.planning.functional_mdp import FunctionalMDP

    if stored and isinstance(model, FunctionalMDP):
        model = model.to_mdp(names=True)
    return model if discount is None else model.with_discount(discount)


def _problem(name: str, options: dict[str, Any]) -> Any:
    from tsallax import problems

    make = getattr(problems, name)
    known = list(inspect.signature(make).parameters)
    for key in options:
        if key not in known:
            near = checks.nearest(key, known)
            question = f": did you mean {near}?" if near else ""
            problem = f"{name} has no argument {key}{question} (it has {', '.join(known)})"
            raise InvalidInput(problem, source="--env-option")
    given = {key: tuple(v) if isinstance(v, list) else v for key, v in options.items()}
    try:
        return make(**{**PROBLEMS[name], **given})
    except TypeError as error:
        raise InvalidInput(_reason(error), source=name) from None


def search_current_folder(source: str | None) -> None:
    """Let `module:name` name a module of the current folder, as it may in `python -m`.

    Only a source given on the command line may do so, never one that is read from a file.
    """
    from tsallax.envs.gymnasium.gymnasium_make import names_module

    if names_module(source):
        _search(os.getcwd())


def _search(folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(0, folder)


def names_model(source: str) -> bool:
    """Whether a source has the form `module:name` or `path.py:name`.

    >>> names_model("models.stock:large"), names_model("models/stock.py:Stock.large")
    (True, True)
    >>> names_model("FrozenLake-v1"), names_model("package:Maze-v0")
    (False, False)
    """
    module, colon, name = source.rpartition(":")
    is_name = all(part.isidentifier() for part in name.split("."))
    return bool(colon and module) and (is_name or module.endswith(".py"))


def make_model(source: str) -> MDP | FunctionalMDP:
    """The model with a name in a module, or that the function of this name returns.

    >>> make_model("tsallax.problems:forest")
    MDP(3 states, 2 actions, 6 pairs, 9 transitions, discount 0.9, 0.0 MB)
    """
    from tsallax.planning.functional_mdp import FunctionalMDP
    from tsallax.planning.mdp import MDP

    place, _, name = source.rpartition(":")
    module = _load(place, source)
    try:
        found: Any = attrgetter(name)(module)
    except AttributeError:
        near = None if "." in name else checks.nearest(name, vars(module))
        question = f": did you mean {near}?" if near else ""
        raise InvalidInput(f"{place} has no {name}{question}", source=source) from None
    if isinstance(found, MDP | FunctionalMDP):
        return found
    if not callable(found):
        kind = type(found).__name__
        problem = f"{name} must be an MDP or a function that returns one, not {kind}"
        raise InvalidInput(problem, source=source)
    try:
        model: Any = found()
    except Exception as error:
        raise InvalidInput(f"{name}() fails with {_reason(error)}", source=source) from error
    if not isinstance(model, MDP | FunctionalMDP):
        kind = type(model).__name__
        raise InvalidInput(f"{name}() must return an MDP, not {kind}", source=source)
    return model


def _load(name: str, source: str) -> ModuleType:
    """A module by its name, also from the current folder, or from a file and with its folder."""
    try:
        if not name.endswith(".py"):
            search_current_folder(source)
            return importlib.import_module(name)
        spec = importlib.util.spec_from_file_location(FILE_MODULE, name)
        if spec is None or spec.loader is None or not os.path.isfile(name):
            raise InvalidInput(f"{name}: no such file", source=source)
        _search(os.path.dirname(os.path.abspath(name)))  # as Python does for a script
        module = importlib.util.module_from_spec(spec)
        sys.modules[FILE_MODULE] = module
        spec.loader.exec_module(module)
        return module
    except InvalidInput:
        raise
    except Exception as error:
        raise InvalidInput(f"{name} cannot be imported: {_reason(error)}", source=source) from error


def _reason(error: Exception) -> str:
    """The type and message of an error in one line, and where in the user's code it arose."""
    text = one_line(error)
    place = "" if ", line " in text else place_in_user_code(error)
    return f"{type(error).__name__}: {text}{place}" if text else f"{type(error).__name__}{place}"
