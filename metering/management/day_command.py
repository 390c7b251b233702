"""What the commands that work on one day of usage share."""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from argparse import ArgumentParser
from collections.abc import Mapping
from datetime import date
from types import FrameType
from typing import ClassVar, Generic, TypeVar

from django.core.management.base import BaseCommand, CommandError

from console.base.common.conf import config
from console.base.common.errors import AppError

# Rows that `--list` shows at the most.
SHOWN = 40

Done = TypeVar("Done")


class DayCommand(BaseCommand, ABC, Generic[Done]):
    """A command that works on a day (`--day YYYY-MM-DD`) or lists what was done (`--list`).

    It may be repeated for a day.
    """

    # The word for the work in messages, such as "roll-up".
    job: ClassVar[str]

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Adds `--day`, `--list` and `--cell`."""
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--day", type=date.fromisoformat, help="YYYY-MM-DD, UTC")
        what.add_argument("--list", action="store_true", help=f"show the newest {self.job}s")
        parser.add_argument("--cell", default=config().cell.id, help="default: %(default)s")

    def handle(self, *args: object, **options: object) -> None:
        """Does the work, or lists. SIGINT or SIGTERM end it with status 130; nothing counts."""
        cell, day = str(options["cell"]), options["day"]
        if not isinstance(day, date):
            self.show(cell)
            return
        before = signal.signal(signal.SIGTERM, _interrupt)
        try:
            done = self.work(day, cell, options)
        except AppError as error:
            raise CommandError(error.detail) from error
        except KeyboardInterrupt as error:
            message = f"interrupted: nothing of this {self.job} counts"
            raise CommandError(message, returncode=130) from error
        finally:
            signal.signal(signal.SIGTERM, before)
        self.report(done)

    @abstractmethod
    def work(self, day: date, cell: str, options: Mapping[str, object]) -> Done:
        """Does the work for a day. Raises `AppError`."""

    @abstractmethod
    def report(self, done: Done) -> None:
        """Prints the result. Raises `CommandError` where it is a failure."""

    @abstractmethod
    def show(self, cell: str) -> None:
        """Prints the newest results of a cell, at most `SHOWN`."""

    def say(self, line: str) -> None:
        """Prints a line of progress at once."""
        self.stdout.write(line)
        self.stdout.flush()


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
