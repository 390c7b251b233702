"""What goes wrong in a faulty folder, as one value that goes through a pipe."""

from __future__ import annotations

import dataclasses
import errno
import fnmatch
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

# How a folder can be made to break its promises.
CREATE_OVER = "create-over"  # exclusive creation takes a name that is taken
LINK_OVER = "link-over"  # a link takes a name that is taken
MKDIR_OVER = "mkdir-over"  # a folder is made where one is
RENAME_COPIES = "rename-copies"  # a renamed file keeps its old name too
OLD_CONTENT = "old-content"  # an open file shows what was in it when it was opened
NO_DIRECT = "no-direct"  # files cannot be read past the cache
REMEMBERS_NAMES = "remembers-names"  # which names exist is remembered, also that one does not
LIES = (
    CREATE_OVER,
    LINK_OVER,
    MKDIR_OVER,
    RENAME_COPIES,
    OLD_CONTENT,
    NO_DIRECT,
    REMEMBERS_NAMES,
)


@dataclass(frozen=True)
class Faults:
    """Operations are `create`, `link`, `mkdir`, `rename`, `unlink`, `rmdir`, `lookup`, `open`,
    `read`, `write`, `fsync`, `fsyncdir`, `list`.
    """

    # By operation the name of an error (`EIO`); nothing else happens then.
    errors: Mapping[str, str] = field(default_factory=dict)
    # By operation how long it takes, in seconds; others wait meanwhile, as for a disk.
    delays_s: Mapping[str, float] = field(default_factory=dict)
    # Operations that do not end before other faults are in force; others go on meanwhile.
    hangs: Sequence[str] = ()
    lies: Sequence[str] = ()
    # Which file names errors, delays and hangs are about, and in which folders, by their paths
    # within the mount; `*` stands for slashes too.
    names: str = "*"
    folders: str = "*"

    def error(self, operation: str, path: PurePath) -> int:
        """The number of the error that an operation on a file ends with; 0 for none.

        `path` is the file's within the mount.
        """
        name_of_error = self.errors.get(operation)
        if name_of_error is None or not self._is_about(path):
            return 0
        number: int = getattr(errno, name_of_error)
        return number

    def delay_s(self, operation: str, path: PurePath) -> float:
        """How long an operation on a file takes."""
        return self.delays_s.get(operation, 0.0) if self._is_about(path) else 0.0

    def does_hang(self, operation: str, path: PurePath) -> bool:
        """Whether an operation on a file does not end."""
        return operation in self.hangs and self._is_about(path)

    def _is_about(self, path: PurePath) -> bool:
        return fnmatch.fnmatch(path.name, self.names) and fnmatch.fnmatch(
            str(path.parent), self.folders
        )

    def to_line(self) -> bytes:
        """As a line for the server."""
        return json.dumps(dataclasses.asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Faults:
        """From a line."""
        return cls(**json.loads(line))
