"""Commits have the form that CONTRIBUTING.md asks for, and each part of the form can be broken."""

import subprocess
from pathlib import Path

import pytest

from tests import commits

ROOT = Path(__file__).parent.parent
GOOD = "engine: Seal a lane once"
LONG = commits.LINES_WITHOUT_BODY_MAX + 1


def run_git(*arguments, folder=ROOT):
    return subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


def commits_since_the_rule():
    """Ids of the commits that came after the one that added the rule, merges left out.

    There are none where that commit is the newest, or where the rule is not committed yet. In a
    clone without the whole history the oldest commit counts as the one that added all files.
    """
    added = run_git("log", "--diff-filter=A", "--format=%H", "--", "tests/commits.py").split()
    if not added:
        return []
    return run_git("log", "--no-merges", "--format=%H", f"{added[-1]}..HEAD").split()


def test_commits_have_the_form():
    complaints = []
    for commit in commits_since_the_rule():
        message = run_git("show", "--no-patch", "--format=%B", commit)
        numstat = run_git("show", "--numstat", "--find-renames", "--format=", commit)
        changed_lines = commits.sum_changed_lines(numstat)
        complaints += [
            f"{commit[:8]}: {complaint}"
            for complaint in commits.message_complaints(message, changed_lines)
        ]
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize(
    ("message", "changed_lines"),
    [
        ("", 1),
        ("Seal a lane once", 1),
        ("Engine: Seal a lane once", 1),
        ("engine: seal a lane once", 1),
        ("engine: Seal a lane once.", 1),
        (f"engine: {'Seal ' * 13}once", 1),
        (f"{GOOD}\nThe second sealer read another end.", 1),
        (GOOD, LONG),
        (f"{GOOD}\n\n# The second sealer read another end.\n", LONG),
        (f"{GOOD}\n\nSigned-off-by: A <a@example.org>\n", LONG),
    ],
)
def test_a_broken_form_is_noticed(message, changed_lines):
    assert list(commits.message_complaints(message, changed_lines))


@pytest.mark.parametrize(
    ("message", "changed_lines"),
    [
        (GOOD, LONG - 1),
        (f"{GOOD}\n\nThe second sealer read another end.\n", LONG),
        ("console, docs/how-to: Say which key ends", 1),
        (f"# a comment\n{GOOD}\n# ------------------------ >8 ------------------------\n+x\n", 1),
    ],
)
def test_a_good_form_passes(message, changed_lines):
    assert list(commits.message_complaints(message, changed_lines)) == []


def test_lines_are_added_up():
    assert commits.sum_changed_lines("3\t4\ta.py\n-\t-\ta.png\n0\t1\tb.py\n") == 8


@pytest.mark.parametrize(("message", "status"), [(GOOD, 0), ("Seal", 1)])
def test_the_hook_reads_a_message(tmp_path, message, status):
    path = tmp_path / "COMMIT_EDITMSG"
    path.write_text(f"{message}\n\nThe second sealer read another end.\n")
    result = subprocess.run(
        [ROOT / ".ci/check-commit", path], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == status, result.stderr
    assert ("CONTRIBUTING.md" in result.stderr) == (status == 1)
