"""A wheel of a checkout, with Cargo's release profile: `python -m tests.bench.release TREE OUT`.

How to build it is read from the checkout's own `pyproject.toml`, because that differs from commit
to commit.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

# The deterministic simulator: the tests' build has it, and a release refuses it.
TEST_FEATURES = {"sim"}


class ReleaseError(Exception):
    """The checkout cannot be built; the message says what to do."""


def release_features(tree: Path) -> str:
    """The Cargo features of a release, by comma: those of `[tool.maturin]` but the tests' own.

    Raises `ReleaseError` if the checkout does not say how its extension is built.
    """
    project = tree / "pyproject.toml"
    try:
        maturin = tomllib.loads(project.read_text())["tool"]["maturin"]
    except (FileNotFoundError, KeyError):
        message = f"there is no engine to build: {project} has no [tool.maturin]"
        raise ReleaseError(message) from None
    features = [name for name in maturin.get("features", []) if name not in TEST_FEATURES]
    # maturin takes an empty list for none given, and builds those of the tests.
    return ",".join(features) or "default"


def build_wheel(tree: Path, out: Path, target: Path | None = None) -> Path:
    """Builds the wheel of the checkout at `tree` and leaves it, alone, in the folder `out`.

    `target` is Cargo's target folder (default: the checkout's own). A build that is interrupted
    leaves nothing in `out`. Raises `ReleaseError` if the build fails.
    """
    tree, out = tree.resolve(), out.resolve()
    features = release_features(tree)
    partial = out.with_name(f"{out.name}.partial")
    for folder in (out, partial):
        shutil.rmtree(folder, ignore_errors=True)
    command = [
        *(sys.executable, "-m", "maturin", "build", "--quiet", "--profile", "release", "--locked"),
        *("--features", features, "--interpreter", sys.executable, "--out", str(partial)),
    ]
    own = {} if target is None else {"CARGO_TARGET_DIR": str(target.resolve())}
    built = subprocess.run(command, cwd=tree, env={**os.environ, **own}, check=False)
    if built.returncode != 0:
        message = f"the release build of {tree} failed: the output above says why"
        raise ReleaseError(message)
    partial.rename(out)
    (wheel,) = out.glob("*.whl")
    return wheel


if __name__ == "__main__":
    try:
        build_wheel(Path(sys.argv[1]), Path(sys.argv[2]))
    except ReleaseError as error:
        sys.exit(str(error))
