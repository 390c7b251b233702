"""What the live tails of one organization take of a process, together, in a second.

Decoding records and writing them out takes a core that all organizations of the process share. So
tails pay for what they read, and one whose organization has read too much waits. What comes
meanwhile is passed over, which the viewer is shown (`skipped`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

RECORDS_PER_S = 2_000.0
BYTES_PER_S = 4.0 * 1024 * 1024
# An organization may read at once what it may read in so long.
BURST_S = 1.0


@dataclass(slots=True)
class _Balance:
    """What may still be read, in seconds of each rate; less than zero where too much was."""

    records_s: float
    bytes_s: float
    at: float


class TailShares:
    """Counts what the tails of each organization read. For many threads."""

    def __init__(
        self,
        *,
        records_per_s: float = RECORDS_PER_S,
        bytes_per_s: float = BYTES_PER_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._records_per_s = records_per_s
        self._bytes_per_s = bytes_per_s
        self._clock = clock
        self._balances: dict[str, _Balance] = {}
        self._lock = threading.Lock()

    def pay(self, organization_id: str, *, records: int, size: int) -> float:
        """Counts what a tail has read (`size` in bytes).

        Returns for how many seconds the organization's tails are to read nothing now.
        """
        with self._lock:
            balance = self._balance(organization_id)
            balance.records_s -= records / self._records_per_s
            balance.bytes_s -= size / self._bytes_per_s
            return max(0.0, -balance.records_s, -balance.bytes_s)

    def _balance(self, organization_id: str) -> _Balance:
        moment = self._clock()
        balance = self._balances.get(organization_id)
        if balance is None:
            self._forget_full(moment)
            balance = self._balances[organization_id] = _Balance(BURST_S, BURST_S, moment)
        passed_s, balance.at = moment - balance.at, moment
        balance.records_s = min(BURST_S, balance.records_s + passed_s)
        balance.bytes_s = min(BURST_S, balance.bytes_s + passed_s)
        return balance

    def _forget_full(self, moment: float) -> None:
        """Drops organizations that have read nothing for so long that all is free again."""
        for organization_id, balance in list(self._balances.items()):
            least = min(balance.records_s, balance.bytes_s)
            if least + moment - balance.at >= BURST_S:
                del self._balances[organization_id]
