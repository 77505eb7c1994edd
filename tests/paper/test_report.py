"""Experiments leave their files and a page; reports put the results of folders together."""

import json

import pytest
from matplotlib.figure import Figure

from made_up_rows import made_up_row
from page_results import write
from refusals import refused
from tsallax.paper.report import reproduce, write_page, write_report, write_tables
from tsallax.paper.result import read_csv
from tsallax.paper.sweep.sweep_rows import SWEEP_ROWS
from tsallax.paper.sweep.sweep_tasks import REACHER, VARIANTS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A report of one experiment, in its quick version."""
    out = tmp_path_factory.mktemp("report") / "new" / "folder"
    assert reproduce(["figure2b"], out, progress=False, quick=True) == out / "index.html"
    return out


def test_an_experiment_leaves_its_figure_data_and_parameters(folder):
    record = json.loads((folder / "figure2b.json").read_text(encoding="utf-8"))
    assert (record["name"], record["quick"]) == ("figure2b", True)
    assert record["seconds"] > 0
    assert record["parameters"]
    assert {"tsallax", "python", "jax", "numpy", "numba", "cpu"} <= set(record["environment"])
    with (folder / "figure2b.csv").open(encoding="utf-8", newline="") as file:
        assert read_csv(file)
    assert (folder / "figure2b.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (folder / "figure2b.svg").read_bytes()
    (picture,) = record["pictures"]
    assert len(picture["alt"]) > 50
    suffixes = sorted(path.suffix for path in folder.iterdir())
    assert suffixes == [".csv", ".html", ".json", ".png", ".svg"]


def test_a_second_run_writes_the_same_files_and_keeps_other_results(folder, tmp_path):
    write(tmp_path, "theorems")
    before = (tmp_path / "theorems-returns.csv").read_bytes()
    page = reproduce(["figure2b"], tmp_path, progress=False, quick=True)
    text = page.read_text(encoding="utf-8")
    assert all(f'<section id="{name}"' in text for name in ("figure2b", "theorems"))
    assert (tmp_path / "theorems-returns.csv").read_bytes() == before
    for suffix in ("csv", "svg", "png"):
        name = f"figure2b.{suffix}"
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name


@pytest.mark.parametrize(
    ("names", "out", "word"),
    [(["figure3"], "x", "figure3"), ([], "x", "at least one"), (["theorems"], "file", "file")],
)
def test_unknown_experiments_and_folders_that_are_files_are_refused(tmp_path, names, out, word):
    (tmp_path / "file").write_text("")
    with refused(word):
        reproduce(names, tmp_path / out)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("out", [None, "first", "elsewhere"])
def test_of_results_with_one_name_those_of_the_first_folder_count(tmp_path, out):
    """Above all where the page goes into the first folder, whose files must stay."""
    first, second = tmp_path / "first", tmp_path / "second"
    write(first, "theorems", title="Of the first", rows=[{"a": 1}])
    write(second, "theorems", title="Of the second", rows=[{"a": 2}])
    write(second, "figure1", title="Of the second alone")
    before = {path.name: path.read_bytes() for path in first.iterdir()}
    page = write_report([first, second], None if out is None else tmp_path / out)
    after = {path.name: path.read_bytes() for path in page.parent.iterdir()}
    assert {name: after[name] for name in before} == before
    text = page.read_text(encoding="utf-8")
    assert "Of the first" in text
    assert "Of the second alone" in text
    assert json.loads((second / "theorems.json").read_text())["title"] == "Of the second"


def test_no_name_of_a_file_leads_out_of_the_folder(tmp_path):
    folder = tmp_path / "results"
    tables = [{"name": "a./../../secret", "title": "", "shown": "open"}]
    write(folder, "theorems", tables=tables)
    (folder / "a.").mkdir()
    (tmp_path / "secret.csv").write_text("hidden")
    with refused("secret"):
        write_report([folder], tmp_path / "page")
    assert not list((tmp_path / "page").glob("*.csv"))
    with refused("secret"):
        write_page(folder)


@pytest.fixture
def blank_pictures(monkeypatch):
    """Files of pictures are empty, since to draw them takes seconds."""
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **options: path.write_bytes(b""))


@pytest.mark.usefixtures("blank_pictures")
def test_rows_of_several_folders_are_put_together(tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    for seed, folder in enumerate(folders):
        folder.mkdir()
        SWEEP_ROWS.append(made_up_row(REACHER, VARIANTS[0], 9, seed, -5.0, 900), folder / "a.jsonl")
    write_report(folders, tmp_path / "page")
    record = json.loads((tmp_path / "page" / "reacher.json").read_text())
    assert record["parameters"]["runs"] == 2
    with refused(source=folders[0] / "a.jsonl"):
        write_report([folders[0] / "a.jsonl"])


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize(("episodes", "quick"), [(10_000, False), (9_000, True)])
def test_tables_of_runs_shorter_than_the_papers_are_marked_as_quick(tmp_path, episodes, quick):
    row = made_up_row(
        REACHER, VARIANTS[0], 9, 0, -5.0, 900, episodes=episodes, steps=50 * episodes,
        returns=(-5.0,) * (episodes // 20),
    )  # fmt: skip
    write_tables([row], tmp_path)
    assert json.loads((tmp_path / "reacher.json").read_text())["quick"] == quick
    assert not (tmp_path / "pendulum.json").exists()
