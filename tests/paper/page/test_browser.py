"""The report's page in a real browser: from disk, without a network, by mouse and by keys alone."""

import re

import pytest

from browser import PHONE, tab_to
from page_results import LABELS, PANELS, curves, returns, write, write_hostile
from tsallax.paper.report import write_page


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A page with a figure, a long folded table, and 27 lines in four panels."""
    folder = tmp_path_factory.mktemp("page")
    rows = [{"state": i, "value": -i / 3, "note": "odd" if i % 2 else "even"} for i in range(108)]
    tables = [{"name": "figure1-returns", "title": "values", "shown": "folded"}]
    write(folder, "figure1", rows=rows, tables=tables, quick=True)
    write(folder, "reacher", chart=curves())
    return write_page(folder).as_uri()


def column(page, number, table="#reacher table >> nth=-1"):
    """The texts of a column, of the rows that are shown."""
    return page.locator(table).locator(f"tbody tr:visible > :nth-child({number})").all_inner_texts()


def shown(page):
    """The labels that are checked, and the numbers of lines drawn in the panels."""
    page.evaluate("() => new Promise(requestAnimationFrame)")
    checked = page.locator(".lines label:has(:checked)").all_inner_texts()
    drawn = [panel.locator(".curve").count() for panel in page.locator(".plot").all()]
    assert page.locator("fieldset output").inner_text() == f"{len(checked)} of 27 lines shown"
    return [text.strip() for text in checked], drawn


def reading(page, panel=0):
    """The line and the value under the pointer of a panel, or its quantity without a line."""
    who, value = (page.locator(kind).nth(panel).inner_text() for kind in (".who", ".value"))
    return f"{who}: {value}" if who else value


def leading(text):
    found = re.match(r"-?[\d,]*\.?\d+", text.replace("−", "-"))
    return float(found[0].replace(",", "")) if found else None


def test_headers_sort_numbers_up_down_and_back(visit, address):
    page = visit(address)
    before = column(page, 1)
    head = page.locator("#reacher table >> nth=-1").locator("thead th").nth(1)
    assert before == LABELS
    head.get_by_role("button").click()
    values = [leading(text) for text in column(page, 2)]
    assert values == sorted(values)
    assert values[0] == pytest.approx(-6.6)
    assert head.get_attribute("aria-sort") == "ascending"
    head.get_by_role("button").click()
    assert [leading(text) for text in column(page, 2)] == values[::-1]
    assert head.get_attribute("aria-sort") == "descending"
    head.get_by_role("button").click()
    assert column(page, 1) == before
    assert head.get_attribute("aria-sort") is None


@pytest.mark.parametrize("clicks", [1, 2])
def test_words_come_after_numbers_and_empty_cells_last(visit, address, clicks):
    page = visit(address)
    head = page.locator("#reacher table >> nth=-1").locator("thead th").nth(2)
    for _ in range(clicks):
        head.get_by_role("button").click()
    texts = [row["episodes"] for row in returns()]
    numbers = sorted((t for t in texts if leading(t)), key=leading, reverse=clicks == 2)
    words, empty = texts.count("not reached"), texts.count("")
    assert min(words, empty) > 3
    assert column(page, 3) == [*numbers, *["not reached"] * words, *[""] * empty]


def test_the_keys_alone_sort_a_table(visit, address):
    page = visit(address)
    page.locator("input[type=search] >> nth=-1").focus()
    tab_to(page, "th button")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    values = [leading(text) for text in column(page, 2)]
    assert values == sorted(values)
    page.keyboard.press("Space")
    assert [leading(text) for text in column(page, 2)] == values[::-1]
    assert "descending" in page.locator("body > [role=status]").inner_text()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_a_filter_keeps_rows_with_all_words_and_counts_them(visit, address):
    page = visit(address)
    search = page.get_by_role("searchbox").last
    count = page.locator(".filter output").last
    assert count.inner_text() == "27 of 27 rows"
    search.fill("SOFT 0.01")
    wanted = [label for label in LABELS if "soft" in label and "0.01" in label]
    assert column(page, 1) == wanted
    assert count.inner_text() == f"{len(wanted)} of 27 rows"
    search.fill("-4.7")  # a hyphen finds a minus
    wanted = [row["algorithm"] for row in returns() if "−4.7" in row["return"]]
    assert column(page, 1) == wanted
    page.locator("#reacher table >> nth=-1").locator("thead button").first.click()
    assert column(page, 1) == sorted(wanted)
    search.fill("")
    assert len(column(page, 1)) == 27


def test_folded_data_opens_and_small_tables_have_no_filter(visit, address):
    page = visit(address)
    section = page.locator("#figure1")
    assert section.get_by_role("searchbox").count() == 0
    section.locator("summary").click()
    section.get_by_role("searchbox").fill("odd")
    assert section.locator(".filter output").inner_text() == "54 of 108 rows"


def test_lines_are_chosen_by_mouse(visit, address):
    page = visit(address)
    assert shown(page) == (LABELS[:4], [4] * 4)
    page.get_by_label(LABELS[10], exact=True).check()
    page.get_by_label(LABELS[0], exact=True).uncheck()
    assert shown(page) == ([*LABELS[1:4], LABELS[10]], [4] * 4)
    for name, labels in (("All", LABELS), ("None", []), ("First choice", LABELS[:4])):
        page.get_by_role("button", name=name, exact=True).click()
        assert shown(page) == (labels, [len(labels)] * 4)


def test_groups_choose_lines_that_have_all_their_words(visit, address):
    page = visit(address)

    def button(group, word):
        box = page.get_by_role("group", name=group, exact=True)
        return box.get_by_role("button", name=word, exact=True)

    button("exploration", "epsilon").click()
    assert shown(page)[0] == [label for label in LABELS if label.startswith("epsilon")]
    button("alpha", "0.1").click()
    one = [label for label in LABELS if re.fullmatch(r"epsilon.*-0\.1", label)]
    assert shown(page) == (one, [3] * 4)
    button("exploration", "sparse").click()
    assert len(shown(page)[0]) == 6
    assert button("alpha", "0.1").get_attribute("aria-pressed") == "true"
    assert button("alpha", "1").get_attribute("aria-pressed") == "false"
    for group, word in (("exploration", "sparse"), ("exploration", "epsilon"), ("alpha", "0.1")):
        button(group, word).click()
    assert shown(page)[0] == LABELS[:4]
    button("update", "hard").click()
    page.get_by_label(LABELS[0], exact=True).check()
    assert page.locator("[aria-pressed=true]").count() == 0
    assert len(shown(page)[0]) == 10


def test_the_keys_alone_choose_lines_and_read_values(visit, address):
    page = visit(address)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the results"
    page.keyboard.press("Enter")
    tab_to(page, "fieldset button")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert shown(page)[0] == []
    tab_to(page, ".lines input")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert shown(page) == (LABELS[:2], [2] * 4)
    tab_to(page, ".plot")
    assert reading(page) == f"{LABELS[0]}: −4.002 [−4.502, −3.502] at 2,400 episodes"
    page.keyboard.press("ArrowDown")
    assert reading(page).startswith(f"{LABELS[1]}: −4.102")
    assert page.locator("body > [role=status]").inner_text() == reading(page)
    page.keyboard.press("ArrowLeft")
    assert reading(page).endswith(" at 2,380 episodes")
    page.keyboard.press("Home")
    assert reading(page) == f"{LABELS[1]}: −44.1 [−44.6, −43.6] at 20 episodes"
    page.keyboard.press("Escape")
    assert reading(page) == "return"
    page.keyboard.press("ArrowUp")
    assert reading(page).startswith(f"{LABELS[0]}: −4.002")
    page.keyboard.press("Tab")
    assert reading(page) == "return"


def test_the_pointer_reads_the_nearest_line(visit, address):
    page = visit(address)
    page.get_by_role("button", name="None").click()
    page.get_by_label(LABELS[26], exact=True).check()
    page.get_by_label(LABELS[0], exact=True).check()
    page.get_by_label("Fit the scale").check()
    plot = page.locator(".plot").nth(2)
    box = plot.bounding_box()
    for y, label in ((15, LABELS[0]), (box["height"] - 60, LABELS[26])):
        plot.hover(position={"x": box["width"] - 60, "y": y})
        assert reading(page, 2).startswith(f"{label}: ")
    assert plot.locator(".curve.hot").count() == 1
    page.mouse.move(0, 0)
    assert plot.locator(".hot").count() == 0


def test_panels_share_a_scale_until_asked_not_to(visit, tmp_path):
    chart = curves(9)
    for line in chart["series"]:
        if line["panel"] == PANELS[1]:
            for key in ("y", "low", "high"):
                line[key] = [100 * value for value in line[key]]
    write(tmp_path, chart=chart)
    page = visit(write_page(tmp_path).as_uri())

    def labels(panel):
        page.evaluate("() => new Promise(requestAnimationFrame)")
        return page.locator(".plot").nth(panel).locator("text[text-anchor=end]").all_text_contents()

    assert labels(0) == labels(1)
    assert "−4,000" not in labels(0), "the scale fits the second half"
    page.get_by_label("Fit the scale").uncheck()
    assert labels(0) == labels(1)
    assert "−4,000" in labels(0)
    page.get_by_label("Same scale").uncheck()
    assert "−40" in labels(0)
    assert "−4,000" in labels(1)
    page.get_by_label("Intervals").uncheck()
    page.evaluate("() => new Promise(requestAnimationFrame)")
    assert page.locator(".band").count() == 0


def test_panels_of_different_tasks_begin_with_their_own_scales(visit, tmp_path):
    chart = {**curves(9), "same_scale": False}
    for line in chart["series"]:
        if line["panel"] == PANELS[1]:
            line["x"] = [2 * value for value in line["x"]]
    write(tmp_path, chart=chart)
    page = visit(write_page(tmp_path).as_uri())

    def steps(panel):
        page.evaluate("() => new Promise(requestAnimationFrame)")
        axis = page.locator(".plot").nth(panel).locator("text[text-anchor=middle]")
        return axis.all_text_contents()

    assert steps(0) != steps(1)
    page.get_by_label("Same scale").check()
    assert steps(0) == steps(1)


def test_all_lines_are_drawn_without_delay(visit, address):
    page = visit(address)
    seconds = page.evaluate(
        """async () => {
            const [all, none] = document.querySelectorAll("fieldset button");
            const frame = () => new Promise(requestAnimationFrame);
            const times = [];
            for (let i = 0; i < 5; i++) {
                none.click(); await frame(); await frame();
                const start = performance.now();
                all.click(); await frame();
                times.push((performance.now() - start) / 1000);
            }
            return times.sort()[1];
        }"""
    )
    assert seconds < 0.3
    assert page.locator(".plot .curve").count() == 108


@pytest.mark.parametrize(
    ("scheme", "paper", "ink"),
    [("light", "rgb(255, 255, 255)", "rgb(27, 31, 36)"),
     ("dark", "rgb(15, 20, 25)", "rgb(230, 237, 243)")],
)  # fmt: skip
def test_the_page_is_light_or_dark_as_asked(visit, address, scheme, paper, ink):
    page = visit(address, color_scheme=scheme)
    style = "getComputedStyle(document.{}).{}".format
    assert page.evaluate(style("body", "backgroundColor")) == paper
    assert page.evaluate(style("body", "color")) == ink
    lines = page.evaluate(
        "[...document.querySelectorAll('.key .curve')].map(e => getComputedStyle(e).stroke"
        " + getComputedStyle(e).strokeDasharray)"
    )
    assert len(set(lines)) == 27
    page.emulate_media(media="print", color_scheme=scheme)
    assert page.evaluate(style("body", "backgroundColor")) == "rgb(255, 255, 255)"
    assert not page.locator("nav").is_visible()


def test_a_phone_has_no_sideways_scrolling_and_keeps_the_first_column(visit, address):
    page = visit(address, PHONE, has_touch=True)
    page.locator("summary").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    box = page.locator(".wide").last
    assert box.evaluate("b => b.scrollWidth > b.clientWidth && b.scrollHeight > b.clientHeight")
    before = box.locator("th").first.bounding_box()
    box.evaluate("b => b.scrollTo(80, 200)")
    assert box.locator("th").first.bounding_box() == before
    plot = page.locator(".plot").first
    plot.tap(position={"x": 200, "y": 60})
    assert " episodes" in reading(page)
    page.set_viewport_size({"width": 320, "height": 640})
    page.evaluate("() => new Promise(requestAnimationFrame)")
    assert page.evaluate("document.documentElement.scrollWidth") == 320


def test_commands_are_copied(visit, address):
    page = visit(address, permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy the command").first.click()
    page.get_by_text("Copied", exact=True).first.wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "tsallax reproduce figure1 --quick"


def test_hostile_strings_do_nothing(visit, tmp_path):
    write_hostile(tmp_path)
    page = visit(write_page(tmp_path).as_uri(), PHONE)
    assert page.locator("fieldset output").inner_text() == "7 of 7 lines shown"
    for button in page.locator("fieldset button").all():
        button.click()
    page.locator(".plot").first.hover()
    page.locator("th button:visible").first.click()
    page.wait_for_timeout(100)
    assert page.evaluate("window.harmed") is None
    assert page.locator("img").count() == 1
    assert page.locator("[onerror], [onload], [onmouseover], iframe").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_without_javascript_everything_can_be_read(visit, address):
    page = visit(address, java_script_enabled=False)
    assert column(page, 1) == LABELS
    assert page.locator("noscript p").is_visible()
    page.get_by_text("Data: where the lines end").click()
    assert page.get_by_role("cell", name="−4.002 [−4.502, −3.502]").first.is_visible()
