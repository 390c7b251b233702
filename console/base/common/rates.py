"""How often the API may be asked: counted in Redis, so that all web processes agree.

Requests are counted over a window that slides, by `limits`. Redis is a convenience here: while it
does not answer, each process counts for itself, and the API goes on.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from limits import RateLimitItemPerSecond
from limits.storage import MemoryStorage, RedisStorage
from limits.strategies import SlidingWindowCounterRateLimiter
from redis.exceptions import RedisError

from console.base.common.conf import config

logger = logging.getLogger(__name__)

# Requests come in bursts: a page of the console, a Terraform plan.
WINDOW_S = 10
# A Redis on the same machine or network answers within a millisecond.
TIMEOUT_S = 0.25
# Once it did not answer, nobody waits for it for so long.
AWAY_S = 5.0
KEY_PREFIX = "freshet-rate"
REDIS_SCHEMES = {
    "redis://": "redis://",
    "rediss://": "rediss://",
    "redis+socket://": "redis+unix://",
}


@dataclass(frozen=True, slots=True)
class Rate:
    """A limit of requests after one more of them was counted, or refused."""

    # What the limit is called in headers.
    policy: str
    # Requests in a window, and how many of them are left.
    limit: int
    left: int
    # Until there is room for another one, in seconds.
    reset_s: int
    allowed: bool

    @property
    def headers(self) -> dict[str, str]:
        """`RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-10)."""
        return {
            "RateLimit-Policy": f'"{self.policy}";q={self.limit};w={WINDOW_S}',
            "RateLimit": f'"{self.policy}";r={self.left};t={self.reset_s}',
        }


class Rates:
    """Counts requests by key. `url` is the queue's; one that is no Redis counts in memory."""

    def __init__(self, url: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._own = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._shared = _shared(url)
        self._away_until = 0.0

    def count(self, *, policy: str, key: str, per_second: int) -> Rate:
        """Counts a request of `key`, unless it is one too many; waits for nobody for long."""
        if self._shared is not None and self._clock() >= self._away_until:
            try:
                return _count(self._shared, policy, key, per_second)
            except (RedisError, OSError) as error:
                self._away_until = self._clock() + AWAY_S
                logger.warning("rates.redis_away error=%s", error)
        return _count(self._own, policy, key, per_second)


def _count(
    limiter: SlidingWindowCounterRateLimiter, policy: str, key: str, per_second: int
) -> Rate:
    limit = per_second * WINDOW_S
    item = RateLimitItemPerSecond(limit, WINDOW_S, namespace=KEY_PREFIX)
    allowed = limiter.hit(item, policy, key)
    stats = limiter.get_window_stats(item, policy, key)
    # The library tells a moment of the wall clock, which it read just now.
    reset_s = math.ceil(stats.reset_time - time.time())
    reset_s = min(max(reset_s, 0 if allowed else 1), WINDOW_S)
    return Rate(policy, limit, stats.remaining if allowed else 0, reset_s, allowed)


def _shared(url: str) -> SlidingWindowCounterRateLimiter | None:
    for scheme, known in REDIS_SCHEMES.items():
        if url.startswith(scheme):
            storage = RedisStorage(
                known + url.removeprefix(scheme),
                key_prefix=KEY_PREFIX,
                socket_timeout=TIMEOUT_S,
                socket_connect_timeout=TIMEOUT_S,
            )
            return SlidingWindowCounterRateLimiter(storage)
    return None


_lock = threading.Lock()
_rates: Rates | None = None


def rates() -> Rates:
    """This process's, made when it is first asked for."""
    global _rates  # noqa: PLW0603 (one connection pool a process)
    with _lock:
        if _rates is None:
            queue = config().queue
            _rates = Rates(queue.counters_url or queue.url)
        return _rates


def forget() -> None:
    """Counts anew. For tests, which share one process."""
    global _rates  # noqa: PLW0603
    with _lock:
        _rates = None


# Requests a second of an organisation. Whoever grants more replaces it.
_organization_rate: Callable[[str], int] | None = None


def register_organization_rate(read: Callable[[str], int]) -> None:
    """Sets how an organisation's limit is found, in its tenancy scope."""
    global _organization_rate  # noqa: PLW0603
    _organization_rate = read


def count_organization(organization_id: str) -> Rate:
    """Counts a request of an organisation."""
    read = _organization_rate
    limit = read(organization_id) if read else config().limits.api_requests_per_second
    return rates().count(policy="organization", key=organization_id, per_second=limit)


def count_address(network: str) -> Rate:
    """Counts a request that is nobody's, from an address or network."""
    limit = config().limits.anonymous_requests_per_second
    return rates().count(policy="address", key=network, per_second=limit)
