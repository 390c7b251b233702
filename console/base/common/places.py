"""Counts places of which there are so many at a time, over all processes that share a Redis.

A place is taken in each of several counts at once or in none of them, so the count and the check
are one step. Counts are in Redis, where a script does that step. A place that nobody gives back,
because its process died, is free again when its time is over. While Redis does not answer, each
process counts by itself.

Nothing here needs Django: the worker of outbound calls counts with it too.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from redis import Redis
from redis.exceptions import RedisError

from console.base.common.errors import Quota, TooManyRequests
from console.base.common.ids import random_text

logger = logging.getLogger(__name__)

# A Redis on the same machine or network answers within a millisecond.
TIMEOUT_S = 0.25
# After a failure Redis is not tried for so long, so that nobody waits for its timeout each time.
AWAY_S = 5.0
KEY_PREFIX = "freshet-places"
TOKEN_CHARS = 20
# KEYS: the counts. ARGV: the place's token, its seconds, which count is shared (0: none), and the
# limit of each count. Returns 0, or the number of the count that is full, and how many it has.
TAKE = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local lasts, shared, first = tonumber(ARGV[2]), tonumber(ARGV[3]), 0
for place, key in ipairs(KEYS) do
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
  local used = redis.call('ZCARD', key)
  if place == 1 then first = used end
  if used >= tonumber(ARGV[place + 3]) and not (place == shared and first == 0) then
    return {place, used}
  end
end
for _, key in ipairs(KEYS) do
  redis.call('ZADD', key, now + lasts, ARGV[1])
  redis.call('EXPIRE', key, math.ceil(lasts) + 1)
end
return {0, 0}
"""
# KEYS: the counts. ARGV: the place's token, its seconds.
RENEW = """
local time = redis.call('TIME')
local ends = time[1] + time[2] / 1000000 + tonumber(ARGV[2])
for _, key in ipairs(KEYS) do
  redis.call('ZADD', key, ends, ARGV[1])
  redis.call('EXPIRE', key, math.ceil(tonumber(ARGV[2])) + 1)
end
return 0
"""
# KEYS: the counts. ARGV: the place's token.
GIVE_BACK = """
for _, key in ipairs(KEYS) do redis.call('ZREM', key, ARGV[1]) end
return 0
"""


class TooManyAtOnce(TooManyRequests):
    """As many requests as may do this at a time are doing it."""

    code = "too_many_at_once"
    title = "Too many requests at a time"


@dataclass(frozen=True, slots=True)
class Count:
    """What is counted: the published limit's name, whose use it is, and how many there may be.

    Where a count is `shared` by many, whoever has no place in the first of the counts gets one
    although this one is full, so that nobody can take all of it.
    """

    limit_name: str
    key: str
    limit: int
    shared: bool = False

    @property
    def name(self) -> str:
        """The count's name in Redis."""
        return f"{KEY_PREFIX}:{self.limit_name}:{self.key}"


class _Counter(Protocol):
    """Where places are counted."""

    def take(self, counts: Sequence[Count], token: str, lasts_s: float) -> tuple[int, int]:
        """Takes a place in each count; returns 0, or the number of one that is full and its use."""

    def renew(self, names: Sequence[str], token: str, lasts_s: float) -> None:
        """Has a place last `lasts_s` seconds from now on."""

    def give_back(self, names: Sequence[str], token: str) -> None:
        """Gives a place back."""

    def used(self, name: str) -> int:
        """Returns how many places of a count are taken."""


class _Shared:
    """Counts in Redis."""

    def __init__(self, url: str) -> None:
        scheme = "redis+socket://"
        address = "unix://" + url.removeprefix(scheme) if url.startswith(scheme) else url
        self._redis: Any = Redis.from_url(
            address, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S
        )
        self._take = self._redis.register_script(TAKE)
        self._renew = self._redis.register_script(RENEW)
        self._give_back = self._redis.register_script(GIVE_BACK)

    def take(self, counts: Sequence[Count], token: str, lasts_s: float) -> tuple[int, int]:
        shared = next((place for place, count in enumerate(counts, 1) if count.shared), 0)
        limits = [count.limit for count in counts]
        full, used = self._take(
            keys=[count.name for count in counts], args=[token, lasts_s, shared, *limits]
        )
        return int(full), int(used)

    def renew(self, names: Sequence[str], token: str, lasts_s: float) -> None:
        self._renew(keys=list(names), args=[token, lasts_s])

    def give_back(self, names: Sequence[str], token: str) -> None:
        self._give_back(keys=list(names), args=[token])

    def used(self, name: str) -> int:
        return int(self._redis.zcount(name, self._redis.time()[0], "+inf"))


