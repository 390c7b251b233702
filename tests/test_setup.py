"""Set-up names all that it cannot install before it begins anything."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# What the script itself is made of.
TOOLS = ["bash", "cat", "cut", "dirname", "env", "flock", "head", "id", "mkdir", "sed", "sort"]


@pytest.fixture
def machine(tmp_path):
    """A checkout on a machine that has next to nothing; add programs to `bin`."""
    shutil.copytree(ROOT / ".ci", tmp_path / "checkout" / ".ci")
    (tmp_path / "home").mkdir()
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool))
    return tmp_path


def add_program(machine, name, script):
    """Puts a program on the machine's PATH, in place of what is there."""
    program = machine / "bin" / name
    program.unlink(missing_ok=True)
    program.write_text(f"#!{machine}/bin/bash\n{script}\n")
    program.chmod(0o755)


def set_up(machine, purpose):
    """Runs set-up, which is expected to refuse; returns what it says on standard error."""
    result = subprocess.run(
        [machine / "checkout" / ".ci" / "setup", purpose],
        env={"PATH": str(machine / "bin"), "HOME": str(machine / "home")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 1, result.stdout + result.stderr
    begun = [line for line in result.stdout.splitlines() if line.startswith("==> ")]
    assert begun == ["==> set-up: check"]
    assert [path.name for path in (machine / "checkout" / ".tools").iterdir()] == [".setup.lock"]
    return result.stderr


def test_everything_that_is_missing_is_named_at_once(machine):
    complaint = set_up(machine, "test")
    assert "Python 3.11 or newer" in complaint
    assert "Rust 1.90 or newer" in complaint
    assert "these, by their names in Debian" in complaint
    assert "Node 20.19 or newer with npm" in complaint
    assert "Go 1.25 or newer" in complaint
    for package in ("gcc", "libc6-dev", "default-jre-headless", "maven", "kcat", "chromium"):
        assert package in complaint


def test_starting_the_service_needs_nothing_that_only_tests_need(machine):
    complaint = set_up(machine, "up")
    for package in ("gcc", "default-jre-headless"):
        assert package in complaint
    for package in ("maven", "kcat", "chromium", "Go 1"):
        assert package not in complaint


def test_without_root_the_command_to_run_is_named(machine):
    add_program(machine, "id", "echo 1000")
    add_program(machine, "apt-get", "exit 99")
    complaint = set_up(machine, "up")
    assert "sudo apt-get install default-jre-headless gcc libc6-dev protobuf-compiler" in complaint


@pytest.mark.parametrize(
    ("program", "output", "complaint"),
    [
        ("rustc", "echo 'rustc 1.89.0 (aaaaaaaaa 2025-08-07)'", "found 1.89.0"),
        ("java", "echo 'openjdk version \"11.0.2\" 2019-01-15' >&2", "Java 17 or newer"),
        ("python3", "exit 1", "Python 3.11 or newer"),
        ("go", "echo go version go1.24.13 linux/amd64", "newer first on PATH (found 1.24.13)"),
        ("node", "echo v20.18.3", "Node 20.19 or newer first on PATH (found 20.18.3)"),
    ],
)
def test_what_is_too_old_is_named(machine, program, output, complaint):
    add_program(machine, program, output)
    assert complaint in set_up(machine, "test")


def test_a_python_that_is_new_enough_is_not_named(machine):
    (machine / "bin" / "python3").symlink_to(sys.executable)
    assert "Python" not in set_up(machine, "test")


def test_a_part_that_there_is_not_is_named_before_anything_begins(machine):
    result = subprocess.run(
        [machine / "checkout" / ".ci" / "test-all", "terraform", "pods"],
        env={"PATH": str(machine / "bin"), "HOME": str(machine / "home")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stdout) == (2, "")
    parts = "everyday engine stores kubernetes terraform fuzzing clients rest"
    assert result.stderr == f"there is no part pods; the parts are: {parts}\n"
