"""Collects files of this machine for a layer."""

from __future__ import annotations

import hashlib
import io
import json
import re
import stat
import subprocess
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tests.kubernetes.image.archive import Layer

# The folders in which the image's loader looks for libraries by default.
LIBRARIES = PurePosixPath("/usr/lib/x86_64-linux-gnu")
LOADER = PurePosixPath("/lib64/ld-linux-x86-64.so.2")
# Part of the key of the cache: a layer that older code built of the same files is not used.
FORMAT = 1
EXECUTABLE = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
OF_LDD = re.compile(r"^\t(?:(\S+) => )?(/\S+) \(0x", re.MULTILINE)


@dataclass
class Contents:
    """The contents of a layer: files by their path in the image.

    Links are followed, so that their target is copied. All files belong to root.
    """

    files: dict[PurePosixPath, Path] = field(default_factory=dict)
    texts: dict[PurePosixPath, str] = field(default_factory=dict)
    links: dict[PurePosixPath, str] = field(default_factory=dict)
    folders: dict[PurePosixPath, int] = field(default_factory=dict)

    def add(
        self, target: str | PurePosixPath, source: Path, *, without: Iterable[str] = ()
    ) -> None:
        """Adds a file, or a folder with all that is in it except names in `without`."""
        left = frozenset(without)
        if not source.is_dir():
            self.files[PurePosixPath(target)] = source
            return
        for path in _walk(source, left):
            self.files[PurePosixPath(target) / path.relative_to(source)] = path

    def add_libraries(self) -> None:
        """Adds the shared libraries that the programs and libraries so far are linked to."""
        programs = [path for path in self.files.values() if _is_program(path)]
        # In batches, because a command line cannot have thousands of paths.
        for start in range(0, len(programs), 200):
            self._add_libraries(programs[start : start + 200])

    def key(self) -> str:
        """The key of the layer in the cache. It differs where anything in the layer would."""
        digest = hashlib.sha256(str(FORMAT).encode())
        for target, path in sorted(self.files.items()):
            status = path.stat()
            row = [str(target), status.st_size, status.st_mtime_ns, status.st_mode & EXECUTABLE]
            digest.update(json.dumps(row).encode())
        rest: list[Mapping[PurePosixPath, object]] = [self.texts, self.links, self.folders]
        named = [sorted((str(name), mapping[name]) for name in mapping) for mapping in rest]
        digest.update(json.dumps(named).encode())
        return digest.hexdigest()[:16]

    def layer(self, name: str, cache: Path) -> Layer:
        """The layer, from the cache where it was built before."""
        path = cache / f"{name}-{self.key()}.tar"
        if not path.exists():
            scratch = path.with_suffix(".new")
            with tarfile.open(scratch, "w", format=tarfile.PAX_FORMAT) as tar:
                self._write(tar)
            scratch.rename(path)
        return Layer.read(path)

    def _add_libraries(self, programs: list[Path]) -> None:
        done = subprocess.run(["ldd", *programs], check=False, capture_output=True, text=True)
        own = {path.resolve() for path in self.files.values()}
        for name, path in OF_LDD.findall(done.stdout):
            if not name:
                self.files[LOADER] = Path(path)
            elif Path(path).resolve() not in own:
                self.files[LIBRARIES / name] = Path(path)

    def _write(self, tar: tarfile.TarFile) -> None:
        made: set[PurePosixPath] = set()
        for target, mode in self.folders.items():
            _make_folder(tar, target, made, mode)
        for target, path in sorted(self.files.items()):
            _make_folder(tar, target.parent, made)
            info = tar.gettarinfo(path.resolve(), _inside(target))
            # A hard link is written as a file of its own.
            info.type, info.linkname, info.size = tarfile.REGTYPE, "", path.stat().st_size
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            info.mode = 0o755 if info.mode & EXECUTABLE else 0o644
            with path.open("rb") as file:
                tar.addfile(info, file)
        for target, text in sorted(self.texts.items()):
            _make_folder(tar, target.parent, made)
            info = tarfile.TarInfo(_inside(target))
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
        for target, source in sorted(self.links.items()):
            _make_folder(tar, target.parent, made)
            info = tarfile.TarInfo(_inside(target))
            info.type, info.linkname = tarfile.SYMTYPE, source
            tar.addfile(info)


def _walk(folder: Path, without: frozenset[str]) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in without:
            continue
        if path.is_dir():
            yield from _walk(path, without)
        elif path.is_file():
            yield path


def _is_program(path: Path) -> bool:
    if not (path.suffix == ".so" or ".so." in path.name or path.stat().st_mode & EXECUTABLE):
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _make_folder(
    tar: tarfile.TarFile, folder: PurePosixPath, made: set[PurePosixPath], mode: int = 0o755
) -> None:
    if folder in made or folder == PurePosixPath("/"):
        return
    _make_folder(tar, folder.parent, made)
    made.add(folder)
    info = tarfile.TarInfo(_inside(folder))
    info.type, info.mode = tarfile.DIRTYPE, mode
    tar.addfile(info)


def _inside(path: PurePosixPath) -> str:
    return str(path).lstrip("/")