class _Own:
    """Counts in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: dict[str, dict[str, float]] = {}

    def take(self, counts: Sequence[Count], token: str, lasts_s: float) -> tuple[int, int]:
        with self._lock:
            first = self._used(counts[0].name)
            for place, count in enumerate(counts, 1):
                used = self._used(count.name)
                if used >= count.limit and not (count.shared and first == 0):
                    return place, used
            for count in counts:
                self._places.setdefault(count.name, {})[token] = time.monotonic() + lasts_s
        return 0, 0

    def renew(self, names: Sequence[str], token: str, lasts_s: float) -> None:
        with self._lock:
            for name in names:
                self._places.setdefault(name, {})[token] = time.monotonic() + lasts_s

    def give_back(self, names: Sequence[str], token: str) -> None:
        with self._lock:
            for name in names:
                self._places.get(name, {}).pop(token, None)
                if not self._places.get(name):
                    self._places.pop(name, None)

    def used(self, name: str) -> int:
        with self._lock:
            return self._used(name)

    def _used(self, name: str) -> int:
        moment = time.monotonic()
        places = self._places.get(name, {})
        for token in [token for token, until in places.items() if until <= moment]:
            del places[token]
        return len(places)


@dataclass(slots=True)
class Place:
    """A place that was taken in some counts. Whoever took it gives it back."""

    names: tuple[str, ...]
    lasts_s: float
    _counter: _Counter
    _token: str = field(default_factory=lambda: random_text(TOKEN_CHARS))
    _given_back: bool = False

    @property
    def is_given_back(self) -> bool:
        """Whether whoever took it has given it back."""
        return self._given_back

    def renew(self) -> None:
        """Has it last `lasts_s` seconds from now on, unless it is given back."""
        try:
            self._counter.renew(self.names, self._token, self.lasts_s)
            if self._given_back:
                # Another thread may have done so meanwhile.
                self._counter.give_back(self.names, self._token)
        except (RedisError, OSError) as error:
            logger.warning("concurrency.redis_away error=%s", error)

    def give_back(self) -> None:
        """Gives the place back. Repeating it changes nothing."""
        if self._given_back:
            return
        self._given_back = True
        try:
            self._counter.give_back(self.names, self._token)
        except (RedisError, OSError) as error:
            # It is free again when its time is over.
            logger.warning("concurrency.redis_away error=%s", error)


class Concurrency:
    """Counts places in the Redis at `url`; in memory if the URL is not one of Redis."""

    def __init__(self, url: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._own: _Counter = _Own()
        self._shared: _Counter | None = _Shared(url) if url.startswith("redis") else None
        self._away_until = 0.0

    def take(self, counts: Sequence[Count], *, lasts_s: float) -> Place:
        """Takes a place in each of the counts. Raises `TooManyAtOnce` that names the full one."""
        for counter in self._counters():
            place = Place(tuple(count.name for count in counts), lasts_s, counter)
            try:
                full, used = counter.take(counts, place._token, lasts_s)
            except (RedisError, OSError) as error:
                self._note_away(error)
                continue
            if full:
                count = counts[full - 1]
                raise TooManyAtOnce(
                    f"At most {count.limit} requests may do this at a time.",
                    quota=Quota(count.limit_name, count.limit, used),
                    retry_after_s=1,
                )
            return place
        message = "memory always answers"
        raise AssertionError(message)

    def used(self, limit_name: str, key: str) -> int:
        """Returns how many places are taken under a limit."""
        name = Count(limit_name, key, 0).name
        for counter in self._counters():
            try:
                return counter.used(name)
            except (RedisError, OSError) as error:
                self._note_away(error)
        return 0

    def _counters(self) -> list[_Counter]:
        usable = self._shared is not None and self._clock() >= self._away_until
        return [cast("_Counter", self._shared), self._own] if usable else [self._own]

    def _note_away(self, error: Exception) -> None:
        self._away_until = self._clock() + AWAY_S
        logger.warning("concurrency.redis_away error=%s", error)
