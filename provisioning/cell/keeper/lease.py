"""One keeper per cell at a time, on whatever machines keepers run: a key in etcd with a lease.

A keeper creates the key `keeper/lease` where there is none. etcd removes it once its lease was not
renewed for `ttl_s`. The holder counts that time from before it sent each renewal, and gives up a
fifth of it early, so it has stopped acting when etcd admits the next keeper. A keeper also ends
where etcd is away for so long; brokers go on, and it stands by until etcd is back.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import socket
import time
from collections.abc import Callable

from brokers.errors import MetadataError
from brokers.etcd import Etcd
from console.base.runtime.clock import STEADY
from provisioning.cell.keeper.lock import Holder

LOGGER = logging.getLogger(__name__)

KEY = "keeper/lease"
VERSION = 1
# Interval at which a standby tries to take the lease.
POLL_S = 0.5


class LeaseLostError(Exception):
    """The lease has ended, so another keeper may have the cell by now."""


class KeeperLease:
    """A lease, held from `try_acquire` until `release` or until it was not renewed in time."""

    def __init__(
        self,
        etcd: Etcd,
        ttl_s: int,
        *,
        clock: Callable[[], float] = lambda: time.clock_gettime(STEADY),
    ) -> None:
        self._etcd = etcd
        self._ttl_s = ttl_s
        self._clock = clock
        self._lease: int | None = None
        self._until = 0.0

    def held(self) -> bool:
        """Whether this keeper has the lease, so that no other one can."""
        return self._lease is not None and self._clock() < self._until

    def try_acquire(self, now: str) -> Holder | None:
        """Takes the lease, and records this keeper as its holder. Returns None.

        Where another keeper has the lease, its holder is returned. Raises `MetadataError`: then
        nothing is held, and a key that was created nevertheless ends with its lease.
        """
        entry = self._etcd.get(KEY)
        if entry is not None:
            return _read_holder(entry.value)
        asked_at = self._clock()
        lease = self._etcd.grant_lease(self._ttl_s)
        who = {
            "version": VERSION,
            "holder": f"{socket.gethostname()}-{secrets.token_hex(4)}",
            "since": now,
            "ttl_s": self._ttl_s,
        }
        try:
            taken = self._etcd.create(KEY, json.dumps(who).encode(), lease=lease)
        except MetadataError:
            self._revoke_lease(lease)
            raise
        if not taken:
            self._revoke_lease(lease)
            entry = self._etcd.get(KEY)
            return Holder(None, "") if entry is None else _read_holder(entry.value)
        self._lease = lease
        self._until = asked_at + self._ttl_s * 0.8
        return None

    async def acquire(self, now: str) -> None:
        """Waits until the lease is free, and takes it."""
        away = False
        while True:
            try:
                if await asyncio.to_thread(self.try_acquire, now) is None:
                    return
                away = False
            except MetadataError as error:
                if not away:
                    LOGGER.error(
                        "etcd does not answer, so the cell's lease cannot be taken: %s", error
                    )
                away = True
            await asyncio.sleep(POLL_S)

    async def keep(self) -> None:
        """Renews the lease until cancelled.

        Raises `LeaseLostError` before another keeper can have it.
        """
        while True:
            await asyncio.sleep(min(self._ttl_s / 5, max(0.0, self._until - self._clock())))
            asked_at = self._clock()
            if asked_at >= self._until:
                raise LeaseLostError(f"it could not be renewed for {self._ttl_s * 0.8:.0f} s")
            try:
                async with asyncio.timeout(self._until - asked_at):
                    kept = await asyncio.to_thread(self._etcd.keep_lease, self._lease or 0)
            except (MetadataError, TimeoutError) as error:
                LOGGER.warning("the cell's lease was not renewed: %s", str(error) or "no answer")
                continue
            if not kept:
                raise LeaseLostError("etcd has ended it")
            self._until = asked_at + self._ttl_s * 0.8

    def release(self) -> None:
        """Releases the lease. Where that fails, etcd ends it by its time."""
        if self._lease is not None:
            self._revoke_lease(self._lease)
            self._lease = None

    def _revoke_lease(self, lease: int) -> None:
        try:
            self._etcd.revoke_lease(lease)
        except MetadataError as error:
            LOGGER.warning("a lease could not be released, and ends by its time: %s", error)


def _read_holder(value: bytes) -> Holder:
    try:
        written = json.loads(value)
        return Holder(None, str(written["since"]), str(written["holder"]))
    except (ValueError, KeyError, TypeError):
        return Holder(None, "")
