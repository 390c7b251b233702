"""What the committed OpenAPI file says of paths and their parameters."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[3] / "docs" / "reference" / "openapi.json"


@cache
def document() -> dict[str, Any]:
    """Returns the committed file's document."""
    content: dict[str, Any] = json.loads(FILE.read_text())
    return content


def labels() -> list[str]:
    """Returns every operation in the form `GET /api/v1/alerts`."""
    return [
        f"{method.upper()} {path}" for path, item in document()["paths"].items() for method in item
    ]


def lists() -> list[str]:
    """Returns the paths of lists that are read page by page."""
    return [path for path, item in document()["paths"].items() if "cursor" in _query_names(item)]


def files() -> list[str]:
    """Returns the paths that answer something other than JSON, such as archives and streams."""
    return [path for path, item in document()["paths"].items() if _other_types(item)]


def parameters_of(path: str) -> dict[str, str]:
    """Returns a path's parameters with the collections before them: `id` in `/clusters/{id}:wake`
    is in `clusters`.
    """
    parts = path.split("/")
    return {
        name: parts[index - 1]
        for index, part in enumerate(parts)
        for name in re.findall(r"^\{(\w+)\}", part)
    }


def _other_types(item: dict[str, Any]) -> set[str]:
    succeeded = item.get("get", {}).get("responses", {}).get("200", {})
    return set(succeeded.get("content", {})) - {"application/json"}


def _query_names(item: dict[str, Any]) -> set[str]:
    parameters = item.get("get", {}).get("parameters", [])
    return {parameter["name"] for parameter in parameters if parameter["in"] == "query"}
