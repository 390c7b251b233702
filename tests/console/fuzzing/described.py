"""What the committed OpenAPI file says of addresses."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[3] / "docs" / "reference" / "openapi.json"


@cache
def document() -> dict[str, Any]:
    """The committed file."""
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


def labels() -> list[str]:
    """Every operation, as `GET /api/v1/alerts`."""
    return [
        f"{method.upper()} {path}" for path, item in document()["paths"].items() for method in item
    ]


def lists() -> list[str]:
    """The addresses of lists that are read page by page."""
    return [path for path, item in document()["paths"].items() if "cursor" in _queried(item)]


def files() -> list[str]:
    """The addresses of what is no JSON: archives, tables, documents, metrics, streams."""
    return [path for path, item in document()["paths"].items() if _other_types(item)]


def parameters_of(path: str) -> dict[str, str]:
    """Each parameter of an address, and what it lies in: `clusters` of `/clusters/{id}:wake`."""
    parts = path.split("/")
    return {
        name: parts[place - 1]
        for place, part in enumerate(parts)
        for name in re.findall(r"^\{(\w+)\}", part)
    }


def _other_types(item: dict[str, Any]) -> set[str]:
    succeeded = item.get("get", {}).get("responses", {}).get("200", {})
    return set(succeeded.get("content", {})) - {"application/json"}


def _queried(item: dict[str, Any]) -> set[str]:
    found = item.get("get", {}).get("parameters", [])
    return {each["name"] for each in found if each["in"] == "query"}
