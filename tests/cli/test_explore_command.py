"""`tsallax explore` writes a page, and refuses in one line what it cannot show."""

import pytest

from command_line import assert_error, call
from tsallax import problems

FEW = "--alphas 0.1,1 --q 1,2"


def test_models_are_named_in_every_way(capsys, tmp_path):
    problems.forest().save(tmp_path / "forest.npz")
    for model in (tmp_path / "forest.npz", "FrozenLake-v1", "tsallax.problems:forest", "forest"):
        page = tmp_path / "page.html"
        code, out, err = call(capsys, f"explore {model} --out {page} {FEW}")
        assert (code, out, err) == (0, f"The explorer is in {page}\n", "")
        page.unlink()


def test_problems_take_options_and_positions(capsys, tmp_path):
    (tmp_path / "places.csv").write_text("0,0\n1,0\n1,1\n1,2\n")
    line = f"explore forest --env-option states=4 --out {tmp_path}/page.html {FEW}"
    assert call(capsys, line, f"--positions {tmp_path}/places.csv").code == 0
    assert_error(call(capsys, line, "--env-option trees=3"), "forest", "trees")
    assert_error(call(capsys, "explore forrest"), "forrest", "did you mean forest?")
    (tmp_path / "places.csv").write_text("0,0\n")
    places = f"--positions {tmp_path}/places.csv"
    assert_error(call(capsys, line, places), "positions", "(4, 2)")


def test_the_file_of_the_model_is_not_replaced(capsys, tmp_path):
    file = tmp_path / "forest.npz"
    problems.forest().save(file)
    before = file.read_bytes()
    other = tmp_path / "." / "forest.npz"
    output = call(capsys, f"solve {file} --alpha 1 --out {other}")
    assert_error(output, "--out", "is the file that is read")
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("line", "ending"),
    [
        ("solve FOLDER/models.py:two --alpha 1 --out FOLDER/models.py", ".npz"),
        ("solve FOLDER/forest.tra --discount 0.9 --alpha 1 --out FOLDER/forest.trew", ".npz"),
        ("solve forest --alpha 1 --out FOLDER/plain", ".npz"),
        ("explore FOLDER/models.py:two --out FOLDER/models.py", ".html"),
        ("explore forest --positions FOLDER/ok.csv --out FOLDER/ok.csv", ".html"),
        ("explore FOLDER/forest.tra --discount 0.9 --out FOLDER/forest.trew", ".html"),
    ],
)
def test_no_file_of_another_kind_is_replaced(capsys, tmp_path, line, ending):
    problems.forest().save(tmp_path / "forest.tra")
    (tmp_path / "models.py").write_text("from tsallax.problems import forest as two\n")
    (tmp_path / "ok.csv").write_text("0,0\n1,0\n1,1\n")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    output = call(capsys, line.replace("FOLDER", str(tmp_path)))
    assert_error(output, "--out ", f": the name must end in {ending}")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_page_does_not_replace_the_report_that_it_links_to(capsys, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("a report")
    output = call(capsys, f"explore forest --report {page} --out {page} {FEW}")
    assert_error(output, "--out", "is the file that is read")
    assert page.read_text() == "a report"


def test_a_report_is_a_page_that_may_be_written_later(capsys, tmp_path):
    page, report = tmp_path / "page.html", tmp_path / "index.html"
    line = f"explore forest --out {page} {FEW} --report"
    code, _, err = call(capsys, f"{line} {report}")
    assert (code, err) == (
        0,
        f"tsallax: note: the page links to {report}, which is not there yet\n",
    )
    report.write_text("a report")
    assert call(capsys, f"{line} {report}").err == ""
    page.unlink()
    missing = tmp_path / "no" / "index.html"
    assert_error(call(capsys, f"{line} {missing}"), f"{missing}: no such file")
    assert_error(call(capsys, f"{line} {tmp_path}"), "is a folder")
    assert not page.exists()


def test_what_cannot_be_shown_is_refused(capsys, tmp_path):
    page = tmp_path / "page.html"
    large = "gridworld --env-option rows=101"
    assert_error(call(capsys, f"explore {large} --out {page}"), "10,201 states", "at most 10,000")
    assert_error(call(capsys, f"explore forest --out {page} --alphas x"), "--alphas x")
    assert_error(call(capsys, f"explore forest --out {page} --tolerance 0"), "--tolerance must be")
    assert_error(call(capsys, f"explore forest --out {tmp_path}/no/page.html"), "no folder")
    assert_error(call(capsys, f"explore absent.npz --out {page}"), "absent.npz")
    assert not page.exists()
