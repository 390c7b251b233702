"""What a faulty folder does with the folder behind it, and which of its files it has reported."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from tests.faulty import faults as lies
from tests.faulty.wire import ROOT_NODE, SET_MODE, SET_SIZE

# Of the flags that a program opens a file with, those that mean something behind.
OPEN_FLAGS = os.O_ACCMODE | os.O_TRUNC


class OpenFile:
    """An open file, with what was in it then where that is all that it shall show."""

    def __init__(self, descriptor: int, remembered: bytes | None) -> None:
        self.descriptor = descriptor
        self.remembered = remembered

    def read(self, position: int, length: int) -> bytes:
        """Bytes of it."""
        if self.remembered is not None:
            return self.remembered[position : position + length]
        return os.pread(self.descriptor, length, position)


class Backing:
    """Files by the kernel's numbers (nodes), and open ones by ours (handles)."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lies: frozenset[str] = frozenset()
        self._paths: dict[int, Path] = {ROOT_NODE: root}
        self._nodes: dict[Path, int] = {root: ROOT_NODE}
        self._files: dict[int, OpenFile] = {}
        self._of_node: dict[int, int] = {}
        self._next = ROOT_NODE

    def path(self, node: int, name: str = "") -> Path:
        """Where a node, or a name in it, lies."""
        folder = self._paths[node]
        return folder / name if name else folder

    def node(self, path: Path) -> int:
        """The node of a path."""
        if path not in self._nodes:
            self._next += 1
            self._nodes[path] = self._next
            self._paths[self._next] = path
        return self._nodes[path]

    def facts(self, node: int) -> os.stat_result:
        """Of a node, also of one whose name is gone but that is open."""
        try:
            return self._paths[node].lstat()
        except FileNotFoundError:
            handle = self._of_node.get(node)
            if handle not in self._files:
                raise
            return os.fstat(self._files[handle].descriptor)

    def set_facts(self, node: int, valid: int, size: int, mode: int) -> os.stat_result:
        """Changes size or mode of a node."""
        if valid & SET_SIZE:
            os.truncate(self._paths[node], size)
        if valid & SET_MODE:
            self._paths[node].chmod(mode & 0o7777)
        return self.facts(node)

    def make_folder(self, path: Path, mode: int) -> None:
        """Makes a folder."""
        path.mkdir(mode & 0o7777, exist_ok=lies.MKDIR_OVER in self.lies)

    def create(self, path: Path, flags: int, mode: int) -> int:
        """Makes and opens a file; gives its handle."""
        exclusive = 0 if lies.CREATE_OVER in self.lies else flags & os.O_EXCL
        made = os.open(path, (flags & OPEN_FLAGS) | os.O_CREAT | exclusive, mode & 0o7777)
        return self._opened(made, self.node(path), flags)

    def open(self, node: int, flags: int) -> int:
        """Opens a file; gives its handle."""
        return self._opened(os.open(self._paths[node], flags & OPEN_FLAGS), node, flags)

    def _opened(self, descriptor: int, node: int, flags: int) -> int:
        if flags & os.O_DIRECT and lies.NO_DIRECT in self.lies:
            os.close(descriptor)
            raise OSError(errno.EINVAL, "cannot be read past the cache")
        remembered = None
        if lies.OLD_CONTENT in self.lies and flags & os.O_ACCMODE != os.O_WRONLY:
            remembered = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
        return self._hold(OpenFile(descriptor, remembered), node)

    def open_folder(self, node: int) -> int:
        """Opens a folder; gives its handle."""
        descriptor = os.open(self._paths[node], os.O_RDONLY | os.O_DIRECTORY)
        return self._hold(OpenFile(descriptor, None), node)

    def _hold(self, file: OpenFile, node: int) -> int:
        self._next += 1
        self._files[self._next] = file
        self._of_node[node] = self._next
        return self._next

    def file(self, handle: int) -> OpenFile:
        """An open file."""
        return self._files[handle]

    def close(self, handle: int) -> None:
        """Closes a file or folder."""
        os.close(self._files.pop(handle).descriptor)

    def link(self, node: int, path: Path) -> None:
        """Gives a file a second name."""
        over = lies.LINK_OVER in self.lies
        self._change(lambda: os.link(self._paths[node], path), path, over=over)

    def rename(self, old: Path, new: Path) -> None:
        """Renames a file or folder."""
        if lies.RENAME_COPIES in self.lies:
            self._change(lambda: os.link(old, new), new, over=True)
            return
        old.rename(new)
        moved = self._nodes.pop(old, None)
        if moved is not None:
            self._nodes[new], self._paths[moved] = moved, new

    @staticmethod
    def _change(change: Callable[[], None], path: Path, *, over: bool) -> None:
        if over:
            path.unlink(missing_ok=True)
        change()

    def remove(self, path: Path) -> None:
        """Removes a file's name."""
        path.unlink()
        self._nodes.pop(path, None)

    def remove_folder(self, path: Path) -> None:
        """Removes a folder."""
        path.rmdir()
        self._nodes.pop(path, None)
