"""`docs/reference/limits.md`, made from the registry.

`python -m console.limits.reference` prints the page; a test compares it with the file.
"""

from __future__ import annotations

import dataclasses
import sys

from console.limits.choices import LimitScope
from console.limits.registry import LIMITS, Limit
from console.settings.sections import Limits

_HEAD = """\
# Limits

What is enforced, and what happens at each. `GET /api/v1/limits` shows an organisation's own values
with what it uses; whoever needs more asks with `POST /api/v1/limit-requests`. A problem that names
a limit has it as `quota`, with its value and what was used.

Where Freshet runs for itself, the defaults are settings of the section `limits`.

This page is made from the code: `python -m console.limits.reference`.
"""
_TITLES = {
    LimitScope.ORGANIZATION: "Of an organisation",
    LimitScope.CLUSTER: "Of a cluster",
    LimitScope.ADDRESS: "Of an address",
}


def limits_reference() -> str:
    """The page, with a table for each scope."""
    parts = [_HEAD]
    defaults = {field.name: int(str(field.default)) for field in dataclasses.fields(Limits)}
    for scope, title in _TITLES.items():
        parts.append(f"\n## {title}\n\n")
        parts.append("| Limit | Default | Can be raised | What happens |\n|---|---|---|---|\n")
        found = sorted((each for each in LIMITS if each.scope is scope), key=lambda each: each.name)
        parts += [_row(limit, defaults[limit.name]) for limit in found]
    return "".join(parts)


def _row(limit: Limit, default: int) -> str:
    raisable = "yes" if limit.raisable else "no"
    return f"| `{limit.name}` | {default} {limit.unit} | {raisable} | {limit.effect} |\n"


if __name__ == "__main__":
    sys.stdout.write(limits_reference())
