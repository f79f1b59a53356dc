"""A real Chromium that tests open files with: Debian's package, without network, driven by playwright.

`python -m testbed chromium` installs it where that is possible; the fixture `open_page` opens a file in it. Browsers of
playwright's own are never downloaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.build import Say
from testbed.debian_packages import find_program

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PACKAGE = "chromium"
PROGRAMS = (PACKAGE, "google-chrome")  # the second one is the same browser on machines without a package of the first


def find(say: Say) -> Path:
    """The program; installed first, as Debian's package, where we may."""
    return find_program("Chromium", PACKAGE, PROGRAMS, say)


@contextmanager
def running(program: Path) -> Iterator[Browser]:
    """One that reaches nobody: every host name leads nowhere. A sandbox needs rights that containers do not give."""
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        try:
            yield browser
        finally:
            browser.close()
