"""Writes layers and images as files, without a container tool and without a registry.

An image is the archive that `docker save` writes, which containerd imports. Its format:
`manifest.json` of Docker's image specification, version 1.2.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ARCHITECTURE, SYSTEM = "amd64", "linux"
BLOCK = 1 << 20


@dataclass(frozen=True)
class Layer:
    """A layer: a tar file, and the digest of its content (`sha256:…`)."""

    path: Path
    digest: str

    @classmethod
    def of_tree(cls, tree: Path, path: Path) -> Layer:
        """Makes a layer of everything in a folder, owned by root."""
        return cls.of(path, lambda tar: tar.add(tree, arcname=".", filter=_by_root))

    @classmethod
    def of(cls, path: Path, fill: Callable[[tarfile.TarFile], None]) -> Layer:
        """Makes a layer of what `fill` adds to a tar file."""
        with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
            fill(tar)
        return cls.read(path)

    @classmethod
    def read(cls, path: Path) -> Layer:
        """Reads a layer that was written before, with its digest from the file beside it."""
        kept = path.with_suffix(".sha256")
        if not kept.exists():
            digest = hashlib.sha256()
            with path.open("rb") as file:
                while piece := file.read(BLOCK):
                    digest.update(piece)
            kept.write_text(f"sha256:{digest.hexdigest()}")
        return cls(path, kept.read_text())


def write_image(
    path: Path, name: str, layers: Sequence[Layer], config: Mapping[str, object]
) -> None:
    """Writes the archive of one image. `config`: in the form of the image specification."""
    document = {
        "architecture": ARCHITECTURE,
        "os": SYSTEM,
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in layers]},
        "history": [{"created_by": "tests.kubernetes.image"} for _ in layers],
    }
    encoded = json.dumps(document, sort_keys=True).encode()
    config_name = f"{hashlib.sha256(encoded).hexdigest()}.json"
    names = [f"{layer.digest.partition(':')[2]}.tar" for layer in layers]
    manifest = [{"Config": config_name, "RepoTags": [name], "Layers": names}]
    with tarfile.open(path, "w") as tar:
        for entry_name, data in (
            (config_name, encoded),
            ("manifest.json", json.dumps(manifest).encode()),
        ):
            info = tarfile.TarInfo(entry_name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        for entry_name, layer in zip(names, layers, strict=True):
            tar.add(layer.path, arcname=entry_name)


def _by_root(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info
