"""Faults of usage files: delivered late, doubled under other keys, shuffled, torn.

It works on the folder by the documented format alone, without the project's code.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class UsageFile:
    """A manifest and what it says."""

    path: Path
    said: dict[str, Any]

    @property
    def data(self) -> Path:
        """The Parquet file beside it."""
        return self.path.with_suffix(".parquet")

    def is_sound(self) -> bool:
        """Whether the data has the size and digest in the manifest."""
        digest: str = self.said["sha256"]
        return hashlib.sha256(self.data.read_bytes()).hexdigest() == digest


class UsageFolder:
    """The usage folder of a cell, and a place aside for what is late."""

    def __init__(self, root: Path, aside: Path, seed: int) -> None:
        self.root, self.aside = root, aside
        self._draw = random.Random(f"{seed} usage files")
        self.doubled = self.torn = self.orphaned = 0

    def files(self) -> list[UsageFile]:
        """All files that count, in the order of their keys."""
        return list(self._read())

    def _read(self) -> Iterator[UsageFile]:
        for path in sorted(self.root.glob("v1/cell=*/day=*/*.json")):
            if path.with_suffix(".parquet").exists():
                yield UsageFile(path, json.loads(path.read_bytes()))

    def double(self, share: float) -> None:
        """Copies some files under other keys, as of another moment."""
        for file in self.files():
            if self._draw.random() < share:
                self._put_again(file, file.data.read_bytes())
                self.doubled += 1

    def tear(self, count: int) -> None:
        """Adds damaged copies of some files, and copies of others without their manifests."""
        files = self.files()
        for file in self._draw.sample(files, min(count, len(files))):
            data = bytearray(file.data.read_bytes())
            data[len(data) // 2] ^= 1
            self._put_again(file, bytes(data))
            self.torn += 1
        for file in self._draw.sample(files, min(count, len(files))):
            self._put_again(file, file.data.read_bytes(), manifest=False)
            self.orphaned += 1

    def _put_again(self, file: UsageFile, data: bytes, *, manifest: bool = True) -> None:
        moment = file.said["emitted_at_ms"] + self._draw.randrange(-50_000, 50_000)
        name = f"{moment:013d}-{self._draw.randbytes(8).hex()}"
        file.path.with_name(f"{name}.parquet").write_bytes(data)
        if manifest:
            key = str(file.path.with_name(f"{name}.parquet").relative_to(self.root))
            said = {**file.said, "key": key, "emitted_at_ms": moment}
            file.path.with_name(f"{name}.json").write_text(json.dumps(said))

    def hold_back(self, share: float) -> int:
        """Moves some files aside, as if they were late; returns how many."""
        held = [file for file in self.files() if self._draw.random() < share]
        for file in held:
            for path in (file.path, file.data):
                move_file(path, self.aside / path.relative_to(self.root))
        return len(held)

    def deliver(self) -> None:
        """Moves the late files back, data before manifests."""
        for pattern in ("*.parquet", "*.json"):
            for path in sorted(self.aside.rglob(pattern)):
                move_file(path, self.root / path.relative_to(self.aside))

    def run_manifest(self, run_id: str, day: str) -> dict[str, Any]:
        """What a roll-up is to read: every file that counts, in any order."""
        inputs: Sequence[dict[str, Any]] = [
            {name: file.said[name] for name in ("key", "size_bytes", "sha256", "rows")}
            for file in self.files()
        ]
        return {
            "version": 1,
            "run_id": run_id,
            "day": day,
            "usage_root": str(self.root),
            "inputs": self._draw.sample(inputs, len(inputs)),
        }


def move_file(source: Path, target: Path) -> None:
    """Moves a file into a folder that may not be there yet."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(source, target)
