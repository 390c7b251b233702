"""`python -m console.programs.backup backup --to DIR` and `… restore --from DIR`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

import psycopg

from brokers.settings.errors import SettingsError
from console.programs.backup.errors import BackupError
from console.programs.backup.making import make_backup
from console.programs.backup.restoring import restore_backup
from console.programs.backup.server import VARIABLE
from console.programs.supervisor.errors import StartError
from console.settings.config import Config, load_config

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_INTERRUPTED = 130


def build_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    root = argparse.ArgumentParser(
        prog="manage.py", description="Back up and restore PostgreSQL and the metadata store."
    )
    commands = root.add_subparsers(dest="command", required=True)
    backup = commands.add_parser("backup", help="make a backup; the service may run meanwhile")
    backup.add_argument("--to", required=True, type=Path, metavar="DIR", help="a new folder")
    backup.add_argument(
        "--without-secrets", action="store_true", help="leave out secret_key and the cell's secret"
    )
    restore = commands.add_parser("restore", help="go back to a backup; stop the service first")
    restore.add_argument(
        "--from", required=True, type=Path, metavar="DIR", dest="source", help="a backup's folder"
    )
    restore.add_argument(
        "--accept-other-secrets",
        action="store_true",
        help="go on although the backup's secrets are neither in it nor in place",
    )
    restore.add_argument(
        "--accept-lost-documents",
        action="store_true",
        help="go on although billing.documents lacks invoice numbers that the backup knows",
    )
    for command in (backup, restore):
        command.add_argument(
            "--superuser",
            default=os.environ.get(VARIABLE),
            metavar="DSN",
            help=f"superuser of a PostgreSQL server of your own (or {VARIABLE})",
        )
    return root


def main(arguments: list[str] | None = None) -> int:
    """Runs the command that the arguments name; returns the exit status."""
    options = build_parser().parse_args(arguments)
    os.umask(0o077)
    # SIGTERM and SIGHUP are handled as Ctrl-C is: what was begun is removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        run_command(load_config(), options)
    except SettingsError as error:
        return _print_failure(str(error))
    except BackupError as error:
        return _print_failure(error.sentence, error.lines)
    except StartError as error:
        return _print_failure(error.sentence, error.lines)
    except (OSError, psycopg.Error) as error:
        return _print_failure(str(error).strip())
    except KeyboardInterrupt:
        _print_failure("Interrupted.")
        return EXIT_INTERRUPTED
    return EXIT_DONE


def run_command(config: Config, options: argparse.Namespace) -> None:
    """Makes or restores a backup, as the options say. Raises `BackupError`, `StartError`."""
    if options.command == "backup":
        make_backup(
            config,
            options.to.absolute(),
            print_progress,
            superuser=options.superuser,
            with_secrets=not options.without_secrets,
        )
        return
    restore_backup(
        config,
        options.source.absolute(),
        print_progress,
        superuser=options.superuser,
        other_secrets=options.accept_other_secrets,
        lost_documents=options.accept_lost_documents,
    )


def print_progress(line: str) -> None:
    """Prints a line on how far the command is, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _print_failure(sentence: str, lines: tuple[str, ...] = ()) -> int:
    sys.stderr.write(
        "".join(f"{line}\n" for line in (sentence, *(f"    {line}" for line in lines)))
    )
    return EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main())
