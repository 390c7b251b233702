"""Turns at what a process does few times at once, since each takes a core or much memory.

Keys (addresses, organizations) take turns: whoever asks for much waits behind everybody else.

All requests of a process share one core, as Python computes in one thread at a time. So requests
take turns too (`RequestTurn`): an organization computes few at a time, however many it sends, and
its others wait for it alone. While others are there it computes for a share of the time, beyond a
burst: it would otherwise have all that they leave, and they would wait for a busy core each time.
What a live tail computes in its own thread takes turns with the requests of its organization.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from console.base.common.allowances import Allowances
from console.base.common.errors import Unavailable
from console.base.common.places import TooManyAtOnce

TURN_WITHIN_S = 20.0
# How many requests a process computes at a time, and how many of an organization while there are
# others, and while there are none: then one computes while PostgreSQL answers another.
REQUESTS_MAX = 8
REQUESTS_PER_ORGANIZATION = 1
REQUESTS_ALONE = 4
# For which share of the time an organization computes while there are others, and a client without
# a known credential; and for how many seconds it may do so at once.
ORGANIZATION_SHARE = 0.25
ADDRESS_SHARE = 0.0625
BURST_S = 2.0
# For how long a request computes at once beside its waits. Then it waits for its next turn.
COMPUTED_AT_ONCE_S = 0.05
# What a request costs outside of its own thread, in seconds.
LOOP_S = 0.002
EARLIEST_S = 0.001
# What the key of a client without a known credential begins with.
ADDRESS = "address:"
# Who had a turn since so long ago (seconds) may want the next one.
PRESENT_S = 10.0
# How many requests of an organization wait at most, and for how long each.
REQUESTS_WAITING_MAX = 128
REQUEST_WITHIN_S = 10.0


class Turns:
    """Lets `places` threads run at a time, and has keys take turns however many wait for one.

    Of one key at most `places_per_key` run, even where other places are free. While no other key
    has had a turn for `PRESENT_S`, or waits for one, it is `places_alone`.
    """

    def __init__(
        self,
        places: int,
        refusal: str,
        *,
        places_per_key: int | None = None,
        places_alone: int = 0,
        share_of: Callable[[str], float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`refusal` says to people why their turn does not come. `share_of`: key → for which share
        of the time it has turns, beyond `BURST_S`, while there are other keys.
        """
        self._free = places
        self._per_key = places if places_per_key is None else places_per_key
        self._alone = max(self._per_key, places_alone)
        self._clock = clock
        # For how many seconds each key may have turns.
        self._allowances = (
            None if share_of is None else Allowances(BURST_S, share_of=share_of, clock=clock)
        )
        # When each key last asked for a turn, the earliest first.
        self._asked_at: OrderedDict[str, float] = OrderedDict()
        self._refusal = refusal
        self._running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[threading.Event]] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def turn(self, key: str) -> Iterator[None]:
        """Runs the block once it is its turn. Raises `Unavailable` after `TURN_WITHIN_S`."""
        if not self.take(key, within_s=TURN_WITHIN_S):
            raise Unavailable(self._refusal, retry_after_s=1)
        try:
            yield
        finally:
            self.give_back(key)

    def take(self, key: str, *, within_s: float, first: bool = False) -> bool:
        """Waits for a turn; returns whether it came in time. `first`: before others of the key."""
        called = threading.Event()
        with self._lock:
            self._note_asked(key)
            queue = self._waiting.setdefault(key, deque())
            if first:
                queue.appendleft(called)
            else:
                queue.append(called)
            self._call_next()
        deadline = self._clock() + within_s
        while not called.wait(min(self._due_in(key), max(0.0, deadline - self._clock()))):
            if self._clock() >= deadline:
                return not self._gives_up(key, called)
            with self._lock:
                self._call_next()
        return True

    def give_back(self, key: str, used_s: float = 0.0) -> None:
        """Ends a turn that was taken, in which the key computed for so long."""
        with self._lock:
            self._count_used(key, used_s)
            self._free += 1
            self._running[key] -= 1
            if not self._running[key]:
                del self._running[key]
            self._call_next()

    def count_used(self, key: str, used_s: float) -> None:
        """Counts what a key computed without a turn, since none came in time."""
        with self._lock:
            self._count_used(key, used_s)

    def forget_used(self) -> None:
        """Forgets for how long keys computed. For tests, which share one process."""
        with self._lock:
            if self._allowances is not None:
                self._allowances.forget()

    def waiting(self, key: str) -> int:
        """How many of a key wait for a turn."""
        with self._lock:
            return len(self._waiting.get(key, ()))

    def _count_used(self, key: str, used_s: float) -> None:
        # What a key computes while it is alone it takes from nobody.
        if self._allowances is not None and len(self._asked_at) > 1:
            self._allowances.take(key, used_s)

    def _call_next(self) -> None:
        while self._free and (key := self._next_key()) is not None:
            queue = self._waiting.pop(key)
            self._free -= 1
            self._running[key] += 1
            queue.popleft().set()
            if queue:
                # Behind all other keys.
                self._waiting[key] = queue

    def _next_key(self) -> str | None:
        """The key that waits longest, of those that may run."""
        if len(self._asked_at) == 1:
            return next((key for key in self._waiting if self._running[key] < self._alone), None)
        return next(
            (
                key
                for key in self._waiting
                if self._running[key] < self._per_key and self._is_allowed(key)
            ),
            None,
        )

    def _is_allowed(self, key: str) -> bool:
        return self._allowances is None or self._allowances.left(key) > 0

    def _due_in(self, key: str) -> float:
        """In how many seconds a key that has used up its share may have another turn."""
        with self._lock:
            if self._allowances is None or self._is_allowed(key):
                return math.inf
            return self._allowances.back_in(key) + EARLIEST_S

    def _note_asked(self, key: str) -> None:
        moment = self._clock()
        self._asked_at[key] = moment
        self._asked_at.move_to_end(key)
        while next(iter(self._asked_at.values())) < moment - PRESENT_S:
            self._asked_at.popitem(last=False)

    def _gives_up(self, key: str, called: threading.Event) -> bool:
        """Takes a thread out of its queue; returns False if it was called meanwhile."""
        with self._lock:
            if called.is_set():
                return False
            queue = self._waiting[key]
            queue.remove(called)
            if not queue:
                del self._waiting[key]
            return True


