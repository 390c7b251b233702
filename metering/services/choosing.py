"""Remembers which topics and principals of an organization are the greatest, for a minute.

To rank 50,000 of them takes longer than all else that a request for costs does, and the order
hardly changes. Quantities are not remembered: they are read anew for each request.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import date

CHOSEN_FOR_S = 60.0
# Of so many organizations, those that were asked for last. A choice has some hundred short names.
CHOICES_MAX = 500

# The organization, the month, how many are chosen, and the clusters among which.
Key = tuple[str, date, int, tuple[str, ...]]
# The kind (`PartKind`), the cluster's id, and the topic's id or the principal.
ChosenPart = tuple[str, str, str]


class ChosenParts:
    """The choices of a process. It is thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # With the time at which it was made. The one that was asked for last stands last.
        self._choices: OrderedDict[Key, tuple[float, Sequence[ChosenPart]]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key) -> Sequence[ChosenPart] | None:
        """The choice that was made at most `CHOSEN_FOR_S` ago."""
        with self._lock:
            made_at, choice = self._choices.get(key, (0.0, None))
            if choice is None:
                return None
            if self._clock() - made_at > CHOSEN_FOR_S:
                del self._choices[key]
                return None
            self._choices.move_to_end(key)
            return choice

    def keep(self, key: Key, choice: Sequence[ChosenPart]) -> None:
        """Remembers a choice, in place of an earlier one."""
        with self._lock:
            self._choices[key] = (self._clock(), choice)
            self._choices.move_to_end(key)
            while len(self._choices) > CHOICES_MAX:
                self._choices.popitem(last=False)

    def forget(self) -> None:
        """Forgets all choices, so that they are made anew."""
        with self._lock:
            self._choices.clear()

    def __len__(self) -> int:
        with self._lock:
            return len(self._choices)


chosen_parts = ChosenParts()
