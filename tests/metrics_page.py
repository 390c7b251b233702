"""What `docs/reference/metrics.md` says, and what a process reports, in one shape."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "metrics.md"
ROW = re.compile(r"\| `((?:freshet|kafka)_\w+)` \| \w+ \|[^|]*\| (.+) \|")
HELP = re.compile(r"# HELP ((?:freshet|kafka)_\w+) (.+)")
# prometheus_client reports when a counter began, as a metric beside it.
BEGAN = "_created"


def documented(section: str) -> dict[str, str]:
    """Metrics of one section of the page: name → meaning."""
    text = PAGE.read_text(encoding="utf-8")
    section_text = re.search(
        rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE
    )
    assert section_text is not None, section
    return dict(ROW.findall(section_text.group(1)))


def reported_metrics(text: str) -> dict[str, str]:
    """Metrics on the `/metrics` page of a process: name → meaning."""
    return {
        name.removesuffix("_total"): what.removesuffix(".")
        for name, what in HELP.findall(text)
        if not name.endswith(BEGAN)
    }
