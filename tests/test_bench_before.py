"""An earlier commit's build as a side of a bench: found, built in a worktree, kept, and used again.

The clone has a crate so small that a release of it takes a second; what is run is what its wheel
brings. Its first commit says "one", its second "two".
"""

import ast
import os
import subprocess
import sys
import zipfile

import pytest

from tests.bench.__main__ import BENCHES, BESIDE_BEFORE, commit_before
from tests.bench.before import Before, BeforeError
from tests.bench.release import ReleaseError, build_wheel
from tests.peer.jars import ROOT

CARGO = """\
[package]
name = "tiny"
version = "0.1.0"
edition = "2024"

[features]
real = []
sim = []
"""
LOCK = """\
version = 4

[[package]]
name = "tiny"
version = "0.1.0"
"""
SOURCE = """\
#[cfg(any(feature = "sim", not(feature = "real"), debug_assertions))]
compile_error!("this is the build of the tests");

fn main() {
    println!("NUMBER");
}
"""
PROJECT = """\
[build-system]
requires = ["maturin"]
build-backend = "maturin"

[project]
name = "tiny"
version = "0.1.0"

[tool.maturin]
bindings = "bin"
manifest-path = "PLACE/Cargo.toml"
features = ["real", "sim"]
profile = "dev"
"""


class Clone:
    """A Git repository with a checkout of its newest commit."""

    def __init__(self, root):
        self.root = root
        root.mkdir()
        self.git("init", "--quiet")

    def git(self, *arguments):
        person = ("-c", "user.name=Nobody", "-c", "user.email=nobody@example.org")
        return subprocess.run(
            ["git", "-C", self.root, *person, *arguments],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    def commit(self, files):
        for name, text in files.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "a commit")
        return self.git("rev-parse", "HEAD")

    def worktrees(self):
        listed = self.git("worktree", "list", "--porcelain").splitlines()
        return [line.split()[1] for line in listed if line.startswith("worktree ")]


def crate(place, number):
    """Files of a checkout whose crate, in the folder `place`, says a number."""
    return {
        ".gitignore": "/.bench/\n",
        "pyproject.toml": PROJECT.replace("PLACE", place),
        f"{place}/Cargo.toml": CARGO,
        f"{place}/Cargo.lock": LOCK,
        f"{place}/src/main.rs": SOURCE.replace("NUMBER", number),
    }


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A clone whose second commit has the crate at another place, whatever Git is set to here."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    clone = Clone(tmp_path / "clone")
    clone.commit(crate("core", "one"))
    clone.git("rm", "--quiet", "-r", "core")
    clone.commit(crate("core/crates/python", "two"))
    return clone


def said_by(wheel, folder):
    """What the program in a wheel prints."""
    with zipfile.ZipFile(wheel) as archive:
        program = archive.extract("tiny-0.1.0.data/scripts/tiny", folder)
    os.chmod(program, 0o700)  # noqa: PTH101 -- of a string
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout.strip()


def test_a_commit_is_found_by_any_of_its_names(clone):
    first, second = clone.git("log", "--reverse", "--format=%H").split()
    clone.git("tag", "v1", first)
    before = Before(clone.root)
    assert [before.commit_of(name) for name in (first, first[:7], "HEAD~1", "v1")] == [first] * 4
    assert before.commit_of("HEAD") == second


@pytest.mark.parametrize("name", ["c0ffee", "no-branch", "--all", "HEAD:pyproject.toml", "HEAD~9"])
def test_an_unknown_commit_is_refused_with_the_way_to_one(clone, name):
    with pytest.raises(BeforeError, match=f"BEFORE={name} is no commit of this clone.*git fetch"):
        Before(clone.root).commit_of(name)


def test_a_checkout_without_history_is_refused(tmp_path):
    with pytest.raises(BeforeError, match="BEFORE needs the history of a Git clone"):
        Before(tmp_path).commit_of("HEAD")


