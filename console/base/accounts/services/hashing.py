"""Hashes passwords outside of the request's transaction, and few at a time.

A hash takes tenths of a second of a core. An address may have only so many under way
(`password_checks_per_address`), and a process makes only so many at a time, in turns by address: so
whoever guesses passwords does not hold up the sign-ins of others.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.contrib.auth.hashers import make_password, verify_password

from console.base.common.concurrency import concurrency, counts_of
from console.base.common.errors import Unavailable
from console.base.common.requests import network_of
from console.base.common.transactions import outside_transaction

# The name of the published limit is `password_checks_per_address`.
LIMIT = "password_checks"
# A hash that takes longer counts no more.
LASTS_S = 60.0
# The other cores are for requests that hash nothing.
HASHES_MAX = max(1, (os.cpu_count() or 1) // 2)
TURN_WITHIN_S = 20.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a password is right, and its hash anew where the stored one is of an old kind."""

    right: bool
    renewed: str | None = None


class Turns:
    """Lets `places` threads run at a time, and has keys take turns however many wait for one."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: OrderedDict[str, deque[threading.Event]] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def turn(self, key: str) -> Iterator[None]:
        """Runs the block once it is its turn. Raises `Unavailable` after `TURN_WITHIN_S`."""
        called = threading.Event()
        with self._lock:
            self._waiting.setdefault(key, deque()).append(called)
            self._call_next()
        if not called.wait(TURN_WITHIN_S) and self._gives_up(key, called):
            raise Unavailable("Too many passwords are checked at this moment.", retry_after_s=1)
        try:
            yield
        finally:
            with self._lock:
                self._free += 1
                self._call_next()

    def _call_next(self) -> None:
        while self._free and self._waiting:
            key, queue = self._waiting.popitem(last=False)
            self._free -= 1
            queue.popleft().set()
            if queue:
                # Behind all other keys.
                self._waiting[key] = queue

    def _gives_up(self, key: str, called: threading.Event) -> bool:
        """Takes a thread out of its queue; returns False if it was called meanwhile."""
        with self._lock:
            if called.is_set():
                return False
            queue = self._waiting[key]
            queue.remove(called)
            if not queue:
                del self._waiting[key]
            return True


_turns = Turns(HASHES_MAX)


def hash_password(password: str, *, address: str) -> str:
    """Returns the hash of a password to store. Interrupts the request's transaction.

    Raises `TooManyAtOnce`, `Unavailable`.
    """
    with _turn(address):
        return make_password(password)


def check_hash(stored: str | None, password: str, *, address: str) -> Verdict:
    """Compares a password with a stored hash; None, of nobody, takes as long and is wrong.

    Interrupts the request's transaction. Raises `TooManyAtOnce`, `Unavailable`.
    """
    with _turn(address):
        if stored is None:
            make_password(password)
            return Verdict(right=False)
        right, outdated = verify_password(password, stored)
        return Verdict(right, make_password(password) if right and outdated else None)


@contextmanager
def _turn(address: str) -> Iterator[None]:
    network = network_of(address)
    with outside_transaction("the hash of a password", counts=False):
        counts = counts_of(LIMIT, organization_id=None, network=network)
        place = concurrency().take(counts, lasts_s=LASTS_S)
        try:
            with _turns.turn(network):
                yield
        finally:
            place.give_back()
