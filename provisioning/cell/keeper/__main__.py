"""`python -m provisioning.cell.keeper --config keeper.toml`."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from brokers.backoff import Backoff
from brokers.etcd import Etcd
from brokers.locations import metadata_location
from brokers.objects import open_objects
from brokers.secrets import read_cell_secret
from console.base.runtime.clock import Clock, SteadyClock
from console.base.runtime.pages import Pages
from console.base.runtime.program import (
    EXIT_NOT_STARTED,
    EXIT_STOPPED,
    Program,
    main,
    say_ready,
)
from provisioning.cell.drivers.base import Driver
from provisioning.cell.drivers.local import LocalDriver
from provisioning.cell.drivers.logs import LogLimits
from provisioning.cell.drivers.slot import LocalOptions
from provisioning.cell.keeper.cellstore import CellRecords
from provisioning.cell.keeper.cluster import CellParts
from provisioning.cell.keeper.keeper import Keeper
from provisioning.cell.keeper.kubernetes import BrokerFiles, KubernetesSettings, make_driver
from provisioning.cell.keeper.lease import KeeperLease, LeaseLostError
from provisioning.cell.keeper.lock import KeeperLock
from provisioning.cell.keeper.maintenance import EtcdMaintenance
from provisioning.cell.keeper.metrics import Metrics
from provisioning.cell.keeper.sample_writer import SampleWriter
from provisioning.cell.keeper.settings import DriverSettings, KeeperSettings, load_settings
from provisioning.cell.keeper.store import AsyncStore

LOGGER = logging.getLogger("provisioning.cell.keeper")


@dataclass(frozen=True)
class KeeperStart:
    """What `load_keeper` returns: the settings, and the cell's secret."""

    settings: KeeperSettings
    secret: bytes


def load_keeper(path: str, overrides: Sequence[str]) -> KeeperStart:
    """Reads the settings and the cell's secret, and creates the keeper's folder.

    Raises `SettingsError`, `ConfigError`, `OSError`.
    """
    settings = load_settings(path, overrides)
    secret = read_cell_secret(settings.cell.secret)
    settings.keeper.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return KeeperStart(settings, secret)


async def run_keeper(start: KeeperStart, stop: asyncio.Event) -> int:
    """Keeps the cell until `stop` is set. Returns the exit status of the process."""
    try:
        return await keep_cell(start.settings, start.secret, stop)
    except LeaseLostError as error:
        LOGGER.error("the lease of the cell is lost, so this keeper ends; brokers go on: %s", error)
        return EXIT_NOT_STARTED


PROGRAM = Program(
    module="provisioning.cell.keeper",
    description="Starts, wakes and replaces the brokers of a cell until SIGTERM or SIGINT.",
    load=load_keeper,
    log_level=lambda given: given.settings.keeper.log_level,
    run=run_keeper,
)


async def keep_cell(settings: KeeperSettings, secret: bytes, stop: asyncio.Event) -> int:
    """Waits until no other keeper has the cell, then keeps it until `stop` is set.

    Raises `LeaseLostError` where the lease is lost meanwhile. Returns the exit status.
    """
    metrics = Metrics()
    keeper: Keeper | None = None
    pages = Pages(metrics.render, lambda: keeper.unwell() if keeper else None)
    address = await pages.start(settings.keeper.metrics)
    lock = KeeperLock(settings.keeper.folder / "keeper.lock")
    lease = make_lease(settings)
    try:
        for lock_or_lease in (lock,) if lease is None else (lock, lease):
            if not await take_lead(lock_or_lease, settings, stop):
                return EXIT_STOPPED if stop.is_set() else EXIT_NOT_STARTED
        metrics.leading = True
        keeper = Keeper(make_cell(settings, secret, metrics, lease))
        metrics.phases, metrics.brokers = keeper.phases, keeper.broker_states
        # The lease is renewed from here on, because a start may take longer than it lasts.
        keeping = asyncio.create_task(keep_lease(lease))
        try:
            await keeper.start()
            say_ready(address)
            await until_stopped(keeper, stop, keeping)
        finally:
            keeping.cancel()
        return EXIT_STOPPED
    finally:
        await pages.close()
        if lease is not None:
            await asyncio.to_thread(lease.release)
        lock.release()


