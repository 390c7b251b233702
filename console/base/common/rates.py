"""Limits how often the API may be called, counted in Redis so that all web processes share a count.

The library `limits` counts requests over a sliding window. The API does not depend on Redis for
this: while Redis does not answer, each process counts by itself.
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
from console.base.common.errors import Quota, TooManyRequests
from console.base.common.organization_limits import limit_of_organization
from console.base.common.places import AWAY_S, TIMEOUT_S

logger = logging.getLogger(__name__)

# Long enough for bursts of requests, such as a page of the console or a Terraform plan.
WINDOW_S = 10
KEY_PREFIX = "freshet-rate"
# The policy's name in headers → the name of its published limit.
RATE_LIMITS = {
    "organization": "api_requests_per_second",
    "address": "anonymous_requests_per_second",
    "pages": "page_requests_per_second",
}
# Celery's schemes of Redis URLs → those of the library.
REDIS_SCHEMES = {
    "redis://": "redis://",
    "rediss://": "rediss://",
    "redis+socket://": "redis+unix://",
}


@dataclass(frozen=True, slots=True)
class Rate:
    """The state of a limit after a request was counted or refused."""

    # The limit's name in headers.
    policy: str
    # How many requests a window allows, and how many of them remain.
    limit: int
    remaining: int
    # Seconds until there is room for another request.
    reset_s: int
    allowed: bool

    @property
    def headers(self) -> dict[str, str]:
        """`RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-10)."""
        return {
            "RateLimit-Policy": f'"{self.policy}";q={self.limit};w={WINDOW_S}',
            "RateLimit": f'"{self.policy}";r={self.remaining};t={self.reset_s}',
        }


class RateLimited(TooManyRequests):
    """An organization, or an address without a valid credential, made too many API requests."""

    code = "rate_limited"
    title = "Too many API requests"

    def __init__(self, rate: Rate) -> None:
        super().__init__(
            f"At most {rate.limit} requests are served in {WINDOW_S} seconds.",
            quota=Quota(RATE_LIMITS[rate.policy], rate.limit, rate.limit),
            retry_after_s=rate.reset_s,
        )


class Rates:
    """Counts requests by key, in the Redis at `url`; in memory if the URL is not one of Redis."""

    def __init__(self, url: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._own = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._shared = _redis_limiter(url)
        self._away_until = 0.0

    def count(self, *, policy: str, key: str, per_second: int) -> Rate:
        """Counts a request of `key`, unless that exceeds the limit; returns the limit's state.

        Waits for Redis at most `TIMEOUT_S` a command, and counts in this process if it fails.
        """
        if self._shared is not None and self._clock() >= self._away_until:
            try:
                return _count_request(self._shared, policy, key, per_second)
            except (RedisError, OSError) as error:
                self._away_until = self._clock() + AWAY_S
                logger.warning("rates.redis_away error=%s", error)
        return _count_request(self._own, policy, key, per_second)


def _count_request(
    limiter: SlidingWindowCounterRateLimiter, policy: str, key: str, per_second: int
) -> Rate:
    limit = per_second * WINDOW_S
    item = RateLimitItemPerSecond(limit, WINDOW_S, namespace=KEY_PREFIX)
    allowed = limiter.hit(item, policy, key)
    stats = limiter.get_window_stats(item, policy, key)
    # The library returns a time of the wall clock, so the wall clock is read here too.
    reset_s = math.ceil(stats.reset_time - time.time())
    reset_s = min(max(reset_s, 0 if allowed else 1), WINDOW_S)
    return Rate(policy, limit, stats.remaining if allowed else 0, reset_s, allowed)


def _redis_limiter(url: str) -> SlidingWindowCounterRateLimiter | None:
    """Returns a limiter that counts in the Redis at a Celery URL; None for another broker."""
    for scheme, library_scheme in REDIS_SCHEMES.items():
        if url.startswith(scheme):
            storage = RedisStorage(
                library_scheme + url.removeprefix(scheme),
                key_prefix=KEY_PREFIX,
                socket_timeout=TIMEOUT_S,
                socket_connect_timeout=TIMEOUT_S,
            )
            return SlidingWindowCounterRateLimiter(storage)
    return None


_lock = threading.Lock()
_rates: Rates | None = None


def rates() -> Rates:
    """Returns the counter of this process, which the first call makes."""
    global _rates  # noqa: PLW0603 (one connection pool a process)
    with _lock:
        if _rates is None:
            queue = config().queue
            _rates = Rates(queue.counters_url or queue.url)
        return _rates


def forget_rates() -> None:
    """Drops the counter, so that counts begin at zero. For tests, which share one process."""
    global _rates  # noqa: PLW0603
    with _lock:
        _rates = None


def count_organization(organization_id: str) -> Rate:
    """Counts a request of an organization; returns its limit's state."""
    limit = limit_of_organization("api_requests_per_second", organization_id)
    return rates().count(policy="organization", key=organization_id, per_second=limit)


def count_address(network: str) -> Rate:
    """Counts a request without a valid credential, by its address or /64 network."""
    limit = config().limits.anonymous_requests_per_second
    return rates().count(policy="address", key=network, per_second=limit)
