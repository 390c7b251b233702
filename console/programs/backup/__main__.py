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


def parser() -> argparse.ArgumentParser:
    """The command line."""
    root = argparse.ArgumentParser(
        prog="manage.py", description="Back up and restore PostgreSQL and the metadata store."
    )
    commands = root.add_subparsers(dest="command", required=True)
    backup = commands.add_parser("backup", help="make a backup; the service may run")
    backup.add_argument("--to", required=True, type=Path, metavar="DIR", help="a new folder")
    backup.add_argument(
        "--without-secrets", action="store_true", help="leave out secret_key and the cell's secret"
    )
    restore = commands.add_parser("restore", help="go back to a backup; the service is stopped")
    restore.add_argument(
        "--from", required=True, type=Path, metavar="DIR", dest="source", help="a backup's folder"
    )
    restore.add_argument(
        "--accept-other-secrets",
        action="store_true",
        help="go on though the backup's secrets are neither in it nor in place",
    )
    restore.add_argument(
        "--accept-lost-documents",
        action="store_true",
        help="go on though billing.documents lacks numbers that the backup knows",
    )
    for command in (backup, restore):
        command.add_argument(
            "--superuser",
            default=os.environ.get(VARIABLE),
            metavar="DSN",
            help=f"superuser of a PostgreSQL of your own (or {VARIABLE})",
        )
    return root


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; returns the status to exit with."""
    given = parser().parse_args(arguments)
    os.umask(0o077)
    # What asks to end is answered as Ctrl-C is: in order.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        run(load_config(), given)
    except SettingsError as error:
        return _fail(str(error))
    except BackupError as error:
        return _fail(error.sentence, error.lines)
    except StartError as error:
        return _fail(error.sentence, error.lines)
    except (OSError, psycopg.Error) as error:
        return _fail(str(error).strip())
    except KeyboardInterrupt:
        _fail("Interrupted.")
        return EXIT_INTERRUPTED
    return EXIT_DONE


def run(config: Config, given: argparse.Namespace) -> None:
    """Does what the arguments say."""
    if given.command == "backup":
        make_backup(
            config,
            given.to.absolute(),
            say,
            superuser=given.superuser,
            with_secrets=not given.without_secrets,
        )
        return
    restore_backup(
        config,
        given.source.absolute(),
        say,
        superuser=given.superuser,
        other_secrets=given.accept_other_secrets,
        lost_documents=given.accept_lost_documents,
    )


def say(line: str) -> None:
    """Tells how far it is."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _fail(sentence: str, lines: tuple[str, ...] = ()) -> int:
    sys.stderr.write(
        "".join(f"{line}\n" for line in (sentence, *(f"    {each}" for each in lines)))
    )
    return EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main())
