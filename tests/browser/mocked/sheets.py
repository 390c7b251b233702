"""Contact sheets of the console: every page with data, and six pages in five other states.

Run by `make screenshots`: `python -m tests.browser.mocked.sheets FOLDER`. No service runs: the API
answers from the examples of its description. A sheet is a picture of many pages, to be looked at.
"""

from __future__ import annotations

import base64
import contextlib
import html
import itertools
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Page, Route, expect, sync_playwright

from tests.browser.conftest import chromium
from tests.browser.looking import THEMES, WAITING, Theme, open_loaded, open_page, show_in
from tests.browser.mocked.answers import NOW, Answer, Request, answer_to, problem
from tests.browser.mocked.hostile import answer_with_hostile_names
from tests.browser.mocked.site import Site, serving
from tests.browser.mocked.test_pages import ENTRANCES, PAGES
from tests.browser.visitor import TIMEOUT_MS

# Name → width and height of the window, pages in a row of the sheet, and pages on a sheet.
SIZES = {"wide": (1440, 900, 4, 16), "narrow": (390, 844, 8, 24)}
# Six pages that differ: tiles, a list, records, a chart with a table, money, a form.
STATE_PAGES = ("overview", "topics", "messages", "group", "costs", "billing-details")
THUMBNAIL_PX = 1800
# What every page asks for. Without it there is no page whose state could be seen.
SHELL = re.compile(r"/api/v1/(session|clusters|clusters/[^/]+|incidents|limits)(\?|$)")


# Every part of a page that is there failed, and nothing loads.
FAILED = f"""() => document.querySelector("main [role=alert]") !== null
  && document.querySelector("{WAITING}") === null"""
# The name of a page, and the page as it is open.
Shown = tuple[str, Page]


@dataclass(frozen=True, slots=True)
class Picture:
    """A page as it was shown, as PNG."""

    caption: str
    png: bytes


def make_sheets(folder: Path) -> None:
    """Makes all sheets in a folder, and says which."""
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        _write_all(browser, folder, "data", _pages_with_data(browser))
        for state, show in STATES.items():
            _write_all(browser, folder, state, show(browser))
        browser.close()


def _pages_with_data(browser: Browser) -> Iterator[Shown]:
    with serving() as site:
        for pages, state in ((PAGES, site), (ENTRANCES, None)):
            with _window(browser, site.address, state) as page:
                for name, (path, text) in pages.items():
                    page.set_viewport_size({"width": 1440, "height": 900})
                    open_page(page, path, text)
                    yield name, page


def _empty(browser: Browser) -> Iterator[Shown]:
    """Every list is empty, as in a new organization."""

    def without_items(request: Request) -> Answer:
        answer = answer_to(request)
        if isinstance(answer.body, dict) and not SHELL.match(request.path):
            for name, value in answer.body.items():
                if isinstance(value, list):
                    answer.body[name] = []
        return answer

    yield from _answered(browser, without_items)


def _hostile(browser: Browser) -> Iterator[Shown]:
    """Names and records are whatever tenants may have written."""
    yield from _answered(browser, answer_with_hostile_names)


def _loading(browser: Browser) -> Iterator[Shown]:
    """What a page asks for is not answered yet."""
    for name, page in _routed(browser, lambda _: None):
        expect(page.locator(WAITING).first).to_be_visible(timeout=TIMEOUT_MS)
        yield name, page


def _error(browser: Browser) -> Iterator[Shown]:
    """What a page asks for fails, also when it is repeated."""
    body = problem(HTTPStatus.INTERNAL_SERVER_ERROR, "Something failed on our side.").body

    def fail(route: Route) -> None:
        route.fulfill(status=500, json=body, content_type="application/problem+json")

    for name, page in _routed(browser, fail):
        page.wait_for_function(FAILED, timeout=TIMEOUT_MS)
        yield name, page


def _stale(browser: Browser) -> Iterator[Shown]:
    """The service went away after a page was shown."""
    for name in STATE_PAGES:
        with serving() as site, _window(browser, site.address, site) as page:
            open_page(page, *PAGES[name])
            site.away = True
            stale = page.get_by_text(re.compile("^No answer")).first
            expect(stale).to_be_visible(timeout=TIMEOUT_MS)
            yield name, page


STATES: dict[str, Callable[[Browser], Iterator[Shown]]] = {
    "loading": _loading,
    "empty": _empty,
    "error": _error,
    "stale": _stale,
    "hostile": _hostile,
}


def _answered(browser: Browser, answer_of: Callable[[Request], Answer]) -> Iterator[Shown]:
    with serving(answer_of) as site, _window(browser, site.address, site) as page:
        for name in STATE_PAGES:
            open_loaded(page, PAGES[name][0])
            yield name, page


def _routed(browser: Browser, answer: Callable[[Route], None]) -> Iterator[Shown]:
    """Pages whose own requests `answer` has, and not those of the frame around every page."""
    with serving() as site:

        def route_request(route: Route) -> None:
            path = route.request.url.removeprefix(site.address)
            if SHELL.match(path):
                route.continue_()
            elif "/watch" in path:
                route.fulfill(status=429)
            else:
                answer(route)

        for name in STATE_PAGES:
            with _window(browser, site.address, site) as page:
                page.route("**/api/v1/**", route_request)
                page.goto(PAGES[name][0], wait_until="commit")
                expect(page.get_by_role("main")).to_be_visible(timeout=TIMEOUT_MS)
                yield name, page


@contextlib.contextmanager
def _window(browser: Browser, address: str, signed_in: Site | None) -> Iterator[Page]:
    context: BrowserContext = browser.new_context(
        base_url=address,
        storage_state=signed_in.state if signed_in else None,  # type: ignore[arg-type]
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.clock.set_fixed_time(NOW)
    try:
        yield page
    finally:
        context.close()


def _write_all(browser: Browser, folder: Path, state: str, shown: Iterable[Shown]) -> None:
    """Takes each page in both themes and sizes while it is open, and writes the sheets of each."""
    taken: dict[tuple[Theme, str], list[Picture]] = {}
    for name, page in shown:
        for theme, size in itertools.product(THEMES, SIZES):
            show_in(page, theme, *SIZES[size][:2])
            taken.setdefault((theme, size), []).append(Picture(name, page.screenshot()))
    for (theme, size), pictures in taken.items():
        _, _, in_a_row, most = SIZES[size]
        for at in range(0, len(pictures), most):
            file = folder / f"{state}-{theme}-{size}-{at // most + 1}.png"
            file.write_bytes(_sheet_of(browser, pictures[at : at + most], in_a_row))
            sys.stderr.write(f"{file}\n")


def _sheet_of(browser: Browser, pictures: Iterable[Picture], in_a_row: int) -> bytes:
    """Pictures beside each other with their names, as one PNG: the browser lays them out."""
    figures = "".join(
        f"<figure><img src='data:image/png;base64,{base64.b64encode(one.png).decode()}'>"
        f"<figcaption>{html.escape(one.caption)}</figcaption></figure>"
        for one in pictures
    )
    style = (
        "body{margin:12px;background:#888;font:14px sans-serif;display:grid;gap:12px;"
        f"align-content:start;grid-template-columns:repeat({in_a_row},1fr)}}"
        "figure{margin:0} img{width:100%}"
    )
    page = browser.new_page(viewport={"width": THUMBNAIL_PX, "height": 900})
    page.set_content(f"<style>{style}</style>{figures}")
    picture = page.screenshot(full_page=True)
    page.close()
    return picture


if __name__ == "__main__":
    make_sheets(Path(sys.argv[1]))
