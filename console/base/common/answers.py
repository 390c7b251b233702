"""Bounds the large answers that clients have not taken yet: their sum, and how long each stays.

An answer is in memory, whole, and has a thread, until its client has taken it, which a client may
put off for ever. A small one is in the connection's buffer at once, and nothing waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from console.base.common.bodies import send_problem
from console.base.common.errors import Unavailable
from console.base.common.requests import is_loopback, network_of, scope_address
from console.base.common.turn_keys import TurnKeys, scope_credential, turn_keys

Scope = dict[str, Any]
Event = Mapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]

# Answers up to this size are not counted: Django sends so much at a time, and the buffer of a
# connection takes it at once.
SMALL_BYTES = 64 * 1024
# What a larger one costs beside its bytes: a thread.
OVERHEAD_BYTES = 64 * 1024
# How many bytes of larger ones a process holds, and how many of them one organization may have.
HELD_BYTES_MAX = 128 * 1024 * 1024
ORGANIZATION_SHARE = 4
# Each has so long, and more by its size: half a megabit a second.
TAKEN_WITHIN_S = 30.0
TAKEN_PER_S = 64 * 1024
READS = frozenset({"GET", "HEAD"})
REFUSED = "Large answers are not taken as fast as they are asked for."

logger = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class HeldAnswer:
    """An answer of so many bytes to a holder: an organization's id or a network's address.

    `until` is the moment of the event loop's clock at which it is broken off.
    """

    holder: str
    size: int
    until: float
    _sending: asyncio.Timeout | None = None

    async def send(self, send: Send, event: Event) -> None:
        """Sends a part of it. Raises `TimeoutError` at the end of its time."""
        try:
            async with asyncio.timeout_at(self.until) as self._sending:
                await send(event)
        finally:
            self._sending = None

    def break_off(self) -> None:
        """Ends its time."""
        self.until = asyncio.get_running_loop().time()
        if self._sending is not None:
            self._sending.reschedule(self.until)


@dataclass
class HeldAnswers:
    """The answers that are held, of which one holder may have one part in `shares` of the bytes.

    A holder that has none gets one of any size. Where all together are too many, the holder with
    most loses its oldest ones to one that has less. For one event loop.
    """

    bytes_max: int = HELD_BYTES_MAX
    shares: int = ORGANIZATION_SHARE
    _answers: dict[str, dict[HeldAnswer, None]] = field(default_factory=dict)
    _bytes: Counter[str] = field(default_factory=Counter)

    def hold(self, answer: HeldAnswer, *, must: bool) -> bool:
        """Counts an answer; returns False, and does not count it, where there is no room for it.

        `must`: it is counted in any case. The share does not hold for the loopback, where all
        addresses are one.
        """
        had = self._bytes[answer.holder]
        own = had + answer.size
        share = self.bytes_max if is_loopback(answer.holder) else self.bytes_max // self.shares
        if not must and ((had and own > share) or not self._make_room(answer.size, own)):
            return False
        self._bytes[answer.holder] = own
        self._answers.setdefault(answer.holder, {})[answer] = None
        return True

    def let_go(self, answer: HeldAnswer) -> None:
        """Counts an answer no more. Repeating it changes nothing."""
        answers = self._answers.get(answer.holder, {})
        if answer not in answers:
            return
        del answers[answer]
        self._bytes[answer.holder] -= answer.size
        if not answers:
            del self._answers[answer.holder], self._bytes[answer.holder]

    def _make_room(self, size: int, own: int) -> bool:
        """Breaks off answers of whoever has more than `own` bytes, until so many more fit."""
        while self._bytes.total() + size > self.bytes_max:
            ((holder, most),) = self._bytes.most_common(1) or [("", 0)]
            if most <= own:
                return False
            oldest = next(iter(self._answers[holder]))
            oldest.break_off()
            self.let_go(oldest)
        return True


class AnswerLimit:
    """An ASGI application that hands requests to the one `inside`, and bounds its large answers.

    It answers 503 in place of one for which there is no room (`HeldAnswers`): to reads, which can
    be repeated, and in place of errors. What changed something is always answered. Answers count
    for the organization, or for the address without a known credential. One that is not taken in
    time is broken off.
    """

    def __init__(
        self,
        inside: Callable[[Scope, Receive, Send], Awaitable[None]],
        *,
        held: HeldAnswers | None = None,
        taken_within_s: float = TAKEN_WITHIN_S,
        known: TurnKeys = turn_keys,
    ) -> None:
        self._inside = inside
        self._held = held or HeldAnswers()
        self._taken_within_s = taken_within_s
        self._known = known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        answer: HeldAnswer | None = None
        is_refused = False

        async def send_bounded(event: Event) -> None:
            nonlocal answer, is_refused
            if is_refused:
                return
            if event["type"] == "http.response.start":
                size = _length_of(event)
                if size > SMALL_BYTES:
                    answer = self._answer(scope, size)
                    is_read = scope["method"] in READS
                    must = not is_read and event["status"] < HTTPStatus.BAD_REQUEST
                    is_refused = not self._held.hold(answer, must=must)
            if is_refused:
                await send_problem(send, Unavailable(REFUSED))
            elif answer is None:
                await send(event)
            else:
                await answer.send(send, event)

        try:
            await self._inside(scope, receive, send_bounded)
        except TimeoutError:
            if answer is None:
                raise
            # The server ends the connection of an answer that is not complete.
            logger.info(
                "web.answer_not_taken", extra={"bytes": answer.size, "holder": answer.holder}
            )
        finally:
            if answer is not None:
                self._held.let_go(answer)

    def _answer(self, scope: Scope, size: int) -> HeldAnswer:
        holder = self._known.organization_of(scope_credential(scope))
        within_s = self._taken_within_s + size / TAKEN_PER_S
        return HeldAnswer(
            holder or network_of(scope_address(scope)),
            size + OVERHEAD_BYTES,
            asyncio.get_running_loop().time() + within_s,
        )


def _length_of(start: Event) -> int:
    """The bytes of an answer; 0 for one that is made while it is sent, and never in memory."""
    for name, value in start["headers"]:
        if name.lower() == b"content-length":
            return int(value)
    return 0
