"""A digest of files: two states of them with the same digest are the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path


def digest_of(root: Path, files: Iterable[Path]) -> str:
    """SHA-256 of the names (from `root` on) and contents of files, as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    for path in sorted(files):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
