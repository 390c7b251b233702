"""Each `full` test is in one part of `make test-all`, whose result holds while nothing changes."""

import ast
import re
import subprocess
from pathlib import Path, PurePosixPath

import pytest

from tests import parts
from tests.imports import ROOT, with_imported
from tests.parts import Part, UnknownPartError, part_of

PARTS = parts.parts()
TEST_ALL = (ROOT / ".ci" / "test-all").read_text()


def test_every_part_is_run_by_the_script():
    assert re.findall(r"^every=\((.*)\)$", TEST_ALL, re.MULTILINE) == [" ".join(PARTS)]
    assert re.findall(r"^    ([a-z]+)\) ", TEST_ALL, re.MULTILINE) == list(PARTS)


def test_what_a_part_tests_exists():
    named = [(part.name, path) for part in PARTS.values() for path in part.tested]
    assert [entry for entry in named if not (ROOT / entry[1]).exists()] == []


def test_what_a_part_tests_counts_in_its_digest():
    """A file that git ignores, such as uv.lock, could change without the part seeing it."""
    for part in PARTS.values():
        for path in part.tested:
            assert parts._run_git(ROOT, "ls-files", path), f"{part.name}: git knows no {path}"


def marks(file):
    """What each `pytest.mark.full` of a file says, `()` where it says nothing."""
    said, bare = [], 0
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "pytest.mark.full":
            bare += 1
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.full":
            said.append(tuple(ast.literal_eval(arg) for arg in node.args))
    return {*said, *([()] if bare > len(said) else [])}


def full_tests():
    """The files with `full` tests of each part."""
    files: dict[str, set[Path]] = {name: set() for name in PARTS}
    for file in ROOT.glob("tests/**/test_*.py"):
        for mark in marks(file):
            files[part_of(PurePosixPath(file.relative_to(ROOT)), mark, PARTS)].add(file)
    return files


def test_a_part_tests_all_that_its_tests_import():
    for name, files in full_tests().items():
        tested = [ROOT / path for path in PARTS[name].tested]
        beside = {
            str(path.relative_to(ROOT))
            for path in with_imported(files)
            if not any(path.is_relative_to(place) for place in tested)
        }
        assert beside == set(), name


def test_each_part_with_tests_has_some():
    files_by_part = full_tests()
    with_tests = {name for name in PARTS if name not in ("everyday", "engine")}
    assert {name for name, files in files_by_part.items() if files} == with_tests


@pytest.mark.parametrize(
    ("path", "mark", "part"),
    [
        ("tests/kubernetes/test_rights.py", (), "kubernetes"),
        ("tests/kubernetes/pods/test_pods.py", (), "kubernetes"),
        ("tests/backup/test_rehearsal.py", (), "rest"),
        ("tests/backup/test_etcd.py", ("stores",), "stores"),
        ("tests/kubernetes/test_rights.py", ("stores",), "stores"),
    ],
)
def test_the_mark_decides_before_the_folder(path, mark, part):
    assert part_of(PurePosixPath(path), mark, PARTS) == part


def test_a_part_that_does_not_exist_is_said():
    with pytest.raises(UnknownPartError, match=r"there is no part shops; .* has everyday, engine"):
        part_of(PurePosixPath("tests/test_x.py"), ("shops",), PARTS)


@pytest.fixture
def checkout(tmp_path):
    """A checkout of one commit."""
    for name, content in {"a/x": "1", "b/y": "1", ".gitignore": "*.log\n.tools\n"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    commit(tmp_path, "init", "--quiet")
    return tmp_path


def commit(folder: Path, *first: str) -> None:
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    commands = [first, ("add", "."), (*author, "commit", "--quiet", "-m", "x")]
    for command in filter(None, commands):
        subprocess.run(["git", *command], cwd=folder, check=True)


def test_a_result_holds_while_what_was_tested_is_unchanged(checkout):
    part = Part("one", ("a",))
    assert parts.holds_since(checkout, part) is None
    parts.record_pass(checkout, part, parts.state_of(checkout, part))
    passed = parts.holds_since(checkout, part)
    assert passed is not None
    # Neither what it does not test, nor a later commit, nor what git ignores.
    (checkout / "b/y").write_text("2")
    commit(checkout)
    (checkout / "a/x.log").write_text("1")
    assert parts.holds_since(checkout, part) == passed
    # A change, which need not be committed, a new file, a lost one.
    (checkout / "a/x").write_text("2")
    assert parts.holds_since(checkout, part) is None
    (checkout / "a/x").write_text("1")
    assert parts.holds_since(checkout, part) == passed
    (checkout / "a/z").write_text("")
    assert parts.holds_since(checkout, part) is None
    (checkout / "a/z").unlink()
    (checkout / "a/x").unlink()
    assert parts.holds_since(checkout, part) is None


def test_what_is_tested_is_said_with_its_last_change(checkout):
    first = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=checkout, check=True, stdout=subprocess.PIPE
    ).stdout.decode()
    (checkout / "b/y").write_text("2")
    commit(checkout)
    said = parts.tested(checkout, Part("one", ("a",)))
    changed = rf"last change of what is tested \(a\): {first.strip()} [-0-9]{{10}}"
    assert re.fullmatch(f"commit [0-9a-f]{{40}}, {changed}", said)


@pytest.mark.parametrize("arguments", [[], ["holds"], ["holds", "shops"], ["record", "rest"]])
def test_a_wrong_question_is_answered_with_what_can_be_asked(arguments, capsys):
    assert parts.main(arguments) == 2
    assert "part" in capsys.readouterr().err
