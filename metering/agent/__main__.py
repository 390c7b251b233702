"""The agent's process: `python -m metering.agent --config agent.toml`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import sys
import time
from collections.abc import Callable

from brokers.errors import BrokerError
from console.base.runtime.clock import WallClock
from console.base.runtime.health import Health
from console.base.runtime.pages import Pages
from console.base.runtime.program import EXIT_STOPPED, Program, main, say_ready
from metering.agent.agent import Agent, Share
from metering.agent.cluster import Cell
from metering.agent.files import UsageWriter
from metering.agent.metrics import Metrics
from metering.agent.progress import ProgressFolder
from metering.agent.settings import AgentSettings, load_settings
from metering.agent.source import CellSource
from metering.stores import open_usage_store

LOGGER = logging.getLogger("metering.agent")

# `/healthz` fails where no pass ended for this many periods, and for this time at least: a first
# pass after a long absence takes longer than usual.
PERIODS_MAX = 4
QUIET_MIN_S = 60.0


async def run_agent(settings: AgentSettings, stop: asyncio.Event) -> int:
    """Meters until `stop` is set; returns the exit status. Raises `OSError` if it cannot start."""
    period_s = settings.agent.period_ms / 1000
    metrics = Metrics(settings.cell.id)
    health = Health(max(QUIET_MIN_S, PERIODS_MAX * period_s))
    agent = build_agent(settings, metrics)
    pages = Pages(metrics.render, lambda: health.reason(time.monotonic()))
    address = await pages.start(settings.agent.metrics)
    try:
        say_ready(address)
        while not stop.is_set():
            began = time.monotonic()
            # In a thread, so that the loop answers HTTP requests and signals meanwhile.
            await asyncio.to_thread(run_pass, agent, metrics, health, stop.is_set)
            took_s = time.monotonic() - began
            metrics.set_pass_seconds(took_s)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, period_s - took_s)):
                    await stop.wait()
        return EXIT_STOPPED
    finally:
        await pages.close()


def run_pass(
    agent: Agent, metrics: Metrics, health: Health, is_stopping: Callable[[], bool]
) -> None:
    """Runs one pass. A failure is logged and counted, and the next pass tries again."""
    try:
        agent.run_pass(is_stopping)
    except (BrokerError, OSError, ValueError) as error:
        metrics.count_error("pass")
        if health.failed(str(error) or type(error).__name__):
            LOGGER.error("usage cannot be recorded, and is tried again: %s", error)
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
        now_ms=WallClock().now_ms,
        count_error=metrics.count_error,
        window_minutes=settings.agent.window_minutes,
        record_version=settings.agent.record_version,
        rows_max=settings.agent.rows_max,
    )
    return Agent(
        cell,
        UsageWriter(store, settings.cell.id, settings.agent.name, lambda: secrets.token_hex(8)),
        ProgressFolder(settings.usage.progress),
        metrics,
        Share(settings.agent.agents, settings.agent.agent_index),
    )


PROGRAM = Program(
    module="metering.agent",
    description="Turns what the clusters of a cell used into usage files until SIGTERM.",
    load=load_settings,
    log_level=lambda settings: settings.agent.log_level,
    run=run_agent,
)

if __name__ == "__main__":
    sys.exit(main(PROGRAM))
