"""A browser for the tests of pages: `python tests/browser.py` tells where one is."""

import os
import shutil
import sys

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def find(playwright):
    """The path of a Chromium of this machine, or of Playwright's own; None where there is none."""
    paths = [*map(shutil.which, NAMES), playwright.chromium.executable_path]
    return next((path for path in paths if path and os.path.isfile(path)), None)


DESK, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def browser():
    """A running browser; without Playwright or a browser, tests are skipped."""
    reason = "no browser: make test-browser installs one"
    api = pytest.importorskip("playwright.sync_api", reason=reason)
    with api.sync_playwright() as playwright:
        path = find(playwright)
        if path is None:
            pytest.skip(reason)
        running = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture
def visit(browser):
    """Open a page; at the end, nothing may have gone wrong and nothing been asked for."""
    troubles, contexts = [], []

    def opened(address, viewport=DESK, **options):
        context = browser.new_context(viewport=viewport, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(5000)
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))

        def refuse(route):
            if route.request.url == address:
                return route.continue_()
            troubles.append(f"asked for {route.request.url}")
            return route.abort()

        page.route(lambda url: not url.startswith("data:"), refuse)
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []


def tab_to(page, selector):
    """Press Tab until an element has the focus."""
    for _ in range(120):
        page.keyboard.press("Tab")
        if page.evaluate("s => document.activeElement.matches(s)", selector):
            return
    raise AssertionError(f"no way to {selector} with Tab")


if __name__ == "__main__":
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = find(playwright)
    print(found)
    sys.exit(found is None)
