"""The build of an earlier commit, as a side that runs beside this checkout's.

`python -m tests.bench.before COMMIT` builds it. Everything lies in `.bench/before`:

    <commit>/tree      the commit's files, a Git worktree, until they are built
    <commit>/target    Cargo's target folder, until they are built
    <commit>/wheels    the wheel, which later runs use again
    <commit>/compiler  what compiled it: another compiler, or other options, build it anew
    <commit>/venv      the wheel, installed (`.ci/bench`)
    current            the commit that runs, a link to its folder

No two commits share a target folder, although most of their dependencies are the same. Cargo knows
a crate by its path within the workspace, and what is new by the time of its files: it would take
what it compiled of one commit for another one's.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.bench.release import ReleaseError, build_wheel
from tests.bench.report import progress
from tests.peer.jars import ROOT

COMMIT_DIGITS = 12
# Variables with which Cargo would compile in another way than the commit says.
OPTION = re.compile(r"(CARGO_(BUILD_|ENCODED_)?)?RUSTFLAGS$|CARGO_PROFILE_RELEASE_")


class BeforeError(Exception):
    """The commit cannot be a side; the message says what to do."""


class Before:
    """Builds of earlier commits of one clone, kept under its `.bench/before`."""

    def __init__(self, root: Path = ROOT) -> None:
        """`root` is the folder of the clone's checkout."""
        self.root = root
        self.folder = root / ".bench" / "before"

    @property
    def current(self) -> Path:
        """The folder of the commit that runs, as a link."""
        return self.folder / "current"

    def commit_of(self, name: str) -> str:
        """The full id of the commit that `name` (an id, a tag, `HEAD~3`) stands for.

        Raises `BeforeError` if the clone has none, or the checkout is no clone.
        """
        inside = self._git("rev-parse", "--is-inside-work-tree")
        if inside.returncode != 0:
            message = (
                f"BEFORE needs the history of a Git clone, which {self.root} is not: run the bench "
                f"in a clone, or without BEFORE (git says: {inside.stderr.strip()})"
            )
            raise BeforeError(message)
        resolved = self._git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        if resolved.returncode != 0:
            message = (
                f"BEFORE={name} is no commit of this clone: choose one that `git log --oneline` "
                "shows, or fetch it first (`git fetch origin`; a shallow clone: "
                "`git fetch --unshallow`)"
            )
            raise BeforeError(message)
        return resolved.stdout.strip()

    def folder_of(self, commit: str) -> Path:
        """The folder for what is built of a commit."""
        return self.folder / commit[:COMMIT_DIGITS]

    def build(self, name: str) -> Path:
        """Makes a commit the one that runs, and builds its wheel unless it is there already.

        Gives the wheel. Raises `BeforeError` if the commit is unknown or cannot be built.
        """
        commit = self.commit_of(name)
        folder = self.folder_of(commit)
        folder.mkdir(parents=True, exist_ok=True)
        self.current.unlink(missing_ok=True)
        wheel = self._built_wheel(folder)
        if wheel is not None:
            progress(f"the wheel of {commit[:COMMIT_DIGITS]} is built already")
        else:
            wheel = self._build(commit, folder)
        self.current.symlink_to(folder.name)
        return wheel

    def check_built(self, commit: str) -> None:
        """Raises `BeforeError` if the commit that was built last is another one."""
        if self.current.resolve() != self.folder_of(commit).resolve():
            message = (
                f"the commit {commit[:COMMIT_DIGITS]} is not built: run the bench with "
                "`make bench B=… BEFORE=…`"
            )
            raise BeforeError(message)

    def _built_wheel(self, folder: Path) -> Path | None:
        with contextlib.suppress(FileNotFoundError):
            if (folder / "compiler").read_text() == _compiler():
                return next((folder / "wheels").glob("*.whl"), None)
        return None

    def _build(self, commit: str, folder: Path) -> Path:
        (folder / "compiler").unlink(missing_ok=True)
        try:
            with self._worktree(commit, folder / "tree") as tree:
                wheel = build_wheel(tree, folder / "wheels", folder / "target")
        except ReleaseError as error:
            message = f"BEFORE={commit[:COMMIT_DIGITS]}: {error}; choose a commit that builds"
            raise BeforeError(message) from None
        (folder / "compiler").write_text(_compiler())
        shutil.rmtree(folder / "target")
        return wheel

    @contextlib.contextmanager
    def _worktree(self, commit: str, tree: Path) -> Iterator[Path]:
        """The commit's files, in a new worktree, which is removed in the end.

        One that a killed run has left is replaced, and so is what Git remembers of it, even where
        it is locked.
        """
        shutil.rmtree(tree, ignore_errors=True)
        # Hooks are for whoever works in the clone.
        add = ("-c", f"core.hooksPath={os.devnull}", "worktree", "add", "--quiet")
        try:
            added = self._git(*add, "--force", "--force", "--detach", str(tree), commit)
            if added.returncode != 0:
                message = (
                    f"git made no worktree of {commit[:COMMIT_DIGITS]}: {added.stderr.strip()}. "
                    "`git worktree prune` forgets worktrees whose folders are gone"
                )
                raise BeforeError(message)
            yield tree
        finally:
            self._git("worktree", "remove", "--force", "--force", str(tree))

    def _git(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs Git in the clone."""
        return subprocess.run(
            ["git", "-C", str(self.root), *arguments], capture_output=True, text=True, check=False
        )


def _compiler() -> str:
    """The compiler and its options: what a build depends on beside the commit."""
    version = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    options = {name: value for name, value in os.environ.items() if OPTION.match(name)}
    return version + "".join(f"{name}={options[name]}\n" for name in sorted(options))


if __name__ == "__main__":
    try:
        Before().build(sys.argv[1])
    except BeforeError as failure:
        sys.exit(str(failure))
    except KeyboardInterrupt:
        sys.exit("stopped")
