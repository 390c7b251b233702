"""The reference page of the command line equals what the code generates."""

from pathlib import Path

from console.programs.cli.reference import command_reference

PAGE = Path(__file__).parents[2] / "docs/reference/command-line.md"


def test_the_committed_page_has_not_drifted():
    write = "python -m console.programs.cli.reference > docs/reference/command-line.md"
    assert PAGE.read_text() == command_reference(), f"write it anew: {write}"
