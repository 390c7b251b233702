"""Runs a process from its command line to its exit status.

The process reads its settings, sets up its log, runs until SIGTERM or SIGINT, and prints one line
on standard output once it is ready. Its supervisor reads that line and the exit status.
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

# The settings of a program.
Settings = TypeVar("Settings")


@dataclass(frozen=True, kw_only=True)
class Program(Generic[Settings]):
    """A process that is configured by one settings file.

    `module` is the argument of `python -m`. `load` takes the settings file and the overrides of the
    command line, and makes what must exist before the start, such as folders; it raises
    `SettingsError`, `BrokerError` or `OSError`, which end the process with status 2. `run` works
    until the event is set, and returns the exit status; it raises `SettingsError` for status 2, and
    `BrokerError` or `OSError` for status 1.
    """

    module: str
    description: str
    load: Callable[[str, Sequence[str]], Settings]
    log_level: Callable[[Settings], str]
    run: Callable[[Settings, asyncio.Event], Awaitable[int]]


def parser(program: Program[Settings]) -> argparse.ArgumentParser:
    """Returns the parser of the program's command line."""
    root = argparse.ArgumentParser(
        prog=f"python -m {program.module}", description=program.description
    )
    root.add_argument("--config", required=True, metavar="FILE", help="settings, in TOML")
    add_set_option(root)
    return root


def main(program: Program[Settings], arguments: Sequence[str] | None = None) -> int:
    """Runs a program; returns the status to exit with."""
    options = parser(program).parse_args(arguments)
    try:
        settings = program.load(options.config, options.set)
    except (SettingsError, BrokerError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_USAGE
    logging.basicConfig(
        level=program.log_level(settings).upper(), format=LOG_FORMAT, stream=sys.stderr
    )
    try:
        return asyncio.run(_run_until_stopped(program, settings))
    except SettingsError as error:
        # A setting is valid but unusable, which showed only when it was used: a taken port, say.
        sys.stderr.write(f"{options.config}: {error}\n")
        return EXIT_USAGE
    except (BrokerError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_NOT_STARTED


async def _run_until_stopped(program: Program[Settings], settings: Settings) -> int:
    stop = asyncio.Event()
    for number in STOP_SIGNALS:
        # Ctrl-C in a terminal sends SIGINT, and then the supervisor SIGTERM: setting the event
        # twice changes nothing.
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return await program.run(settings, stop)


def say_ready(metrics_address: str) -> None:
    """Prints the line on standard output by which the supervisor knows that the process works."""
    try:
        os.write(1, f"ready metrics={metrics_address} pid={os.getpid()}\n".encode())
    except OSError:
        # Standard output is closed or full; that is no reason to stop.
        LOGGER.debug("nobody listens on standard output")
