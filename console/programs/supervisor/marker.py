"""The mark of a restore that has begun to replace data: while it is there, nothing may start."""

from __future__ import annotations

import os
from pathlib import Path

from console.programs.supervisor.errors import StartError

NAME = "restoring"


def mark_restoring(home: Path, source: Path) -> None:
    """Sets the mark, which names the backup, and syncs it to disk."""
    file = home / NAME
    with file.open("w", encoding="utf-8") as stream:
        stream.write(f"{source}\n")
        stream.flush()
        os.fsync(stream.fileno())


def clear_restoring(home: Path) -> None:
    """Removes the mark."""
    (home / NAME).unlink(missing_ok=True)


def refuse_half_restored(home: Path) -> None:
    """Raises `StartError` where a restore was interrupted between its last steps."""
    try:
        source = (home / NAME).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return
    raise StartError(
        f"A restore was interrupted, and {home} holds data of two moments: run"
        f" `manage.py restore --from {source}` again, which begins anew and completes it."
    )
