"""Checks of arguments: each returns the value in its plain Python type or raises `InvalidInput`.

A number is a real number of Python or NumPy; a Boolean is not a number.
"""

from __future__ import annotations

import difflib
import math
import numbers
import os
import re
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tsallax.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np


def is_number(value: Any) -> bool:
    """Whether it is one real number, and not a Boolean.

    >>> is_number(1), is_number(1.5), is_number(True), is_number("1")
    (True, True, False, False)
    """
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_integer(value: Any) -> bool:
    """Whether it is one integer, of Python or NumPy, and not a Boolean.

    >>> is_integer(3), is_integer(3.0), is_integer(True)
    (True, False, False)
    """
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    try:
        return is_number(value) and math.isfinite(value)
    except OverflowError:  # an integer beyond the range of float64
        return False


def number(
    name: str,
    value: Any,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    below: float = math.inf,
    at_most: float = math.inf,
) -> float:
    """A finite number within limits.

    >>> number("discount", 0.9, at_least=0, below=1)
    0.9
    >>> number("learning_rate", -1, above=0)
    Traceback (most recent call last):
    tsallax.errors.InvalidInput: learning_rate must be a number above 0, got -1
    """
    if not (_is_finite(value) and above < value < below and at_least <= value <= at_most):
        limits = (("above", above), ("of at least", at_least), ("below", below), ("up to", at_most))
        words = " and ".join(f"{word} {limit:g}" for word, limit in limits if math.isfinite(limit))
        raise InvalidInput(f"{name} must be {f'a number {words}'.strip()}, got {value!r}")
    return float(value)


def count(name: str, value: Any, at_least: int = 1, below: int | None = None) -> int:
    """An integer, at least 1 unless said otherwise.

    >>> count("episodes", 10)
    10
    >>> count("episodes", 2.5)
    Traceback (most recent call last):
    tsallax.errors.InvalidInput: episodes must be an integer of at least 1, got 2.5
    """
    if not (is_integer(value) and value >= at_least and (below is None or value < below)):
        limit = "" if below is None else f" and below {below}"
        raise InvalidInput(
            f"{name} must be an integer of at least {at_least}{limit}, got {value!r}"
        )
    return int(value)


def probability(name: str, value: Any) -> float:
    """A number from 0 to 1.

    >>> probability("epsilon", 0.1)
    0.1
    """
    return number(name, value, at_least=0, at_most=1)


def discount(value: Any) -> float:
    """A discount factor γ in [0, 1).

    >>> discount(1.0)
    Traceback (most recent call last):
    tsallax.errors.InvalidInput: discount must be a number of at least 0 and below 1, got 1.0
    """
    return number("discount", value, at_least=0, below=1)


def flag(name: str, value: Any) -> bool:
    """True or False.

    >>> flag("double", True)
    True
    """
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} must be True or False, got {value!r}")
    return value


def one_of(name: str, value: Any, known: Iterable[str]) -> str:
    """One of some words.

    >>> one_of("explore", "sprase", ("sparse", "soft"))
    Traceback (most recent call last):
    tsallax.errors.InvalidInput: unknown explore 'sprase': choose from sparse, soft
    """
    words = tuple(known)
    if not isinstance(value, str) or value not in words:
        raise InvalidInput(f"unknown {name} {value!r}: choose from {', '.join(words)}")
    return value


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like an unknown one, or None if none is similar.

    >>> nearest("inventry", ("maze", "inventory")), nearest("chess", ("maze", "inventory"))
    ('inventory', None)
    """
    return next(iter(difflib.get_close_matches(word, list(known), 1)), None)


def seed(value: Any, name: str = "seed") -> int:
    """A seed of random numbers, from 0 to 2^32 - 1.

    >>> seed(7)
    7
    """
    if not (is_integer(value) and 0 <= value < 2**32):
        raise InvalidInput(f"{name} must be an integer from 0 to 2^32 - 1, got {value!r}")
    return int(value)


def generator(value: Any) -> np.random.Generator:
    """A random number generator, given itself or by its seed.

    >>> int(generator(0).integers(10))
    8
    """
    import numpy as np

    if isinstance(value, np.random.Generator):
        return value
    if not (is_integer(value) and value >= 0):
        raise InvalidInput(
            f"seed must be an integer of at least 0 or a numpy.random.Generator, got {value!r}"
        )
    return np.random.default_rng(int(value))


def entropic_index(q: Any) -> float:
    """The index q > 0 of a Tsallis entropy.

    >>> entropic_index(1.5)
    1.5
    """
    if not is_number(q):
        raise InvalidInput(f"q must be a plain number, not {type(q).__name__}")
    if not 0 < q < math.inf:
        raise InvalidInput(f"q must be positive and finite, got {q}")
    return float(q)


def input_file(path: str | PathLike[str]) -> Path:
    """The path of a file that is there, and is no folder.

    >>> input_file("absent.npz")
    Traceback (most recent call last):
    tsallax.errors.InvalidInput: absent.npz: no such file
    """
    file = Path(path)
    if file.is_dir():
        raise InvalidInput("is a folder, give the name of a file", source=path)
    if not file.is_file():
        raise InvalidInput("no such file", source=path)
    return file


def output_file(
    name: str,
    path: str | PathLike[str],
    *sources: str | PathLike[str] | None,
    ending: str = "",
) -> Path:
    """The path of a file that can be written: its folder is there, and it is no folder itself.

    It must have the ending that is asked for, so that no file of another kind is replaced, and must
    be none of the files `sources`, from which is read.

    >>> output_file("--out", "missing/solution.npz")
    Traceback (most recent call last):
    tsallax.errors.InvalidInput: --out missing/solution.npz: there is no folder missing
    """
    file = Path(path)
    if not str(path) or file.is_dir():
        raise InvalidInput(f"{name} {str(path)!r}: is a folder, give the name of a file")
    if ending and file.suffix != ending:
        raise InvalidInput(f"{name} {path}: the name must end in {ending}")
    folder = file.parent
    if not folder.is_dir():
        raise InvalidInput(f"{name} {path}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise InvalidInput(f"{name} {path}: the folder {folder} cannot be written to")
    for source in sources:
        both = source is not None and file.exists() and os.path.exists(source)
        if both and file.samefile(str(source)):
            raise InvalidInput(f"{name} {path}: is the file that is read, give another name")
    return file


def file_ending(path: str | PathLike[str], known: Iterable[str]) -> str:
    """The ending of a file's name: one of those known, or none.

    What follows a dot is no ending where it is a number or a date.

    >>> file_ending("model.drn", (".npz", ".drn")), file_ending("alpha_0.5", (".npz", ".drn"))
    ('.drn', '')
    >>> file_ending("model.csv", (".npz", ".drn"))
    Traceback (most recent call last):
    tsallax.errors.InvalidInput: model.csv: unknown ending .csv: choose from .npz, .drn
    """
    ending = Path(path).suffix
    endings = tuple(known)
    if re.fullmatch(r"\.\d[-+_e\d]*", ending):
        return ""
    if ending and ending not in endings:
        problem = f"unknown ending {ending}: choose from {', '.join(endings)}"
        raise InvalidInput(problem, source=path)
    return ending


def output_folder(path: str | PathLike[str]) -> Path:
    """A folder to write to, made if need be."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InvalidInput(f"{folder}: is a file, give the name of a folder") from None
    except OSError as error:
        raise InvalidInput(f"{folder}: cannot be made: {error.strerror or error}") from None
    if not os.access(folder, os.W_OK):
        raise InvalidInput(f"{folder}: cannot be written to")
    return folder
