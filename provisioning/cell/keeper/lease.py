"""One keeper a cell at a time, wherever keepers run: a key in etcd that ends with its holder.

The key `keeper/lease` is created where it is not there, and goes by itself when its lease is not
kept for `ttl_s`. Whoever holds it counts that time from before each answer was asked for, and ends
a fifth of it early: it has stopped acting when etcd lets the next one in. etcd that is away for so
long ends a keeper too; brokers go on, and it stands by until etcd is back.
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
POLL_S = 0.5


class LeaseLostError(Exception):
    """The cell may be another keeper's by now."""


class KeeperLease:
    """Held from `try_acquire` until `release`, or until it was not kept for `ttl_s` seconds."""

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
        """Tells whether nobody else can have it."""
        return self._lease is not None and self._clock() < self._until

    def try_acquire(self, now: str) -> Holder | None:
        """Takes it and writes down who has it; gives the holder where it is taken.

        Raises `MetadataError`: then it is not taken, or ends by itself.
        """
        found = self._etcd.get(KEY)
        if found is not None:
            return _holder(found.value)
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
            self._revoke(lease)
            raise
        if not taken:
            self._revoke(lease)
            found = self._etcd.get(KEY)
            return Holder(None, "") if found is None else _holder(found.value)
        self._lease = lease
        self._until = asked_at + self._ttl_s * 0.8
        return None

    async def acquire(self, now: str) -> None:
        """Waits until it is free, and takes it."""
        away = False
        while True:
            try:
                if await asyncio.to_thread(self.try_acquire, now) is None:
                    return
                away = False
            except MetadataError as error:
                if not away:
                    LOGGER.error("the cell's lease cannot be asked for: %s", error)
                away = True
            await asyncio.sleep(POLL_S)

    async def keep(self) -> None:
        """Keeps it, until it is cancelled. Raises `LeaseLostError` before somebody has it."""
        while True:
            await asyncio.sleep(min(self._ttl_s / 5, max(0.0, self._until - self._clock())))
            asked_at = self._clock()
            if asked_at >= self._until:
                raise LeaseLostError(f"it could not be kept for {self._ttl_s * 0.8:.0f} s")
            try:
                async with asyncio.timeout(self._until - asked_at):
                    kept = await asyncio.to_thread(self._etcd.keep_lease, self._lease or 0)
            except (MetadataError, TimeoutError) as error:
                LOGGER.warning("the cell's lease was not kept: %s", error or "no answer")
                continue
            if not kept:
                raise LeaseLostError("etcd has ended it")
            self._until = asked_at + self._ttl_s * 0.8

    def release(self) -> None:
        """Gives it back; where that fails it ends by itself."""
        if self._lease is not None:
            self._revoke(self._lease)
            self._lease = None

    def _revoke(self, lease: int) -> None:
        try:
            self._etcd.revoke_lease(lease)
        except MetadataError as error:
            LOGGER.warning("a lease of this keeper ends by itself: %s", error)


def _holder(value: bytes) -> Holder:
    try:
        written = json.loads(value)
        return Holder(None, str(written["since"]), str(written["holder"]))
    except (ValueError, KeyError, TypeError):
        return Holder(None, "")
