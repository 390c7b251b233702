"""What a process does from its command line to its exit status.

It reads its settings, sets its log up, runs until SIGTERM or SIGINT, and says one line on standard
output once it is ready. Whoever supervises it reads that line and the exit status.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from brokers.errors import BrokerError
from brokers.settings.errors import SettingsError
from brokers.settings.options import add_set_option

LOGGER = logging.getLogger(__name__)

EXIT_STOPPED = 0
EXIT_NOT_STARTED = 1
EXIT_USAGE = 2

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

Given = TypeVar("Given")


@dataclass(frozen=True, kw_only=True)
class Program(Generic[Given]):
    """A process that one settings file describes.

    `module` is what stands behind `python -m`. `load` reads the settings file with the overrides of
    the command line, and makes what must be there before the start; it raises `SettingsError`,
    `BrokerError` or `OSError`, which end the process with status 2. `run` works until the event is
    set, and gives the exit status; it raises `SettingsError` for status 2, and `BrokerError` or
    `OSError` for status 1.
    """

    module: str
    description: str
    load: Callable[[str, Sequence[str]], Given]
    log_level: Callable[[Given], str]
    run: Callable[[Given, asyncio.Event], Awaitable[int]]


def parser(program: Program[Given]) -> argparse.ArgumentParser:
    """The command line."""
    root = argparse.ArgumentParser(
        prog=f"python -m {program.module}", description=program.description
    )
    root.add_argument("--config", required=True, metavar="FILE", help="settings, in TOML")
    add_set_option(root)
    return root


def main(program: Program[Given], arguments: Sequence[str] | None = None) -> int:
    """Runs a program; returns the status to exit with."""
    words = parser(program).parse_args(arguments)
    try:
        given = program.load(words.config, words.set)
    except (SettingsError, BrokerError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_USAGE
    logging.basicConfig(
        level=program.log_level(given).upper(), format=LOG_FORMAT, stream=sys.stderr
    )
    try:
        return asyncio.run(_until_stopped(program, given))
    except SettingsError as error:
        # What the settings name turned out to be unusable only when it was used.
        sys.stderr.write(f"{words.config}: {error}\n")
        return EXIT_USAGE
    except (BrokerError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_NOT_STARTED


async def _until_stopped(program: Program[Given], given: Given) -> int:
    stop = asyncio.Event()
    for number in STOP_SIGNALS:
        # A console's Ctrl-C comes with its supervisor's SIGTERM: the second changes nothing.
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return await program.run(given, stop)


def say_ready(metrics_address: str) -> None:
    """Tells whoever supervises that it works, in one line on standard output."""
    try:
        os.write(1, f"ready metrics={metrics_address} pid={os.getpid()}\n".encode())
    except OSError:
        # A supervisor that does not listen is no reason to stop.
        LOGGER.debug("nobody listens on standard output")
