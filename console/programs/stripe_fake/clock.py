"""The fake's clock: the machine's, moved or sped up.

It stamps objects and decides what expires (idempotency keys, hosted pages, events), what search
does not show yet, and when a payment that is being processed ends. Deliveries of webhooks wait by
the machine's clock, as they wait for another program.
"""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FakeClock:
    """`shown_s` at the machine's `machine_s`, and `rate` of its seconds for each of the machine's.

    All are Unix times in seconds; a rate of 0 stops the clock.
    """

    shown_s: float = 0.0
    machine_s: float = 0.0
    rate: float = 1.0

    def now(self) -> int:
        """Returns the fake's Unix time in whole seconds."""
        return int(self.shown_s + (time.time() - self.machine_s) * self.rate)

    def moved(
        self,
        *,
        now_s: float | None = None,
        advance_s: float = 0.0,
        rate: float | None = None,
    ) -> FakeClock:
        """Returns a clock that shows `now_s` (or its own time) plus `advance_s`, at `rate`."""
        machine_s = time.time()
        own_s = self.shown_s + (machine_s - self.machine_s) * self.rate
        return FakeClock(
            shown_s=(own_s if now_s is None else now_s) + advance_s,
            machine_s=machine_s,
            rate=self.rate if rate is None else rate,
        )
