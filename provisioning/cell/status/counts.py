"""What the brokers of a cluster have counted of topics, and those that have ended before: pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from provisioning.cell.status.picture import Picture, topics_in

Counts = dict[str, list[int]]


class TopicCounts:
    """Adds up counters of brokers, each of which begins at 0 when its broker starts.

    Where one of several brokers ends, what it counted stays in the sums: else these would become
    smaller, and whoever reads them would take that for a start of all brokers.
    """

    def __init__(self) -> None:
        # By slot and incarnation.
        self._of_broker: dict[tuple[int, str], Counts] = {}
        self._ended: Counts = {}

    def of(self, pictures: Sequence[Picture]) -> Counts:
        """`[bytes in, bytes out, records in]` by topic, since the first of these brokers started.

        Where none of them was there the last time, the sums begin anew. Topics that no broker names
        any more are left out.
        """
        now = {(p.slot, p.incarnation): topics_in([p]) for p in pictures}
        gone = self._of_broker.keys() - now.keys()
        if self._of_broker.keys() & now.keys():
            self._ended = _sum([self._ended, *(self._of_broker[broker] for broker in gone)])
        else:
            self._ended = {}
        self._of_broker = now
        named = {name for picture in pictures for name, _ in picture.entries("t").values()}
        sums = _sum([self._ended, *now.values()])
        return {topic: sums[topic] for topic in sorted(sums) if topic in named}


def _sum(several: Iterable[Counts]) -> Counts:
    sums: Counts = {}
    for counts in several:
        for topic, numbers in counts.items():
            before = sums.get(topic, [0] * len(numbers))
            sums[topic] = [a + b for a, b in zip(before, numbers, strict=True)]
    return sums
