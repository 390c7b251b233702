"""The files of this checkout, as git sees them."""

from __future__ import annotations

import subprocess
from pathlib import Path, PurePosixPath


def tracked_files(root: Path) -> set[str]:
    """Paths from `root` of every file that git does not ignore."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return {name for name in listing.split("\0") if name and (root / name).is_file()}


def texts_of(root: Path) -> dict[PurePosixPath, str]:
    """Path from `root` → text, for every file that is text."""
    texts = {}
    for name in sorted(tracked_files(root)):
        content = (root / name).read_bytes()
        if b"\0" not in content:
            texts[PurePosixPath(name)] = content.decode()
    return texts
