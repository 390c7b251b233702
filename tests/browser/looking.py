"""How a page is looked at: in both themes and at two sizes, by axe, for its width."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visitor import TIMEOUT_MS
from tests.supervisor.run import ROOT

Theme = Literal["light", "dark"]

THEMES: tuple[Theme, ...] = ("light", "dark")
SIZES = {"wide": (1280, 860), "narrow": (360, 780)}
# What a page shows while it loads.
WAITING = "[aria-busy=true], .mantine-Skeleton-root"
NO_WIDER_THAN_THE_WINDOW = "document.documentElement.scrollWidth <= window.innerWidth"
AXE = ROOT / "frontend/node_modules/axe-core/axe.min.js"
# Each theme at one size: what hides at the other one is looked at in the other theme.
AXE_SIZES: dict[Theme, str] = {"light": "wide", "dark": "narrow"}
# Labels fade from the colours of one theme to those of the other; only the last colours count.
VIOLATIONS = """async () => {
  for (const each of document.getAnimations()) if (each instanceof CSSTransition) each.finish();
  const values = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
  const runOnly = { type: "tag", values };
  const found = await axe.run(document, { runOnly, resultTypes: ["violations"] });
  return found.violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)}: ${failureSummary}`),
  );
}"""


def screenshots() -> Path | None:
    """Makes and returns the folder that `FRESHET_SCREENSHOTS` names; None where it names none."""
    chosen = os.environ.get("FRESHET_SCREENSHOTS")
    if chosen is None:
        return None
    folder = Path(chosen)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def look_at_all(
    page: Page, pages: dict[str, tuple[str, str]], subtests: pytest.Subtests, pictures: Path | None
) -> None:
    """Looks at every page, by its name: its address, and a text that it has with its data.

    Each is opened once: theme and width change while it is open, as they do for a person. Without
    pictures to take, each theme is looked at in the size in which axe looks at it.
    """
    page.add_init_script(path=AXE)
    looks = list(itertools.product(THEMES, SIZES) if pictures else AXE_SIZES.items())
    for name, (path, text) in pages.items():
        opened = False
        with subtests.test(name):
            open_page(page, path, text)
            opened = True
        for theme, size in looks if opened else ():
            with subtests.test(f"{name}-{theme}-{size}"):
                picture = pictures / f"{name}-{theme}-{size}.png" if pictures else None
                look_at(page, text, theme, size, picture)


def open_page(page: Page, path: str, text: str) -> None:
    """Opens a page and waits for its text, and for all that it loads."""
    page.goto(path)
    expect(page.get_by_text(text).first).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.locator(WAITING)).to_have_count(0, timeout=TIMEOUT_MS)
    page.evaluate("document.fonts.ready")


def open_loaded(page: Page, path: str) -> None:
    """Opens a page of which no text is known, and waits for all that it loads."""
    page.goto(path)
    expect(page.get_by_role("main")).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.locator(WAITING)).to_have_count(0, timeout=TIMEOUT_MS)


def look_at(page: Page, text: str, theme: Theme, size: str, picture: Path | None) -> None:
    """Shows an open page in a theme and a window's size, takes a picture, and measures it."""
    show_in(page, theme, *SIZES[size])
    expect(page.get_by_text(text).first).to_be_visible(timeout=TIMEOUT_MS)
    if picture is not None:
        page.screenshot(path=picture)
    # Charts follow the window one frame later. (A predicate as a function: no page allows `eval`.)
    page.wait_for_function(f"() => {NO_WIDER_THAN_THE_WINDOW}", timeout=TIMEOUT_MS)
    if AXE_SIZES[theme] == size:
        assert page.evaluate(VIOLATIONS) == []


def show_in(page: Page, theme: Theme, width: int, height: int) -> None:
    """Shows an open page in a theme and a window of `width` × `height` pixels."""
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    shown = page.locator(f"html[data-mantine-color-scheme={theme}]")
    expect(shown).to_have_count(1, timeout=TIMEOUT_MS)
