"""`python -m metering.agent --config agent.toml`."""

from __future__ import annotations

import argparse
import logging
import os
import secrets
import signal
import sys
import threading
import time

from brokers.errors import BrokerError
from brokers.sections import SettingsError, add_set_option
from metering.agent.agent import Agent, Share
from metering.agent.clock import Clock
from metering.agent.cluster import Cell
from metering.agent.files import UsageWriter
from metering.agent.health import Health
from metering.agent.metrics import Metrics
from metering.agent.pages import Pages
from metering.agent.progress import ProgressFolder
from metering.agent.settings import AgentSettings, load_settings
from metering.agent.source import CellSource
from metering.stores import open_usage_store

LOGGER = logging.getLogger("metering.agent")

EXIT_STOPPED = 0
EXIT_NOT_STARTED = 1
EXIT_USAGE = 2


def parser() -> argparse.ArgumentParser:
    """The command line."""
    root = argparse.ArgumentParser(
        prog="python -m metering.agent",
        description="Turns what the clusters of a cell used into usage files until SIGTERM.",
    )
    root.add_argument("--config", required=True, metavar="FILE", help="settings, in TOML")
    add_set_option(root)
    return root


def main(arguments: list[str] | None = None) -> int:
    """Runs an agent; returns the status to exit with."""
    given = parser().parse_args(arguments)
    try:
        settings = load_settings(given.config, given.set)
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_USAGE
    logging.basicConfig(
        level=settings.agent.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    try:
        return run(settings)
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_NOT_STARTED


def run(settings: AgentSettings) -> int:
    """Meters until a signal. Raises `OSError` where it cannot start."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    metrics = Metrics(settings.cell.id)
    health = Health(settings.agent.period_ms / 1000)
    agent = build_agent(settings, metrics)
    pages = Pages(metrics.render, lambda: health.reason(time.monotonic()))
    address = pages.start(settings.agent.metrics)
    try:
        # A supervisor that does not listen is no reason to stop.
        say(f"ready metrics={address} pid={os.getpid()}")
        while not stop.is_set():
            began = time.monotonic()
            run_pass(agent, metrics, health, stop)
            took_s = time.monotonic() - began
            metrics.passed(took_s)
            stop.wait(max(0.0, settings.agent.period_ms / 1000 - took_s))
        return EXIT_STOPPED
    finally:
        pages.close()


def run_pass(agent: Agent, metrics: Metrics, health: Health, stop: threading.Event) -> None:
    """One pass. What fails is said, and tried again with the next."""
    try:
        agent.run_pass(stop.is_set)
    except (BrokerError, OSError, ValueError) as error:
        metrics.error("pass")
        if health.failed(str(error) or type(error).__name__):
            LOGGER.error("usage cannot be recorded: %s", error)
    else:
        if health.passed(time.monotonic()):
            LOGGER.warning("usage is recorded again")


def build_agent(settings: AgentSettings, metrics: Metrics) -> Agent:
    """An agent of the cell that the settings name."""
    store = open_usage_store(settings.usage.location)
    cell = Cell(
        name=settings.cell.id,
        source=CellSource(
            metadata=settings.cell.metadata, dfs=settings.cell.dfs, bucket=settings.cell.bucket
        ),
        store=store,
        now_ms=Clock().now_ms,
        count_error=metrics.error,
        window_minutes=settings.agent.window_minutes,
        rows_max=settings.agent.rows_max,
    )
    return Agent(
        cell,
        UsageWriter(store, settings.cell.id, settings.agent.name, lambda: secrets.token_hex(8)),
        ProgressFolder(settings.usage.progress),
        metrics,
        Share(settings.agent.agents, settings.agent.agent_index),
    )


def say(line: str) -> None:
    """Tells whoever supervises, in one line on standard output."""
    try:
        os.write(1, f"{line}\n".encode())
    except OSError:
        LOGGER.debug("nobody listens on standard output")


if __name__ == "__main__":
    sys.exit(main())
