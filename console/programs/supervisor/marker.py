"""The mark of a restore that has begun to replace things, and that nothing may start on top of."""

from __future__ import annotations

import os
from pathlib import Path

from console.programs.supervisor.errors import StartError

NAME = "restoring"


def mark_restoring(home: Path, source: Path) -> None:
    """Sets the mark. It is on disk when this returns."""
    file = home / NAME
    with file.open("w", encoding="utf-8") as stream:
        stream.write(f"{source}\n")
        stream.flush()
        os.fsync(stream.fileno())


def clear_restoring(home: Path) -> None:
    """Takes the mark away."""
    (home / NAME).unlink(missing_ok=True)


def refuse_half_restored(home: Path) -> None:
    """Raises `StartError` where a restore was interrupted among its last steps."""
    try:
        source = (home / NAME).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return
    raise StartError(
        f"A restore was interrupted, and {home} has things of two times: run"
        f" `manage.py restore --from {source}` again, which begins anew and completes it."
    )
