"""The page of the explorer: one small file, whole or not at all."""

import json
import re
import zlib
from base64 import b64decode

import numpy as np
import pytest

from refusals import refused
from tsallax import MDP, explore, problems
from tsallax.explorer.exploration import solve_settings
from tsallax.explorer.explorer_page import TYPES, pack, render_explorer, start_setting


def data_of(text):
    return json.loads(re.search(r'id="solutions">(.*?)</script>', text, re.S)[1])


@pytest.mark.parametrize(
    "mdp", [problems.gridworld(40, 50), problems.garnet(2000, 4, 4)], ids=["grid", "random"]
)
def test_two_thousand_states_and_fifty_settings_take_less_than_three_megabytes(mdp, tmp_path):
    alphas = np.geomspace(0.01, 10, 25)
    page = explore(mdp, tmp_path / "page.html", alphas=alphas, qs=[1, 2])
    assert data_of(page.read_text())["states"] == 2000
    assert page.stat().st_size < 3_000_000


def test_the_first_setting_shows_zeros_where_there_are_some():
    mdp = MDP([[[1.0], [1.0], [1.0]]], [[1.0, 0.9, 0.0]], 0.5)

    def first(*alphas):
        found = solve_settings(mdp, alphas, (1.0, 2.0), 1e-6, lambda share: None)
        alpha, q = start_setting(found, 0)
        return found.alphas[alpha], found.qs[q]

    assert first(0.01, 0.1, 0.5, 10.0, 20.0) == (0.5, 2.0), "the middle"
    assert first(0.1, 0.5, 10.0, 20.0, 30.0) == (0.5, 2.0), "the middle one has no zero"
    assert first(10.0, 20.0, 30.0) == (20.0, 2.0), "none has"


def test_names_are_text_and_the_report_is_linked(tmp_path):
    evil = "</script><script>alert(1)</script><b>"
    mdp = problems.forest()
    found = solve_settings(mdp, [1.0], (2.0,), 1e-6, lambda share: None)
    text = render_explorer(found, None, evil, "../a b/index.html")
    assert "alert(1)</script>" not in text
    assert data_of(text)["name"] == evil
    assert '<a href="../a b/index.html">' in text
    assert "report" not in render_explorer(found, None, "x")


def test_models_from_functions_are_stored_with_their_coordinates_as_names_and_positions(tmp_path):
    model = problems.inventory(capacity=5, lead_time=1, max_order=2)
    page = explore(model, tmp_path / "page.html", alphas=[1.0], qs=[2.0], name="stock")
    data = data_of(page.read_text())
    assert data["states"] == model.n_states
    assert data["stateNames"][4] == "(1, 1)"
    assert data["actionNames"] == ["0", "1", "2"]
    assert data["dimensions"] == 2


def test_wrong_arguments_leave_no_page(tmp_path):
    mdp, path = problems.forest(), tmp_path / "page.html"
    with refused("path ", "page.py: the name must end in .html"):
        explore(mdp, tmp_path / "page.py")
    for words, wrong in (
        (("alphas",), {"alphas": []}),
        (("alphas must be real numbers",), {"alphas": "abc"}),
        (("qs must be a regular array of numbers",), {"qs": [1, [2, 3]]}),
        (("alpha", "positive"), {"alphas": [-1.0]}),
        (("q",), {"qs": [0.0]}),
        (("positions",), {"positions": [(0.0, 0.0)]}),
        (("tolerance",), {"tolerance": 0.0}),
    ):
        with refused(*words):
            explore(mdp, path, **wrong)
    wide = MDP([[1.0, 0.0], [0.0, 1.0]], [1.0, 0.0], 0.5, pairs=[(0, 0), (1, 65_535)])
    with refused("65,536 actions", "at most 65,535"):
        explore(wide, path)
    with refused("200,000,000 states", "at most 10,000"):
        explore(problems.inventory(capacity=199, lead_time=3, max_order=99), path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", TYPES)
def test_packed_arrays_come_back_bit_for_bit(kind):
    rng = np.random.default_rng(0)
    given = {"a": rng.integers(0, 200, (3, 5)).astype(kind), "b": np.array([7], kind)}
    packed = pack(given)
    plain = zlib.decompress(b64decode(packed["data"]))
    for name, type_, length in packed["arrays"]:
        size = np.dtype(type_).itemsize
        planes = np.frombuffer(plain[: size * length], np.uint8).reshape(size, length)
        plain = plain[size * length :]
        found = np.ascontiguousarray(planes.T).view(type_).ravel()
        np.testing.assert_array_equal(found, given[name].ravel())
    assert plain == b""
