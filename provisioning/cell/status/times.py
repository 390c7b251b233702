"""When the first records were made that groups have not consumed, where another broker leads: pure.

A group's coordinator knows where the group is, and only the broker that leads a partition can say
when a record was made. Where these are two, the reader of both asks the leader, which looks it up
and answers a later question.
"""

from __future__ import annotations

from collections.abc import Iterable

# A topic's number, a partition, and an offset up to which a group has consumed it.
Waiting = tuple[int, int, int]
# The most that one question asks for; a broker looks at no more.
ASKED_MAX = 256


class WaitingTimes:
    """The times that one broker is asked for, and those that it has said."""

    def __init__(self) -> None:
        self._wanted: frozenset[Waiting] = frozenset()
        # By topic and partition: offset → ms since 1970; None where no record has a time.
        self._known: dict[tuple[int, int], dict[int, int | None]] = {}

    def want(self, places: Iterable[Waiting]) -> bool:
        """Sets what to ask for. Returns whether `of` knows nothing yet of any of it.

        What was wanted by the call before is remembered, too.
        """
        before, self._wanted = self._wanted, frozenset(places)
        kept = before | self._wanted
        self._known = {
            (topic, number): held
            for (topic, number), times in self._known.items()
            if (held := {at: times[at] for at in times if (topic, number, at) in kept})
        }
        return any(self._latest_known(waiting) is None for waiting in self._wanted)

    def asked(self) -> str:
        """What a question asks for, as its `times`; empty for nothing."""
        unknown = sorted(waiting for waiting in self._wanted if not self._is_known(waiting))
        return ",".join(".".join(map(str, waiting)) for waiting in unknown[:ASKED_MAX])

    def take(self, waiting: Waiting, time: int | None) -> None:
        """Takes a time that the broker says, if it was asked for."""
        if waiting in self._wanted:
            topic, number, at = waiting
            self._known.setdefault((topic, number), {})[at] = time

    def forget(self) -> None:
        """Forgets all, because numbers of topics are others now."""
        self._wanted = frozenset()
        self._known.clear()

    def of(self, waiting: Waiting) -> int | None:
        """The time at an offset, in ms since 1970; None where it is not known.

        While a group goes on all the time, it is that of where it was a moment ago.
        """
        at = self._latest_known(waiting)
        return None if at is None else self._known[waiting[:2]][at]

    def _latest_known(self, waiting: Waiting) -> int | None:
        """The last offset up to this one of which the time is known."""
        known = self._known.get(waiting[:2], {})
        return max((at for at in known if at <= waiting[2]), default=None)

    def _is_known(self, waiting: Waiting) -> bool:
        return waiting[2] in self._known.get(waiting[:2], ())
