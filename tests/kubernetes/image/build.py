"""Builds the image layer by layer. A layer that is in the cache is used again."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kubernetes.image import contents
from tests.kubernetes.image.archive import Layer, write_image

CACHE = contents.ROOT / ".tools" / "image"
# How many archives and layers of earlier checkouts are kept.
KEPT = 8


@dataclass(frozen=True)
class Image:
    """An image: its name, and an archive for containerd."""

    name: str
    archive: Path


def image_name() -> str:
    """The name of the image in manifests."""
    return f"freshet:{importlib.metadata.version('freshet')}"


def build(
    *,
    spark: bool = False,
    embedded: bool = False,
    brokers: bool = False,
    engine: Path | None = None,
    output: Path | None = None,
) -> Image:
    """Builds the image of this checkout.

    `spark` adds Spark and Java for the nightly jobs, `embedded` PostgreSQL and Redis for one
    machine. `brokers` leaves out all that brokers do not need, so that the image has a quarter of
    the size. `engine` is another build of the extension.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock, tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        fcntl.flock(lock, fcntl.LOCK_EX)
        groups = [] if brokers else ["service"] + ["embedded"] * embedded
        layers = _layers(Path(scratch), groups, spark=spark, engine=engine)
        how = config(spark=spark)
        whole = json.dumps([[layer.digest for layer in layers], how, image_name()])
        key = hashlib.sha256(whole.encode()).hexdigest()[:16]
        archive = output or CACHE / f"image-{key}.tar"
        if output is not None or not archive.exists():
            written = Path(scratch) / "image.tar"
            write_image(written, image_name(), layers, how)
            written.replace(archive)
        _forget({archive, *(layer.path for layer in layers)})
    return Image(image_name(), archive)


def _layers(
    scratch: Path, groups: Sequence[str], *, spark: bool, engine: Path | None
) -> list[Layer]:
    parts = {
        "system": contents.system(),
        **({"dependencies": contents.dependencies(groups=groups)} if groups else {}),
        **({"spark": contents.spark()} if spark else {}),
        "extension": contents.extension(scratch, engine),
        "freshet": contents.freshet(scratch),
    }
    return [part.layer(name, CACHE) for name, part in parts.items()]


def config(*, spark: bool) -> dict[str, Any]:
    """The image's configuration, in the form of the image specification."""
    path = [f"{contents.PREFIX}/bin", "/usr/bin"]
    environment = {
        "PYTHONPATH": str(contents.HOME),
        "PYTHONUNBUFFERED": "1",
        # No process may write to the folders of modules.
        "PYTHONDONTWRITEBYTECODE": "1",
        "LANG": "C.UTF-8",
        "HOME": "/tmp",  # noqa: S108 (of the image)
    }
    if spark:
        environment["JAVA_HOME"] = str(contents.JAVA)
        path.append(f"{contents.JAVA}/bin")
    environment["PATH"] = ":".join(path)
    return {
        "User": f"{contents.USER}:{contents.USER}",
        "WorkingDir": str(contents.HOME),
        "Entrypoint": ["python"],
        "Env": [f"{name}={value}" for name, value in environment.items()],
    }


def _forget(current: set[Path]) -> None:
    """Removes files of earlier checkouts, the oldest first."""
    old = sorted(set(CACHE.glob("*-*.tar")) - current, key=lambda path: path.stat().st_mtime)
    for path in old[:-KEPT]:
        path.unlink()
        path.with_suffix(".sha256").unlink(missing_ok=True)
