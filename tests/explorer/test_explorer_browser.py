"""The explorer in a real browser: what it shows is what the solver found, by mouse and by keys."""

from itertools import pairwise

import numpy as np
import pytest

from browser import PHONE, tab_to
from tsallax import Hard, Soft, Sparse, Tsallis, explore, gap_certificate, problems, solve

ALPHAS, QS = [0.02, 0.1, 0.5, 2.0], [1.0, 1.5, 2.0]
MIDDLE = 24
"""The state (0, 0) of a grid of 7 x 7 points."""


@pytest.fixture(scope="module")
def mdp():
    return problems.multigoal(9, grid=7)


@pytest.fixture(scope="module")
def address(mdp, tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "page.html"
    return explore(mdp, path, alphas=ALPHAS, qs=QS, tolerance=1e-6, name="A plane").as_uri()


def shown(page, setting=0):
    """Name, facts and bars of the selected state."""
    box = page.locator(".setting").nth(setting)
    facts = dict(
        zip(box.locator("dt").all_inner_texts(), box.locator("dd").all_inner_texts(), strict=True)
    )
    names, shares = (box.locator(f".bar {part}").all_inner_texts() for part in (".name", ".share"))
    return box.locator("h3").inner_text(), facts, dict(zip(names, shares, strict=True))


def assert_shows(page, mdp, regularizer, state, setting=0):
    """The page shows a solution of the solver, to the digits shown."""
    exact = solve(mdp, regularizer, 1e-10)
    name, facts, bars = shown(page, setting)
    assert name == mdp.state_names[state]
    policy = exact.policy[state]
    for action, p in zip(mdp.action_names, policy, strict=True):
        if p == 0.0 and regularizer.q > 1:
            assert bars[action] == "0 exactly"
        elif p < 0.00049:
            assert bars[action] == "< 0.05 %"
        else:
            assert float(bars[action].removesuffix(" %")) == pytest.approx(100 * p, abs=0.0501)
    used = np.count_nonzero(policy)
    assert facts["Support"] == f"{used} of 9 actions"
    lower, upper = (float(x.replace("−", "-")) for x in facts["V* lies in"][1:-1].split(", "))
    assert lower - 1e-9 <= exact.value[state] <= upper + 1e-9
    assert upper - lower < 1e-5
    gap = gap_certificate(mdp, exact)[state]
    assert float(facts["Certified gap"].removeprefix("at most ")) == pytest.approx(gap, abs=2e-4)


def sliders(page, setting=0):
    return page.locator(".setting").nth(setting).get_by_role("slider").all()


def test_every_setting_shows_what_the_solver_finds(visit, address, mdp):
    page = visit(address)
    page.locator("canvas").wait_for()
    for i, alpha in enumerate(ALPHAS):
        sliders(page)[0].fill(str(i))
        for j, q in enumerate(QS):
            sliders(page)[1].fill(str(j))
            kind = "soft" if q == 1.0 else "sparse"
            assert page.get_by_role("radio", name=kind).is_checked()
            assert_shows(page, mdp, Tsallis(alpha, q), MIDDLE)
    page.get_by_role("radio", name="hard").check()
    assert_shows(page, mdp, Hard(), MIDDLE)
    assert not sliders(page)[0].is_enabled()
    page.get_by_role("radio", name="soft").check()
    assert_shows(page, mdp, Soft(ALPHAS[-1]), MIDDLE)
    page.get_by_role("radio", name="sparse").check()
    assert_shows(page, mdp, Sparse(ALPHAS[-1]), MIDDLE)


def test_a_click_selects_a_state(visit, address, mdp):
    page = visit(address)
    canvas = page.locator("canvas")
    box = canvas.bounding_box()
    canvas.click(position={"x": 20, "y": box["height"] - 20})
    assert_shows(page, mdp, Sparse(ALPHAS[1]), 0)
    canvas.click(position={"x": box["width"] - 20, "y": 20})
    assert_shows(page, mdp, Sparse(ALPHAS[1]), 48)
    assert page.get_by_label("State", exact=True).input_value() == "48"
    page.get_by_label("State", exact=True).select_option("(0, 0)")
    assert shown(page)[0] == "(0, 0)"


def test_the_support_is_told_in_words(visit, address, mdp):
    page = visit(address)
    sliders(page)[0].fill("0")
    sizes = np.count_nonzero(solve(mdp, Sparse(ALPHAS[0]), 1e-10).policy, axis=1)
    words = {1: "1 of 9 actions has all", 2: "2 of 9 actions share"}
    for used, some in words.items():
        state = int(np.flatnonzero(sizes == used)[0])
        page.get_by_label("State", exact=True).select_option(mdp.state_names[state])
        expected = f"sparse: {some} the probability, {9 - used} have exactly zero."
        assert page.locator(".plainly").inner_text().endswith(expected)


def test_two_settings_are_compared_with_one_click(visit, address, mdp):
    page = visit(address)
    page.get_by_role("button", name="Compare two settings").click()
    assert_shows(page, mdp, Sparse(ALPHAS[1]), MIDDLE)
    assert_shows(page, mdp, Soft(ALPHAS[1]), MIDDLE, setting=1)
    sliders(page, 1)[0].fill("3")
    assert_shows(page, mdp, Soft(ALPHAS[3]), MIDDLE, setting=1)
    assert_shows(page, mdp, Sparse(ALPHAS[1]), MIDDLE)
    page.locator("canvas").nth(1).click(position={"x": 20, "y": 20})
    assert shown(page)[0] == shown(page, 1)[0] != "(0, 0)"
    page.get_by_role("button", name="Compare two settings").click()
    assert page.locator(".setting").count() == 1


def test_trajectories_follow_the_policy_and_repeat_with_their_seed(visit, address, mdp):
    page = visit(address)
    path = page.locator(".path p")
    assert not path.is_visible()
    page.get_by_role("button", name="Draw a trajectory").click()
    page.locator(".path summary").click()
    first = path.inner_text()
    names = first.split(" → ")
    assert len(names) == 41
    states = [mdp.state_names.index(name) for name in names]
    policy = solve(mdp, Sparse(ALPHAS[1])).policy
    for s, successor in pairwise(states):
        rows = mdp.transitions[[9 * s + a for a in np.flatnonzero(policy[s])]].toarray()
        assert rows[:, successor].max() > 1e-6
    page.get_by_role("button", name="Draw a trajectory").click()
    assert path.inner_text() != first
    page.get_by_label("Seed").fill("1")
    assert path.inner_text() == first
    before = page.locator("canvas").screenshot()
    page.get_by_label("Trajectories").select_option("ten")
    assert page.locator("canvas").screenshot() != before
    page.get_by_label("Trajectories").select_option("none")
    assert not path.is_visible()


def test_the_keys_alone_reach_everything(visit, address, mdp):
    page = visit(address)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the controls"
    page.keyboard.press("Enter")
    tab_to(page, "button.strong")
    page.keyboard.press("Enter")
    assert page.locator(".setting").count() == 2
    page.keyboard.press("Space")
    tab_to(page, "input[type=radio]")
    page.keyboard.press("ArrowLeft")
    assert page.get_by_role("radio", name="soft").is_checked()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    assert_shows(page, mdp, Sparse(ALPHAS[-1]), MIDDLE)
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowLeft")
    assert_shows(page, mdp, Tsallis(ALPHAS[-1], 1.5), MIDDLE)
    tab_to(page, "canvas")
    page.keyboard.press("ArrowRight")
    assert_shows(page, mdp, Tsallis(ALPHAS[-1], 1.5), MIDDLE + 7)
    page.keyboard.press("ArrowUp")
    assert_shows(page, mdp, Tsallis(ALPHAS[-1], 1.5), MIDDLE + 8)
    assert mdp.state_names[MIDDLE + 8] in page.locator("body > [role=status]").inner_text()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_has_no_sideways_scrolling(visit, address, scheme):
    page = visit(address, PHONE, has_touch=True, color_scheme=scheme)
    page.get_by_role("button", name="Compare two settings").tap()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.locator("canvas").first.tap(position={"x": 20, "y": 20})
    assert shown(page)[0] != "(0, 0)"
    corner = page.evaluate(
        "() => [...document.querySelector('canvas').getContext('2d').getImageData(12, 12, 1, 1)"
        ".data].slice(0, 3).reduce((sum, part) => sum + part)"
    )
    assert (corner > 380) == (scheme == "light")


def test_layers_and_models_without_positions(visit, tmp_path):
    few = {"alphas": [0.1, 1.0], "qs": [2.0]}
    unicycle = problems.unicycle(4, grid=(5, 4, 3))
    page = visit(explore(unicycle, tmp_path / "u.html", **few).as_uri())
    layer = page.get_by_label("Layer")
    layer.fill("2")
    place, heading = shown(page)[0].rsplit(", ", 1)
    assert heading == "4.189)"
    layer.fill("0")
    assert shown(page)[0] == f"{place}, 0)"
    assert page.get_by_role("radio", name="soft").is_disabled()
    page = visit(explore(problems.forest(12), tmp_path / "f.html", **few).as_uri())
    page.locator("canvas").press("ArrowRight")
    assert (
        shown(page)[0]
        == page.get_by_label("State", exact=True).locator("option").nth(1).inner_text()
    )
    page.get_by_role("button", name="Draw a trajectory").click()
    grid = problems.gridworld(3, goals={(0, 2): 1.0})
    page = visit(explore(grid, tmp_path / "g.html", **few).as_uri())
    page.get_by_label("State", exact=True).select_option("0,2")
    assert "ends here" in page.locator(".facts").inner_text()
    assert page.locator(".bar").count() == 0
