"""The explorer's page: `explore` solves a model for many settings and writes one HTML file."""

from __future__ import annotations

import json
import os
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.explorer.exploration import (
    DEFAULT_QS,
    N_ALPHAS,
    Exploration,
    check_size,
    solve_settings,
)
from tsallax.explorer.state_layout import named_positions, read_positions, widened
from tsallax.files.atomic import write_text
from tsallax.interrupts import interruptible
from tsallax.planning.bellman import check_problem
from tsallax.planning.forms import Floats, numbers
from tsallax.planning.functional_mdp import FunctionalMDP
from tsallax.planning.mdp import MDP
from tsallax.progress import bar
from tsallax.regularizer import Hard, Tsallis
from tsallax.web.document import asset, render_document

CHANCES = 65535
"""Probabilities of transitions are stored in units of one over this."""
TYPES = {"uint16": "<u2", "int32": "<i4", "float32": "<f4"}
"""Types of the arrays of a page, in the byte order in which they are stored."""


@interruptible()
def explore(
    mdp: MDP | FunctionalMDP,
    path: str | os.PathLike[str],
    *,
    alphas: Sequence[float] | None = None,
    qs: Sequence[float] = DEFAULT_QS,
    tolerance: float | None = None,
    positions: ArrayLike | None = None,
    name: str = "An MDP",
    report: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Path:
    """Solve an MDP for many settings, and write a page on which to move through the solutions.

    The page is one HTML file that needs no network. It shows values and policies on a map where
    the states have positions: those given, or those of states that are named by their coordinates,
    such as "(0.2, -1)" for a point (x, y) and "4,2" for the cell in row 4 and column 2.

    Args:
        mdp: the problem; a model from functions is stored first.
        path: of the page, with the ending `.html`.
        alphas: the coefficients; default: twelve that suit the action values of the problem.
        qs: the entropic indices: 1 is soft, and above 1 policies are sparse.
        tolerance: the largest |value - V*|; default: 1e-7 of the largest hard value, or
            the next power of ten that float64 can prove.
        positions: of the states, shape (S, 2) or (S, 3); the third coordinate is a layer.
        name: of the problem, in the page's title.
        report: a page of `reproduce` to link to.
        progress: show a progress bar; default: on a terminal, for more than two seconds.

    Returns:
        The path of the page.

    >>> import tempfile
    >>> from tsallax import problems
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = explore(problems.gridworld(3), f"{folder}/page.html", alphas=[0.1, 1], qs=[1, 2])
    ...     page.stat().st_size < 100_000
    True
    """
    target = checks.output_file("path", path, report, ending=".html")
    check_problem("explore", mdp, Hard(), (MDP, FunctionalMDP))
    indices = [checks.entropic_index(q) for q in _several("qs", qs)]
    grid = None if alphas is None else _several("alphas", alphas)
    for alpha in grid or ():
        Tsallis(alpha, 2)
    settings = 1 + len(indices) * (N_ALPHAS if grid is None else len(grid))
    if tolerance is not None:
        tolerance = checks.number("tolerance", tolerance, above=0)
    stored = _stored(mdp, settings)
    if positions is not None:
        places: Floats | None = read_positions(positions, stored.n_states, stored.state_names)
    else:
        places = named_positions(stored.state_names)
        if isinstance(mdp, FunctionalMDP) and places is not None:
            places = widened(places)
    with bar("solving", progress) as share:
        found = solve_settings(stored, grid, indices, tolerance, share)
    link = None if report is None else os.path.relpath(report, target.parent)
    write_text(target, render_explorer(found, places, name, link))
    return target


def render_explorer(
    found: Exploration, positions: Floats | None, name: str, report: str | None = None
) -> str:
    """The HTML of the page."""
    data = json.dumps(_data(found, positions, name), ensure_ascii=False, allow_nan=False)
    href = "" if report is None else Path(report).as_posix()
    link = f'<p><a href="{escape(href)}">The report on the paper</a></p>' if href else ""
    title = f"{name}: sparse policies, explored"
    body = f"""<a class="skip" href="#explorer">Skip to the controls</a>
<header>
<h1>{escape(title)}</h1>
<p>A policy says how likely each action is in each state. A <b>hard</b> policy takes one best
action. A <b>soft</b> policy gives every action some probability, however bad the action. A
<b>sparse</b> policy shares the probability among the good actions and gives every other action
<b>exactly zero</b>. Move <i>α</i>: the larger it is, the more actions are good enough.</p>
{link}
</header>
<main id="explorer" tabindex="-1"><noscript><p>This page needs JavaScript.</p></noscript></main>
<footer><p>Every value <i>V*</i> lies in a proven enclosure, and the gap is a proven bound on what
the policy can lose of the best expected return. Numbers are those of the solver, to the digits
shown; trajectories are drawn from probabilities in these digits. The command
<code>tsallax explore MODEL --out page.html</code> makes such a page.</p></footer>
<script type="application/json" id="solutions">{data.replace("<", chr(92) + "u003c")}</script>"""
    return render_document(
        title,
        body,
        styles=[asset("tsallax.explorer", "explorer.css")],
        scripts=[asset("tsallax.explorer", "explorer.js")],
    )


def _several(name: str, given: Sequence[float]) -> list[float]:
    items = sorted({float(item) for item in np.ravel(numbers(given, name))})
    if not items:
        raise InvalidInput(f"{name} must hold at least one number")
    return items


def _stored(mdp: MDP | FunctionalMDP, settings: int) -> MDP:
    """The MDP with its transitions, refused where a page cannot show it."""
    if isinstance(mdp, FunctionalMDP):
        check_size(mdp.n_states, mdp.n_actions, 0, mdp.n_states * settings)
    stored: MDP = mdp.to_mdp(names=True) if isinstance(mdp, FunctionalMDP) else mdp
    size = (stored.n_states, stored.n_actions, stored.transitions.nnz)
    check_size(*size, stored.n_pairs * settings)
    return stored


def _data(found: Exploration, positions: Floats | None, name: str) -> dict[str, Any]:
    """What the script of the page reads: numbers and names as they are, arrays packed."""
    mdp = found.mdp
    start = _start(mdp, positions)
    start_alpha, start_q = start_setting(found, start)
    arrays: dict[str, NDArray[Any]] = {
        "actionCounts": np.diff(mdp.pointer).astype(np.uint16),
        "actions": mdp.action_of.astype(np.uint16),
        **_transitions(mdp),
        "lower": np.diff(found.lower, axis=1, prepend=np.int32(0)),
        "width": (found.upper - found.lower).astype(np.int32),
        "gap": np.diff(found.gaps, axis=1, prepend=np.int32(0)),
        "policy": found.codes,
    }
    if positions is not None:
        arrays["positions"] = positions.astype(np.float32)
    return {
        "name": name,
        "states": mdp.n_states,
        "stateNames": mdp.state_names,
        "actionNames": mdp.action_names or [str(a) for a in range(mdp.n_actions)],
        "discount": mdp.discount,
        "alphas": found.alphas,
        "qs": found.qs,
        "decimals": found.decimals,
        "gapDecimals": found.gap_decimals,
        "dimensions": 0 if positions is None else positions.shape[1],
        "start": start,
        "startAlpha": start_alpha,
        "startQ": start_q,
        **pack(arrays),
    }


def pack(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Names, types and lengths of the arrays, and compressed text that holds them, for the script.

    Every array is stored by planes of bytes, all first bytes before all second ones, since the high
    bytes of small numbers are alike; all arrays are compressed together and written in base64.

    >>> packed = pack({"counts": np.array([1, 2], np.uint16)})
    >>> packed["arrays"], len(packed["data"]) < 30
    ([['counts', 'uint16', 2]], True)
    """
    listed, planes = [], []
    for name, array in arrays.items():
        kind = array.dtype.name
        flat = np.ascontiguousarray(array, TYPES[kind]).reshape(-1)
        listed.append([name, kind, len(flat)])
        planes.append(flat.view(np.uint8).reshape(-1, flat.itemsize).T.tobytes())
    return {
        "arrays": listed,
        "data": b64encode(zlib.compress(b"".join(planes), 9)).decode("ascii"),
    }


def start_setting(found: Exploration, state: int) -> tuple[int, int]:
    """The numbers of the alpha and the q that are shown first.

    The first q of 2 or more, and the alpha in the middle, or the next smaller one at which the
    policy of the state has a zero.
    """
    n, last = len(found.alphas), len(found.qs) - 1
    q = next((i for i, q in enumerate(found.qs) if q >= 2.0), last)
    pairs = slice(found.mdp.pointer[state], found.mdp.pointer[state + 1])
    middle = (n - 1) // 2
    sparse = [i for i in range(middle + 1) if (found.codes[1 + q * n + i, pairs] == 0).any()]
    return max(sparse, default=middle), q


def _transitions(mdp: MDP) -> dict[str, NDArray[Any]]:
    """Successors, relative to the state, with their chances; those that round to zero left out."""
    rows = mdp.transitions
    chances = np.rint(CHANCES * rows.data).astype(np.uint16)
    kept = chances > 0
    pair = np.repeat(np.arange(mdp.n_pairs), np.diff(rows.indptr))
    relative = rows.indices - mdp.state_of[pair]
    found: dict[str, NDArray[Any]] = {
        "successorCounts": np.bincount(pair[kept], minlength=mdp.n_pairs).astype(np.uint16),
        "successors": relative[kept].astype(np.int32),
        "chances": chances[kept],
    }
    if mdp.termination is not None:
        found["ends"] = np.rint(CHANCES * mdp.termination).astype(np.uint16)
    return found


def _start(mdp: MDP, positions: Floats | None) -> int:
    """The state that is selected first: the likeliest to start in, or one in the middle."""
    initial = mdp.initial
    if positions is None or initial.max() > 2.0 * initial[initial > 0.0].min():
        return int(initial.argmax())
    if np.count_nonzero(initial) < np.count_nonzero(~mdp.terminal):
        return int(initial.argmax())
    far = np.square(positions - np.median(positions, axis=0)).sum(axis=1)
    return int(np.where(mdp.terminal, np.inf, far).argmin())
