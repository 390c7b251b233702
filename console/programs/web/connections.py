"""Which connections a web server keeps: how many in all and of one address, and who makes room.

Pure: it hears of connections, and says which to refuse and which to close. Every step takes the
same time, however many there are, but for the choice among the connections of one address.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Connection = TypeVar("Connection", bound=Hashable)
# An order without values: a `dict` keeps the order in which its keys came.
Ordered = dict[Connection, None]


@dataclass(slots=True)
class Connections(Generic[Connection]):
    """The open connections by network: `most` in all, `most_of_network` of one.

    `is_serving` says whether a request of a connection is under way.
    """

    most: int
    most_of_network: int
    is_serving: Callable[[Connection], bool]
    _by_network: dict[str, Ordered[Connection]] = field(default_factory=dict)
    # How many connections → the networks that have so many, and the largest such number.
    _by_count: dict[int, Ordered[str]] = field(default_factory=dict)
    _largest: int = 0
    _total: int = 0

    def __len__(self) -> int:
        """How many are open."""
        return self._total

    def of(self, network: str) -> int:
        """How many connections a network has."""
        return len(self._by_network.get(network, ()))

    def may_open(self, network: str, *, bounded: bool) -> bool:
        """Whether a network may have another one. `bounded`: whether its own bound holds."""
        return not bounded or self.of(network) < self.most_of_network

    def to_close(self, network: str) -> Connection | None:
        """Returns the connection that makes room for a new one of `network`; None where none does.

        To be asked while `is_full`. It is one of the network that has most, the newest of those
        that serve no request, or else the newest. A network does not make room for one that would
        then have more; where all have the same, only who serves no request does.
        """
        greediest = next(iter(self._by_count[self._largest]))
        idle = (one for one in reversed(self._by_network[greediest]) if not self.is_serving(one))
        if self._largest > self.of(network) + 1:
            return next(idle, None) or next(reversed(self._by_network[greediest]))
        if self._largest > self.of(network):
            return next(idle, None)
        return None

    @property
    def is_full(self) -> bool:
        """Whether there are as many as may be."""
        return self._total >= self.most

    def add(self, network: str, connection: Connection) -> None:
        """Notes a connection that was opened."""
        self._by_network.setdefault(network, {})[connection] = None
        self._total += 1
        self._move(network, -1)

    def remove(self, network: str, connection: Connection) -> None:
        """Notes that a connection is closed. Repeating it changes nothing."""
        connections = self._by_network.get(network, {})
        if connection not in connections:
            return
        del connections[connection]
        self._total -= 1
        self._move(network, 1)
        if not connections:
            del self._by_network[network]

    def _move(self, network: str, before: int) -> None:
        """Files a network under its count, which was by `before` more."""
        count = self.of(network)
        earlier = self._by_count.get(count + before)
        if earlier is not None:
            del earlier[network]
            if not earlier:
                del self._by_count[count + before]
        if count:
            self._by_count.setdefault(count, {})[network] = None
        self._largest = max(self._largest, count)
        if self._largest not in self._by_count:
            # A network's count changes by one.
            self._largest -= 1
