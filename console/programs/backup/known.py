"""What this release's code knows: the migrations that a database may have gone through."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path

from console.programs.supervisor.migrations import PACKAGES
from console.programs.supervisor.services import ROOT


def known_migrations(root: Path = ROOT) -> set[str]:
    """Every `<application>.<name>`, of this project and of Django's own applications."""
    folders = [folder for name in PACKAGES for folder in (root / name).rglob("migrations")]
    django = importlib.util.find_spec("django")
    if django is not None and django.origin is not None:
        folders += (Path(django.origin).parent / "contrib").rglob("migrations")
    return {
        f"{folder.parent.name}.{file.stem}"
        for folder in folders
        for file in folder.glob("[0-9]*.py")
    }


def unknown_migrations(found: Iterable[str]) -> list[str]:
    """Those that only a newer release has."""
    return sorted(set(found) - known_migrations())