def make_lease(settings: KeeperSettings) -> KeeperLease | None:
    """The lease of a cell in etcd; None of a cell in SQLite, which has one machine."""
    location = metadata_location(settings.cell.metadata)
    if isinstance(location, Path):
        return None
    timeout_s = settings.keeper.lease_ttl_s / 5
    return KeeperLease(Etcd(location, timeout_s=timeout_s), settings.keeper.lease_ttl_s)


async def keep_lease(lease: KeeperLease | None) -> None:
    """Renews the lease until cancelled; only waits where there is none. Raises `LeaseLostError`."""
    if lease is None:
        await asyncio.Event().wait()
    else:
        await lease.keep()


async def take_lead(
    lock: KeeperLock | KeeperLease, settings: KeeperSettings, stop: asyncio.Event
) -> bool:
    """Takes the lock or lease, and waits for it where the settings say so (`standby`).

    Returns False where another keeper has it and we do not wait, or `stop` was set meanwhile.
    Raises `MetadataError`, `OSError`.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    holder = await asyncio.to_thread(lock.try_acquire, now)
    if holder is None:
        return True
    if not settings.keeper.standby:
        sys.stderr.write(f"{holder.description} keeps this cell\n")
        return False
    LOGGER.warning("%s keeps this cell; waiting until it ends", holder.description)
    acquiring = asyncio.create_task(lock.acquire(now))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({acquiring, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if acquiring.done():
        await acquiring
        LOGGER.warning("taking over the cell")
        return True
    acquiring.cancel()
    return False


async def until_stopped(keeper: Keeper, stop: asyncio.Event, keeping: asyncio.Task[None]) -> None:
    """Runs the keeper until `stop` is set. Raises the error that ended it before, if one did."""
    running = asyncio.create_task(keeper.run())
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({running, stopping, keeping}, return_when=asyncio.FIRST_COMPLETED)
        for ended in (running, keeping):
            if ended.done():
                await ended
    finally:
        running.cancel()
        stopping.cancel()
        await asyncio.wait({running, stopping})
        # The lease is still renewed (`keeping`) while the keeper stops its brokers.
        await keeper.close(leads=not keeping.done())


def make_cell(
    settings: KeeperSettings, secret: bytes, metrics: Metrics, lease: KeeperLease | None = None
) -> CellParts:
    """Makes the parts that all clusters share, from the settings. Raises `SettingsError`."""
    own = settings.driver
    driver: Driver
    if isinstance(own, KubernetesSettings):
        driver, files = make_driver(own), BrokerFiles(own.broker_files)
    else:
        driver, files = (
            LocalDriver(settings.keeper.folder / "run", local_options(own)),
            BrokerFiles(),
        )
    leads = lease.held if lease else lambda: True
    records = CellRecords(settings.cell.metadata, leads)
    clock = SteadyClock()
    return CellParts(
        settings=settings,
        secret=secret,
        driver=driver,
        store=AsyncStore(records, metrics),
        clock=clock,
        metrics=metrics,
        samples=SampleWriter(
            open_objects(settings.cell.bucket),
            clock=clock,
            metrics=metrics,
            interval_ms=settings.keeper.sample_file_interval_ms,
            leads=leads,
        ),
        files=files,
        maintenance=make_maintenance(settings, metrics, clock, lease),
    )


def make_maintenance(
    settings: KeeperSettings, metrics: Metrics, clock: Clock, lease: KeeperLease | None
) -> EtcdMaintenance | None:
    """The maintenance of etcd's database; None of a cell in SQLite."""
    location = metadata_location(settings.cell.metadata)
    if lease is None or isinstance(location, Path):
        return None
    return EtcdMaintenance(
        location,
        metrics,
        clock,
        leads=lease.held,
        interval_ms=settings.keeper.etcd_compaction_interval_ms,
        quota_bytes=settings.keeper.etcd_quota_bytes,
    )


def local_options(own: DriverSettings) -> LocalOptions:
    """The options of the local driver, from the keeper's settings."""
    return LocalOptions(
        backoff=Backoff(
            first_s=own.backoff_first_ms / 1000,
            max_s=own.backoff_max_ms / 1000,
            served_max_s=own.backoff_served_max_ms / 1000,
            quiet_s=own.backoff_quiet_ms / 1000,
        ),
        log=LogLimits(bytes_max=own.log_bytes_max, files=own.log_files),
        start_timeout_s=own.start_timeout_ms / 1000,
        stop_timeout_s=own.stop_timeout_ms / 1000,
        stop_timeout_awaited_s=own.stop_timeout_awaited_ms / 1000,
    )


if __name__ == "__main__":
    sys.exit(main(PROGRAM))
