"""What `docs/reference/metrics.md` says, and what a process tells, in one shape."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "metrics.md"
ROW = re.compile(r"\| `((?:freshet|kafka)_\w+)` \| \w+ \|[^|]*\| (.+) \|")
HELP = re.compile(r"# HELP ((?:freshet|kafka)_\w+) (.+)")
# prometheus_client tells when a counter began, as a metric beside it.
BEGAN = "_created"


def documented(section: str) -> dict[str, str]:
    """Metrics of one section of the page, with what they are."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(
        rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE
    )
    assert found is not None, section
    return dict(ROW.findall(found.group(1)))


def told(text: str) -> dict[str, str]:
    """Metrics that a process tells, with what they are."""
    return {
        name.removesuffix("_total"): what.removesuffix(".")
        for name, what in HELP.findall(text)
        if not name.endswith(BEGAN)
    }