request_turns = Turns(
    REQUESTS_MAX,
    "Too many requests are served at this moment.",
    places_per_key=REQUESTS_PER_ORGANIZATION,
    places_alone=REQUESTS_ALONE,
    share_of=lambda key: ADDRESS_SHARE if key.startswith(ADDRESS) else ORGANIZATION_SHARE,
)


class RequestTurn:
    """The turn of one request, which it has while it computes, and not while it waits.

    A live tail has one too, with its organization as `key`, which computes by `compute` alone.
    """

    def __init__(self, turns: Turns | None = None, *, key: str | None = None) -> None:
        self._turns = turns or request_turns
        self._key = key
        self._held = False
        # CPU time of the request's thread when it began to compute; None while it waits.
        self._since_s: float | None = None
        # What other threads computed for it since then.
        self._charged_s = 0.0
        self._kept: list[Callable[[], None]] = []

    def begin(self, key: str, waits: Callable[[], AbstractContextManager[None]]) -> None:
        """Takes the first turn, and waits for it in the block that `waits` returns.

        Raises `TooManyAtOnce` where it does not come, or too many of the key wait already.
        """
        taken = self._turns.take(key, within_s=0.0)
        if not taken and self._turns.waiting(key) < REQUESTS_WAITING_MAX:
            with waits():
                taken = self._turns.take(key, within_s=REQUEST_WITHIN_S)
        if not taken:
            detail = "Too many of your requests are being served at this moment."
            raise TooManyAtOnce(detail, retry_after_s=1)
        self._key, self._held = key, True
        self._since_s = time.thread_time() - LOOP_S

    def pause(self) -> None:
        """Gives the turn back while the request waits for something else."""
        if self._key is None or self._since_s is None:
            return
        used_s = self._used_s(self._since_s)
        self._since_s, self._charged_s = None, 0.0
        if self._held:
            self._held = False
            self._turns.give_back(self._key, used_s)
        else:
            self._turns.count_used(self._key, used_s)

    def resume(self, *, first: bool = True) -> None:
        """Takes a turn again, `first` before those of the key that have not begun.

        The request goes on although none comes in time: what it has done cannot be refused.
        """
        if self._key is not None and not self._held:
            self._held = self._turns.take(self._key, within_s=REQUEST_WITHIN_S, first=first)
            self._since_s = time.thread_time()

    @contextmanager
    def compute(self) -> Iterator[Callable[[float], None]]:
        """Runs a block in a turn, behind others of the key: it is one of many of its request.

        What it yields is called after each step of the block, with the seconds that other threads
        computed for it. There the block waits for its next turn once it has computed for long.
        """
        self.resume(first=False)
        try:
            yield self._charge
        finally:
            self.pause()

    def _charge(self, seconds: float) -> None:
        self._charged_s += seconds
        if self._since_s is not None and self._used_s(self._since_s) >= COMPUTED_AT_ONCE_S:
            self.pause()
            self.resume(first=False)

    def _used_s(self, since_s: float) -> float:
        """What was computed since the thread's CPU time was `since_s`, in seconds."""
        return time.thread_time() - since_s + self._charged_s

    def keep(self, give_back: Callable[[], None]) -> None:
        """Has something else given back at the end, when the request's answer is written."""
        self._kept.append(give_back)

    def end(self) -> None:
        """Gives the last turn back, and what was kept."""
        self.pause()
        self._key = None
        while self._kept:
            self._kept.pop()()
