"""`python -m console.programs.cli`, which is what `freshet` runs."""

from __future__ import annotations

import sys


def main() -> int:
    """Runs the command line; returns its exit code."""
    try:
        from console.programs.cli.app import run_command_line  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.stderr.write("freshet: The command line needs click: pip install 'freshet[cli]'\n")
        return 2
    return run_command_line()


if __name__ == "__main__":
    sys.exit(main())
