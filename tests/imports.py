"""Which files of this project a Python file imports, read from its text."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = (
    "billing", "brokers", "console", "metering", "provisioning", "spark_usage", "tests",
)  # fmt: skip


def with_imported(files: Iterable[Path]) -> set[Path]:
    """Files, and all files of this project that they import, directly or through others."""
    new, visited = set(files), set[Path]()
    while new:
        path = new.pop()
        visited.add(path)
        new |= set(_imported(path)) - visited
    return visited


def _imported(path: Path) -> Iterator[Path]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            # What is imported from a package may be a module of it.
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            package, *_ = name.split(".")
            if package in PACKAGES:
                place = ROOT.joinpath(*name.split("."))
                yield from filter(Path.is_file, (place.with_suffix(".py"), place / "__init__.py"))
