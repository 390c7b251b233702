"""How often a web server reads from the connections of one address, before it parses anything.

Each read costs a turn of the event loop, whatever was sent: a request, a byte of one, a body. What
an address sends beyond its rate is not read for a while: the connection waits, and the kernel has
its client wait. Nothing is answered or lost, so it costs the server next to nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from console.base.common.allowances import Allowances

# An address may read so often in a second in the long run, and so often at once.
READS_PER_S = 500
READS_AT_ONCE = 1000
# Those that wait go on in groups, so often: a whole crowd at a time would hold everybody up.
GROUP_S = 0.02
READS_OF_GROUP = int(READS_PER_S * GROUP_S)


class Reads:
    """The reads of all addresses, for one event loop."""

    def __init__(self, per_s: float = READS_PER_S, at_once: int = READS_AT_ONCE) -> None:
        self._allowances: Allowances[str] = Allowances(at_once / per_s)
        self._cost_s = 1 / per_s
        self._waiting: dict[str, deque[Callable[[], None]]] = {}

    def take(self, network: str) -> bool:
        """Counts a read or a new connection; returns False, and counts nothing, beyond the rate."""
        if network in self._waiting or self._allowances.left(network) < self._cost_s:
            return False
        self._allowances.take(network, self._cost_s)
        return True

    def wait(self, network: str, go_on: Callable[[], None]) -> None:
        """Calls `go_on` once the network may read again, behind those of it that wait already."""
        waiting = self._waiting.get(network)
        if waiting is not None:
            waiting.append(go_on)
            return
        self._waiting[network] = deque([go_on])
        asyncio.get_running_loop().call_later(GROUP_S, self._go_on, network)

    def _go_on(self, network: str) -> None:
        waiting = self._waiting[network]
        for _ in range(READS_OF_GROUP):
            if not waiting or self._allowances.left(network) < self._cost_s:
                break
            self._allowances.take(network, self._cost_s)
            waiting.popleft()()
        if waiting:
            asyncio.get_running_loop().call_later(GROUP_S, self._go_on, network)
        else:
            del self._waiting[network]
