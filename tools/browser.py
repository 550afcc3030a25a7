"""Find a Chromium on this machine, for what only a browser can draw: paper and previews."""

import shutil
import sys
from contextlib import contextmanager

PROGRAMS = ("google-chrome", "google-chrome-stable", "chromium", "chromium-browser")
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync")


@contextmanager
def chromium(program=None):
    """A running Chromium without a window; without one, the end, with what to install."""
    program = program or next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        sys.exit(
            f"No Chromium found: none of {', '.join(PROGRAMS)} is installed. Install one of them "
            "(on Debian or Ubuntu: apt install chromium) and try again."
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(QUIET))
        try:
            yield browser
        finally:
            browser.close()
