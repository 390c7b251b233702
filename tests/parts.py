"""The parts of `make test-all`: which test is in which, and whether a part's result still holds.

usage: python -m tests.parts tested PART      what it tests, with the commit and the last change
       python -m tests.parts holds PART       since which commit its result holds; 1: it does not
       python -m tests.parts state PART       the commit, and a digest of what it tests
       python -m tests.parts record PART STATE   it has passed, with its files in that state
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tests.digests import digest_of

ROOT = Path(__file__).parent.parent
TABLE = Path(__file__).with_name("parts.toml")
# Passed parts, each with the commit and the digest of what it tested.
PASSED = Path(".tools") / "parts"
REST = "rest"


class UnknownPartError(Exception):
    """No part has this name."""


@dataclass(frozen=True)
class Part:
    """A part. `tested`: the files and folders whose change makes its result void. `tests`: a folder
    whose `full` tests are all in this part.
    """

    name: str
    tested: tuple[str, ...]
    tests: str | None = None


def parts() -> dict[str, Part]:
    """All parts by name, in the order in which they run."""
    table = tomllib.loads(TABLE.read_text())
    return {
        name: Part(name, tuple(entry["tested"]), entry.get("tests"))
        for name, entry in table.items()
    }


def part_of(path: PurePosixPath, mark: tuple[object, ...], known: dict[str, Part]) -> str:
    """The part of a `full` test, by its file (from the root) and what its mark says.

    Raises `UnknownPartError`.
    """
    if mark:
        name = str(mark[0])
        if name not in known:
            message = f"there is no part {name}; tests/parts.toml has {', '.join(known)}"
            raise UnknownPartError(message)
        return name
    for part in known.values():
        if part.tests is not None and path.is_relative_to(part.tests):
            return part.name
    return REST


def digest_of_part(root: Path, part: Part) -> str:
    """The digest of names and contents of all files that a part tests and git does not ignore."""
    listed = _run_git(
        root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", *part.tested
    )
    paths = {root / name for name in listed.split("\0") if name}
    return digest_of(root, filter(Path.is_file, paths))


def state_of(root: Path, part: Part) -> str:
    """The commit, and the digest of all that the part tests, as one line."""
    return f"{_run_git(root, 'rev-parse', '--short', 'HEAD')} {digest_of_part(root, part)}"


def record_pass(root: Path, part: Part, state: str) -> None:
    """Notes that a part has passed with its files in that state."""
    file = root / PASSED / part.name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(state + "\n")


def holds_since(root: Path, part: Part) -> str | None:
    """The commit at which the part passed, or None where what it tests has changed since."""
    file = root / PASSED / part.name
    if not file.exists():
        return None
    commit, digest = file.read_text().split()
    return commit if digest == digest_of_part(root, part) else None


def tested(root: Path, part: Part) -> str:
    """What a part tests, with the commit and the last change, as a line for people."""
    commit = _run_git(root, "rev-parse", "HEAD")
    changed = _run_git(root, "log", "-1", "--format=%h %cs", "--", *part.tested)
    return f"commit {commit}, last change of what is tested ({' '.join(part.tested)}): {changed}"


def _run_git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=root, check=True, capture_output=True, text=True
    ).stdout.strip()


def main(arguments: list[str]) -> int:
    """Answers a question of `.ci/test-all`."""
    known = parts()
    match arguments:
        case ["tested" | "holds" | "state" | "record", name, *_] if name not in known:
            sys.stderr.write(f"there is no part {name}; the parts are: {', '.join(known)}\n")
            return 2
        case ["tested", name]:
            answer: str | None = tested(ROOT, known[name])
        case ["holds", name]:
            answer = holds_since(ROOT, known[name])
        case ["state", name]:
            answer = state_of(ROOT, known[name])
        case ["record", name, state]:
            record_pass(ROOT, known[name], state)
            answer = ""
        case _:
            sys.stderr.write(__doc__ or "")
            return 2
    if answer:
        sys.stdout.write(f"{answer}\n")
    return int(answer is None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
