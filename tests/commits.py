"""The form of a commit's message, as a pure function from message and size to complaints.

`.ci/check-commit` calls this module from a hook of git; `test_commits.py` calls the function for
the commits that came after it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SUBJECT_COLUMNS_MAX = 72
# A change of more lines, added and removed together, needs a body that says why.
LINES_WITHOUT_BODY_MAX = 30

SUBJECT = re.compile(r"[a-z0-9_./-]+(, [a-z0-9_./-]+)*: [A-Z].*[^.\s]")
# `git commit --verbose` puts the change below this line.
SCISSORS = re.compile(r"^# -+ >8 -+$", re.MULTILINE)
TRAILER = re.compile(r"[A-Z][A-Za-z-]*-by: ")


def message_complaints(message: str, changed_lines: int) -> Iterator[str]:
    """Compares a message with the form that CONTRIBUTING.md asks for.

    `message` is what git stores, or what it hands to a `commit-msg` hook, comments included.
    `changed_lines` is the number of lines that the commit adds and removes.
    """
    text = SCISSORS.split(message)[0]
    lines = [line.rstrip() for line in text.splitlines() if not line.startswith("#")]
    while lines and not lines[0]:
        del lines[0]
    subject, rest = (lines[0], lines[1:]) if lines else ("", [])
    if not SUBJECT.fullmatch(subject):
        yield f"the subject is not `area: What changed`, without a full stop: {subject!r}"
    if len(subject) > SUBJECT_COLUMNS_MAX:
        yield f"the subject has {len(subject)} columns, at most {SUBJECT_COLUMNS_MAX}: {subject!r}"
    if rest and rest[0]:
        yield f"the line below the subject is not empty: {rest[0]!r}"
    body = [line for line in rest if line and not TRAILER.match(line)]
    if changed_lines > LINES_WITHOUT_BODY_MAX and not body:
        yield (
            f"a change of {changed_lines} lines needs a body that says why"
            f" (more than {LINES_WITHOUT_BODY_MAX} do): {subject!r}"
        )


def sum_changed_lines(numstat: str) -> int:
    """Adds up what `git diff --numstat` prints; a binary file counts as no lines."""
    columns = [line.split("\t")[:2] for line in numstat.splitlines() if "\t" in line]
    return sum(int(number) for pair in columns for number in pair if number != "-")


def main(message_file: Path) -> int:
    """Checks the message in a file against what is staged, and returns the exit status."""
    numstat = subprocess.run(
        ["git", "diff", "--cached", "--numstat", "--find-renames"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    complaints = list(message_complaints(message_file.read_text(), sum_changed_lines(numstat)))
    for complaint in complaints:
        print(f"commit message: {complaint}", file=sys.stderr)  # noqa: T201
    if complaints:
        print("CONTRIBUTING.md describes the form.", file=sys.stderr)  # noqa: T201
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
