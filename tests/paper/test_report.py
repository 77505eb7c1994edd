"""The paper's experiments in small: what must hold in their data, files and page."""

import io
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from tsallax.paper.figures.theorems import check_claims, random_case, theorems

from tsallax.errors import InvalidInput
from tsallax.files.atomic import whole
from tsallax.paper import NAMES, BoundViolated, report, reproduce
from tsallax.paper.figures import figure2a, theorem_checks
from tsallax.paper.figures.figure1 import figure1
from tsallax.paper.figures.figure2b import figure2b
from tsallax.paper.figures.theorem_checks import CLAIMS, Claim, projection
from tsallax.paper.result import read_csv, require_within, write_csv
from tsallax.planning.evaluation import evaluate, performance_bound
from tsallax.planning.solver import solve
from tsallax.problems.unicycle_mdp import unicycle
from tsallax.regularizer import Hard, Sparse

SMALL = {"grid": (7, 7, 8)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A report of all experiments, in their quick versions."""
    out = tmp_path_factory.mktemp("report") / "new" / "folder"
    assert reproduce(NAMES, out, progress=False, quick=True) == out / "index.html"
    return out


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return read_csv(file)


class Page(HTMLParser):
    """Collects what a page loads and links to, its text and whether its tags are closed."""

    VOID = ("meta", "link", "img", "br", "wbr")

    def __init__(self, text):
        super().__init__()
        self.loads, self.links, self.ids, self.images, self.open = [], [], set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids.add(given.get("id"))
        if tag == "img":
            self.images.append(given)
        if "src" in given or tag in ("link", "iframe"):
            self.loads.append(given.get("src", given.get("href", tag)))
        elif "href" in given:
            self.links.append(given["href"])
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_every_experiment_leaves_its_figure_data_and_parameters(folder):
    for name in NAMES:
        record = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        assert record["name"] == name
        assert record["quick"]
        assert record["seconds"] > 0
        assert record["parameters"]
        assert {"tsallax", "python", "jax", "numpy", "numba", "cpu"} <= set(record["environment"])
        for table in record["tables"]:
            assert rows_of(folder / f"{table['name']}.csv")
        for picture in record["pictures"]:
            png = (folder / f"{picture['name']}.png").read_bytes()
            assert png.startswith(b"\x89PNG")
            assert b"<svg" in (folder / f"{picture['name']}.svg").read_bytes()
    kept = {path.suffix for path in folder.iterdir()}
    assert kept == {".png", ".svg", ".csv", ".json", ".html"}
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_the_page_needs_nothing_but_itself(folder):
    text = (folder / "index.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == []
    assert page.loads
    assert all(load.startswith("data:image/") for load in page.loads)
    for link in page.links:
        assert link[1:] in page.ids if link.startswith("#") else (folder / link).is_file()
    style = re.search("<style>(.*?)</style>", text, re.S)[1]
    assert "url(" not in style
    assert "@import" not in style
    assert "prefers-color-scheme: dark" in style
    assert 'name="viewport"' in text
    assert all(len(image["alt"]) > 50 for image in page.images)
    assert len(page.images) == 3
    assert set(NAMES) <= page.ids
    assert "quick run" in text


def test_the_page_shows_what_earlier_runs_left(tmp_path):
    reproduce(["figure2b"], tmp_path, progress=False, quick=True)
    before = (tmp_path / "figure2b.csv").read_bytes()
    page = reproduce(["theorems"], tmp_path, progress=False, quick=True)
    assert {"figure2b", "theorems"} <= Page(page.read_text(encoding="utf-8")).ids
    assert (tmp_path / "figure2b.csv").read_bytes() == before


def test_a_second_run_writes_the_same_data_and_figures(folder, tmp_path):
    reproduce(NAMES, tmp_path, progress=False, quick=True)
    for path in folder.iterdir():
        if path.suffix in (".csv", ".svg", ".png"):
            assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name


def test_data_reads_back_as_it_was_computed(tmp_path):
    result = figure2b(alphas=(0.1, 100.0), **SMALL)
    report.write_result(result, tmp_path, seconds=1.0)
    assert rows_of(tmp_path / "figure2b.csv") == list(result.tables[0].rows)


def test_cells_keep_their_kind_in_a_file():
    rows = [
        {"claim": 'a "b", c', "cases": 3, "margin": -1 / 3},
        {"claim": "ω", "cases": 0, "margin": 1e-300},
    ]
    file = io.StringIO()
    write_csv(rows, file)
    file.seek(0)
    assert read_csv(file) == rows


def test_a_failed_write_leaves_the_old_file(tmp_path):
    target = tmp_path / "data.csv"
    target.write_text("old")

    def write():
        with whole(target) as draft:
            draft.write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        write()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_progress_ends_at_one():
    for run in (
        lambda told: figure1(told, grid=7),
        lambda told: figure2a.figure2a(told, actions=(4, 9), **SMALL),
        lambda told: figure2b(told, alphas=(1.0, 10.0), **SMALL),
        lambda told: theorems(told, cases=6),
    ):
        shares = []
        run(shares.append)
        assert shares == sorted(shares)
        assert shares[-1] == 1.0


@pytest.mark.parametrize(
    ("names", "out", "words"),
    [
        (["figure3"], "x", "figure3"),
        ([], "x", "at least one"),
        (["theorems"], "file", "is a file"),
    ],
)
def test_nonsense_is_refused_in_one_line(tmp_path, names, out, words):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match=words) as refusal:
        reproduce(names, tmp_path / out)
    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "x").exists()


def test_figure_1_sparse_policy_has_four_modes_and_loses_less():
    result = figure1(grid=13)
    states, actions = (table.rows for table in result.tables)
    many = [row for row in actions if row["actions"] == 49]
    used = {(row["vx"], row["vy"]) for row in many if row["sparse_probability"] > 0}
    assert used == {(3, 0), (-3, 0), (0, 3), (0, -3)}
    assert all(row["soft_probability"] > 0 for row in many)
    assert sum(row["sparse_probability"] for row in many) == pytest.approx(1)
    for n in (9, 49):
        for row in states:
            assert -1e-6 <= row[f"sparse_difference_{n}"] < row[f"soft_difference_{n}"]
    rise = {
        kind: np.mean([r[f"{kind}_difference_49"] - r[f"{kind}_difference_9"] for r in states])
        for kind in ("sparse", "soft")
    }
    assert rise["sparse"] < 0.5 * rise["soft"]


def test_figure_2a_gaps_add_up_to_the_certificate_and_stay_under_the_bound():
    rows = figure2a.figure2a(actions=(9, 25, 49), **SMALL).tables[0].rows
    assert len(rows) == 12
    for row in rows:
        assert 0 <= row["return_gap"] <= row["certificate"] <= row["bound"] + 1e-5
        assert 0 <= row["value_gap"] <= row["certificate"]
        total = row["value_gap"] + row["return_gap"]
        assert total == pytest.approx(row["certificate"], rel=1e-6, abs=1e-6)
        most = max(row["value_gap"], row["return_gap"])
        assert row["margin"] == pytest.approx(row["bound"] - most, abs=1e-5)


def test_figure_2a_measures_what_its_columns_say():
    mdp = unicycle(9, **SMALL)
    regularizer = Sparse(0.1)
    hard, sparse = solve(mdp, Hard(), 1e-9), solve(mdp, regularizer, 1e-9)
    rows = figure2a.figure2a(actions=(4, 9), **SMALL).tables[0].rows
    (row,) = [r for r in rows if (r["regularizer"], r["alpha"], r["actions"]) == ("sparse", 0.1, 9)]
    best = float(mdp.initial @ hard.value)
    plain = evaluate(mdp, sparse.policy).expected_return
    assert row["return_gap"] == pytest.approx(best - plain, abs=1e-6)
    assert row["value_gap"] == pytest.approx(float(mdp.initial @ sparse.value) - best, abs=1e-5)
    assert row["bound"] == pytest.approx(performance_bound(mdp, regularizer), rel=1e-6)


def test_figure_2a_soft_value_gap_grows_like_a_logarithm():
    result = figure2a.figure2a(actions=(9, 25, 49, 81), **SMALL)
    rows = result.tables[0].rows
    slope = figure2a.log_slope(rows, 0.1, "soft", "value_gap")
    assert slope == pytest.approx(0.1 / (1 - result.parameters["discount"]), rel=0.05)
    assert figure2a.log_slope(rows, 0.1, "sparse", "value_gap") < 0.1 * slope


@pytest.mark.parametrize(
    "wrong",
    [
        {"value_gap": -0.1},
        {"return_gap": -0.1},
        {"value_gap": 1.1},
        {"return_gap": 1.1},
        {"certificate": 2.1},
        {"bound": float("nan")},
    ],
)
def test_a_violated_bound_raises(wrong):
    fine = {"value_gap": 0.4, "return_gap": 0.6, "certificate": 1.0, "bound": 2.0}
    assert figure2a.gap_row(9, Sparse(1.0), **fine)["margin"] == pytest.approx(1.4)
    with pytest.raises(BoundViolated):
        figure2a.gap_row(9, Sparse(1.0), **(fine | wrong))


def test_a_bound_that_is_too_small_stops_the_figures(monkeypatch):
    monkeypatch.setattr(
        figure2a, "performance_bound", lambda mdp, r: 0.5 * performance_bound(mdp, r)
    )
    with pytest.raises(BoundViolated, match="certificate"):
        figure2a.figure2a(actions=(4, 9), **SMALL)


def test_margins_are_what_is_left_of_the_bound():
    assert require_within("x", 1.0 + 1e-9, 1.0, 1e-8) == pytest.approx(0, abs=1e-8)
    with pytest.raises(BoundViolated, match="x is 2, above its bound 1"):
        require_within("x", 2.0, 1.0, 1e-8)


def test_figure_2b_supports_grow_and_are_proven():
    rows = figure2b(alphas=(0.1, 1.0, 10.0, 100.0), **SMALL).tables[0].rows
    sparse = [row["sparse"] for row in rows]
    assert sparse == sorted(sparse)
    assert sparse[0] < 0.5 < sparse[-1]
    for row in rows:
        assert row["sparse_proven_in"] <= row["sparse"] <= row["sparse_not_proven_out"]
        assert row["sparse_not_proven_out"] - row["sparse_proven_in"] < 0.01
        assert row["soft_above_0.01"] <= row["soft_above_0.001"] <= row["soft_above_1e-06"]


def test_every_claim_holds_and_is_tried():
    rows = theorems(cases=12, seed=7).tables[0].rows
    assert len(rows) == len(CLAIMS)
    for row in rows:
        assert row["holds"] == "yes", row
        assert row["cases"] >= 12 / 3
    names = " ".join(row["claim"] for row in rows)
    for claim in (*(f"Theorem {i}" for i in range(1, 6)), *(f"Lemma {i}" for i in range(1, 6))):
        assert claim in names


def test_a_claim_that_is_false_is_found_out(monkeypatch):
    def undecided(case, rng):
        yield float("nan")

    def wrong_sometimes(case, rng):
        yield 1.0 if case.mdp.n_states % 2 else -0.5

    false = (
        Claim("a", "never decided", "every", 1.0, "1", undecided),
        Claim("b", "true for some", "sparse", 0.1, "1", wrong_sometimes),
    )
    rows = check_claims(false, 6, 1)
    assert [row["holds"] for row in rows] == ["NO", "NO"]
    assert rows[1]["worst_margin"] == -0.5
    assert [row["cases"] for row in rows] == [30, 6]

    def tenth(mdp, regularizer):
        return 0.1 * performance_bound(mdp, regularizer)

    monkeypatch.setattr(theorem_checks, "performance_bound", tenth)
    found = {row["claim"]: row["holds"] for row in check_claims(CLAIMS, 12, 1)}
    assert found["Theorem 4, left"] == found["ours, certificate"] == "NO"
    assert found["Theorem 4, right"] == found["Theorem 1"] == "yes"


def test_random_cases_are_of_every_kind():
    cases = [random_case(i, 1) for i in range(30)]
    assert any(mdp.terminal.any() for mdp, _ in cases)
    assert any(mdp.termination is not None for mdp, _ in cases)
    assert any(mdp.rewards.max() < 0 for mdp, _ in cases)
    assert any(mdp.rewards.min() < 0 < mdp.rewards.max() for mdp, _ in cases)
    assert len({mdp.discount for mdp, _ in cases}) == 4
    assert len({mdp.n_actions for mdp, _ in cases}) > 5
    again, alpha = random_case(3, 1)
    assert alpha == cases[3][1]
    assert np.array_equal(again.rewards, cases[3][0].rewards)


def test_projection_follows_the_papers_worked_formulas():
    policy, threshold, value = projection(np.array([[1.0, 0.75, 0.0]]), 0.5)
    np.testing.assert_allclose(policy, [[0.75, 0.25, 0.0]])
    assert threshold[0] == pytest.approx(0.625)
    assert value[0] == pytest.approx(0.9375 + 0.5 * 0.5 * (1 - 0.75**2 - 0.25**2))


def test_too_little_to_see_is_refused():
    with pytest.raises(InvalidInput, match="at least 6"):
        theorems(cases=5)
    for actions in ((9,), (25, 9)):
        with pytest.raises(InvalidInput, match="increasing"):
            figure2a.figure2a(actions=actions)


def test_the_papers_numbers_stand_beside_their_own_alphas_alone():
    result = figure2b(alphas=(0.1, 1.0), grid=(5, 5, 4))
    assert [(line.what, line.paper) for line in result.comparison] == [
        ("sparse support ratio at α = 0.1", "0.24"),
        ("soft support ratio at α = 0.1", "0.79"),
    ]
    for alphas in ((10.0, 1.0), (1.0,), ()):
        with pytest.raises(InvalidInput, match="each larger than the last"):
            figure2b(alphas=alphas, grid=(5, 5, 4))
