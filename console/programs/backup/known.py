"""The migrations that this release knows, to recognise a backup of a newer release."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path

from console.programs.supervisor.migrations import PACKAGES
from console.programs.supervisor.services import ROOT


def known_migrations(root: Path = ROOT) -> set[str]:
    """Returns `<application>.<name>` of every migration of this project and of Django itself."""
    folders = [folder for name in PACKAGES for folder in (root / name).rglob("migrations")]
    django = importlib.util.find_spec("django")
    if django is not None and django.origin is not None:
        folders += (Path(django.origin).parent / "contrib").rglob("migrations")
    return {
        f"{folder.parent.name}.{file.stem}"
        for folder in folders
        for file in folder.glob("[0-9]*.py")
    }


def unknown_migrations(migrations: Iterable[str]) -> list[str]:
    """Returns those migrations, sorted, that this release does not know."""
    return sorted(set(migrations) - known_migrations())