def test_each_commit_is_built_once_as_it_says_itself(clone, tmp_path, monkeypatch):
    hook = clone.root / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o700)
    before = Before(clone.root)
    first, second = before.commit_of("HEAD~1"), before.commit_of("HEAD")
    wheels = [before.build(name) for name in ("HEAD~1", "HEAD")]
    said = [said_by(wheel, tmp_path / f"{n}") for n, wheel in enumerate(wheels)]
    assert said == ["one", "two"]
    before.check_built(second)
    with pytest.raises(BeforeError, match=f"{first[:12]} is not built: run .* `make bench"):
        before.check_built(first)
    built = wheels[0].stat().st_mtime_ns
    assert before.build(first[:7]) == wheels[0]
    assert wheels[0].stat().st_mtime_ns == built
    before.check_built(first)
    assert (before.current / "wheels" / wheels[0].name).samefile(wheels[0])
    monkeypatch.setenv("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
    assert before.build(first).stat().st_mtime_ns > built, "other options build it anew"
    # Nothing is left of it but what the next run uses.
    assert clone.worktrees() == [str(clone.root)]
    assert clone.git("status", "--porcelain") == ""
    assert {file.name for file in before.folder_of(first).iterdir()} == {"wheels", "compiler"}


@pytest.mark.parametrize("left", ["a folder", "a lock"])
def test_what_a_killed_run_left_is_replaced(clone, tmp_path, left):
    before = Before(clone.root)
    tree = before.folder_of(before.commit_of("HEAD")) / "tree"
    clone.git("worktree", "add", "--quiet", "--detach", str(tree), "HEAD~1")
    (tree / "pyproject.toml").write_text("half written")
    if left == "a lock":
        # Git holds one itself while it makes a worktree.
        clone.git("worktree", "lock", str(tree))
        tree.rename(tmp_path / "away")
    assert said_by(before.build("HEAD"), tmp_path) == "two"
    assert clone.worktrees() == [str(clone.root)]


@pytest.mark.parametrize("kept", ["broken code", "no engine"])
def test_a_commit_that_cannot_be_built_leaves_nothing(clone, kept):
    broken = {"core/crates/python/src/main.rs": "fn main() {"}
    absent = {"pyproject.toml": "[project]\nname = 'tiny'\n"}
    commit = clone.commit(broken if kept == "broken code" else absent)
    before = Before(clone.root)
    with pytest.raises(BeforeError, match=f"BEFORE={commit[:12]}.*choose a commit that builds"):
        before.build("HEAD")
    assert clone.worktrees() == [str(clone.root)]
    assert list(before.folder_of(commit).glob("wheels/*")) == []
    with pytest.raises(BeforeError, match="is not built"):
        before.check_built(commit)


def test_a_failed_release_leaves_no_wheel_of_an_older_one(clone, tmp_path):
    out = tmp_path / "wheels"
    assert said_by(build_wheel(clone.root, out), tmp_path) == "two"
    (clone.root / "core/crates/python/src/main.rs").write_text("fn main() {")
    with pytest.raises(ReleaseError, match=r"the release build of .* failed"):
        build_wheel(clone.root, out)
    assert not out.exists()


def options_of(bench):
    """What the function `run` of a bench takes, without importing it."""
    tree = ast.parse((ROOT / "tests" / "bench" / f"{bench}.py").read_text())
    runs = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "run"]
    return {argument.arg for run in runs for argument in run.args.args}


def test_a_bench_that_takes_an_earlier_build_is_one_that_says_so():
    assert {name for name in BENCHES if "before" in options_of(name)} == BESIDE_BEFORE


@pytest.mark.parametrize("name", sorted(set(BENCHES) - BESIDE_BEFORE))
def test_any_other_bench_refuses_one(clone, name):
    with pytest.raises(BeforeError, match=f"{name} does not compare brokers.*leave BEFORE out"):
        commit_before(name, "HEAD", Before(clone.root))


@pytest.mark.parametrize(
    ("bench", "commit", "said"),
    [
        ("rollup", "HEAD", "rollup does not compare brokers"),
        ("start_idle", "--all", "BEFORE"),
        ("start_idel", "", "invalid choice: 'start_idel'"),
    ],
)
def test_what_cannot_run_is_refused_before_anything_is_built(bench, commit, said):
    ran = subprocess.run(
        [".ci/bench", bench],
        cwd=ROOT,
        env={**os.environ, "BEFORE": commit, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert said in ran.stderr
    assert "==>" not in ran.stderr
