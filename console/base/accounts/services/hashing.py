"""Hashes passwords outside of the request's transaction, and few at a time.

A hash takes tenths of a second of a core. An address may have only so many under way
(`password_checks_per_address`), and a process makes only so many at a time, in turns by address: so
whoever guesses passwords does not hold up the sign-ins of others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.contrib.auth.hashers import make_password, verify_password

from console.base.common.concurrency import concurrency, counts_of
from console.base.common.requests import network_of
from console.base.common.transactions import outside_transaction
from console.base.common.turns import Turns

# The name of the published limit is `password_checks_per_address`.
LIMIT = "password_checks"
# A hash that takes longer counts no more.
LASTS_S = 60.0
# The other cores are for requests that hash nothing.
HASHES_MAX = max(1, (os.cpu_count() or 1) // 2)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a password is right, and its hash anew where the stored one is of an old kind."""

    right: bool
    renewed: str | None = None


_turns = Turns(HASHES_MAX, "Too many passwords are checked at this moment.")


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
