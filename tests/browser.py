"""A browser for the tests of the report's page: `python tests/browser.py` tells where one is."""

import os
import shutil
import sys

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


if __name__ == "__main__":
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = find(playwright)
    print(found)
    sys.exit(found is None)
