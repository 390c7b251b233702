"""What the live tails of one organization take of a process, together, in a second.

Decoding records and writing them out takes a core that all organizations of the process share. So
tails pay for what they read, and one whose organization has read too much waits. What comes
meanwhile is passed over, which the viewer is shown (`skipped`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from console.base.common.allowances import Allowances

RECORDS_PER_S = 2_000.0
BYTES_PER_S = 4.0 * 1024 * 1024
# An organization may read at once what it may read in so long.
BURST_S = 1.0


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
        self._records: Allowances[str] = Allowances(BURST_S, clock=clock)
        self._bytes: Allowances[str] = Allowances(BURST_S, clock=clock)
        self._lock = threading.Lock()

    def pay(self, organization_id: str, *, records: int, size: int) -> float:
        """Counts what a tail has read (`size` in bytes).

        Returns for how many seconds the organization's tails are to read nothing now.
        """
        with self._lock:
            self._records.take(organization_id, records / self._records_per_s)
            self._bytes.take(organization_id, size / self._bytes_per_s)
            return max(self._records.back_in(organization_id), self._bytes.back_in(organization_id))
