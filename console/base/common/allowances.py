"""How much of something a key may take at once, and at which rate it gets it back.

Amounts are in seconds: how long the key's share of the whole takes to come back. Whoever took more
than it had has less than nothing, and waits until it is back.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


@dataclass(slots=True)
class _Balance:
    left_s: float
    at: float


class Allowances(Generic[Key]):
    """The allowances of keys, each `burst_s` at first and at most. The caller locks."""

    def __init__(
        self,
        burst_s: float,
        *,
        share_of: Callable[[Key], float] = lambda _: 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`share_of`: key → the seconds that it gets back in a second."""
        self._burst_s = burst_s
        self._share_of = share_of
        self._clock = clock
        # The one that was taken from first comes first.
        self._balances: OrderedDict[Key, _Balance] = OrderedDict()

    def take(self, key: Key, seconds: float) -> None:
        """Takes so much, whether or not it is there."""
        moment = self._clock()
        self._balances[key] = _Balance(self._left(key, moment) - seconds, moment)
        self._balances.move_to_end(key)
        self._forget_full(moment)

    def left(self, key: Key) -> float:
        """What a key has left; less than nothing where it took too much."""
        return self._left(key, self._clock())

    def back_in(self, key: Key) -> float:
        """In how many seconds a key that took too much has that back; 0 for others."""
        return max(0.0, -self.left(key) / self._share_of(key))

    def keys(self) -> Collection[Key]:
        """The keys that are remembered; the others have all of it."""
        return self._balances.keys()

    def forget(self) -> None:
        """Forgets what was taken."""
        self._balances.clear()

    def _left(self, key: Key, moment: float) -> float:
        balance = self._balances.get(key)
        if balance is None:
            return self._burst_s
        return min(self._burst_s, balance.left_s + (moment - balance.at) * self._share_of(key))

    def _forget_full(self, moment: float) -> None:
        while self._balances:
            key = next(iter(self._balances))
            if self._left(key, moment) < self._burst_s:
                return
            del self._balances[key]
