"""The picture of the page in README: the first plan that ``make up`` shows, as a browser with a window of 1240 by 1000 sees it.

    python -m tests.bench.page_picture [docs/page.png]

On a database and a service of its own. It needs a Chromium (``.ci/chromium``, or its path in CHROMIUM) and the fonts of Debian's
``fonts-dejavu-core``, so that two machines draw the same.
"""

import argparse
import tempfile
from pathlib import Path

import httpx
from playwright.sync_api import expect, sync_playwright

from catalog.read import read_catalog
from service.clock import system_clock
from service.database import Database
from service.migrate import migrate
from service.seeding import seed
from tests.bench.server_process import ServerProcess
from tests.browser.conftest import CHROMIUM, PATIENCE_MS

EXAMPLE = Path("examples/chat-70b.json")
WIDTH, HEIGHT = 1240, 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=Path("docs/page.png"))
    file = parser.parse_args().file
    if CHROMIUM is None:
        raise SystemExit("no Chromium: apt-get install chromium, or name one in CHROMIUM")
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/page.sqlite"
        database = Database(url)
        migrate(database)
        with database.writing() as session:
            seed(session, read_catalog(), system_clock)
        database.close()
        server = ServerProcess(url, Path(folder) / "log")
        server.start()
        try:
            take(server.address, CHROMIUM, file)
        finally:
            server.stop()


def take(address: str, chromium: str, file: Path) -> None:
    """Plan the example and photograph its answer."""
    made = httpx.post(
        f"{address}/v1/recommendations",
        content=EXAMPLE.read_bytes(),
        headers={"content-type": "application/json"},
        timeout=120,
    )
    made.raise_for_status()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce")
        page.goto(f"{address}/#/plan/{made.json()['id']}")
        expect(page.locator(".price")).to_be_visible(timeout=PATIENCE_MS)
        page.screenshot(path=file)
        browser.close()


if __name__ == "__main__":
    main()
