#!/usr/bin/env python
"""Django's command line: `manage.py migrate --database owner`, `manage.py check --deploy`, …."""

import os
import sys


def main() -> None:
    """Runs the command that the arguments name."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    from django.core.management import execute_from_command_line  # noqa: PLC0415

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
