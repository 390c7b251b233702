"""Reads pages and live tails of a topic, around batches that cannot be decoded.

A worker reads until a partition is stuck. Another worker then decodes the next batch of that
partition by itself. If that fails, takes too long or ends the process, the batch is skipped: its
offsets are known from its header, which is read without decoding anything. Then the first worker's
page is read again, without those offsets.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from provisioning.kafka.access import LIMIT_S, Access
from provisioning.kafka.errors import UndecodableError, WorkerDiedError
from provisioning.kafka.shapes import (
    ENDS_READER,
    LIMIT_MAX,
    UNDECODABLE,
    BatchHead,
    Browse,
    Damaged,
    Page,
    TailBatch,
    Verdict,
)

TAIL_S = 600.0
# How much longer than `Browse.timeout_s` a page may take where it meets damage.
DAMAGE_S = 15.0
# How long one look at stuck partitions takes, but for a last batch.
JUDGE_S = 8.0
JUDGE_LIMIT_S = JUDGE_S + 8.0
# How often in a row a page or a tail is begun again although no damage was found where it stopped.
FUTILE_MAX = 2
# How many topics' verdicts a process remembers, and how many of each.
TOPICS_MAX = 200
VERDICTS_MAX = 1_000
# How long a topic is read carefully after a batch was met that makes that necessary.
CARE_S = 600.0


def browse(access: Access, topic: str, request: Browse) -> Page:
    """Reads one page of records. Raises `UnknownPartitionError`."""
    return _Reading(access, topic, request).read_page()


def tail(
    access: Access,
    topic: str,
    *,
    positions: Mapping[int, int] | None = None,
    stopped: Callable[[], bool] = lambda: False,
    seconds_max: float = TAIL_S,
    filter: str | None = None,  # noqa: A002 (its name in a page's and a stream's query)
) -> Generator[TailBatch]:
    """Yields batches of new records, at least one every quarter second, which may be empty.

    A `filter` leaves records out. The tail begins at the end of the topic, or at `positions` (of an
    earlier tail). It ends once `stopped` returns True, or after `seconds_max` seconds. Where it is
    stuck, or its worker ends, one batch has what a page from there on has.
    Raises `UnknownPartitionError`.
    """
    deadline = time.monotonic() + seconds_max
    at, futile = positions, 0
    while True:
        left_s = max(deadline - time.monotonic(), 0.0)
        try:
            with contextlib.closing(_watch(access, topic, at, left_s, filter)) as batches:
                for batch in batches:
                    futile = futile if batch.positions == at else 0
                    at = batch.positions
                    yield batch
                    if stopped():
                        return
            return
        except (UndecodableError, WorkerDiedError):
            futile += 1
            if at is None or futile > FUTILE_MAX:
                raise
        batch = _page_as_batch(access, topic, at, filter)
        futile = futile if batch.positions == at else 0
        at = batch.positions
        yield batch
        if stopped():
            return


def judge(access: Access, topic: str, positions: Mapping[int, int]) -> list[Verdict]:
    """The batches from an offset of each partition on that cannot be decoded.

    They follow one on the other, up to the first that can be decoded. Where a batch took too long
    or ended the process that tried, those behind it are left for another call.
    Raises `UnknownPartitionError`, and `RefusedError` where an offset lies outside of the log.
    """
    key = (access.connection.bootstrap, topic)
    heads: list[BatchHead] = []

    def note(head: BatchHead) -> None:
        heads[:] = [head]

    try:
        verdicts = cast(
            "list[Verdict]",
            access.call(
                "judge",
                topic,
                dict(positions),
                known=_memory.verdicts(key, positions),
                seconds_max=JUDGE_S,
                limit_s=JUDGE_LIMIT_S,
                on_item=note,
            ),
        )
    except WorkerDiedError:
        if not heads:
            raise
        verdicts = [Verdict(**heads[-1], reason=ENDS_READER)]
    _memory.add(key, verdicts)
    return verdicts


@dataclass
class _Reading:
    """One page that is read, again and again until no partition is stuck."""

    access: Access
    topic: str
    request: Browse
    _skip: list[tuple[int, int, int]] = field(default_factory=list)
    _verdicts: list[Verdict] = field(default_factory=list)
    _futile: int = 0
    # The offset that a careful worker announced last, by its partition.
    _place: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._deadline = time.monotonic() + DAMAGE_S + self.request.timeout_s
        key = (self.access.connection.bootstrap, self.topic)
        self._careful = _memory.needs_care(key)

    def read_page(self) -> Page:
        """Reads the page, and leaves out what cannot be decoded."""
        while True:
            page = self._try_page()
            stuck = page.stuck if page else self._place
            if page is not None and not stuck:
                return self._finished(page)
            over = time.monotonic() + self.request.timeout_s >= self._deadline
            if over or not self._learn(stuck):
                if page is None:
                    detail = "the process that read the brokers' answers ended again and again"
                    raise WorkerDiedError("WORKER_DIED", detail)
                return self._finished(replace(page, stopped="time"))

    def _try_page(self) -> Page | None:
        """A worker's page; None where it ended the careful worker at `_place`."""
        request = replace(self.request, skip=tuple(self._skip), careful=self._careful)
        self._place = {}
        try:
            return self._call_worker(request)
        except WorkerDiedError:
            if self._careful and not self._place:
                raise
        if not self._careful:
            # Now the worker announces what it reads.
            self._careful = True
            return self._try_page()
        return None

    def _call_worker(self, request: Browse) -> Page:
        def note(place: list[int]) -> None:
            number, offset = place
            self._place = {number: offset}

        limit_s = LIMIT_S + request.timeout_s
        content = self.access.call("browse", self.topic, request, limit_s=limit_s, on_item=note)
        return page_of(content)

    def _learn(self, stuck: Mapping[int, int]) -> bool:
        """Finds out about stuck partitions. Returns whether to read the page again."""
        verdicts = judge(self.access, self.topic, stuck)
        known = len(self._skip)
        at = dict(stuck)
        for verdict in verdicts:
            number, after = verdict["partition"], verdict["next_offset"]
            # What lies between the place and the batch holds no record.
            span = (number, min(at[number], verdict["first_offset"]), after)
            at[number] = after
            if span not in self._skip:
                self._skip.append(span)
                self._verdicts.append(verdict)
            self._careful |= verdict["reason"] != UNDECODABLE
        if len(self._skip) > known:
            self._futile = 0
        else:
            # Brokers were slow, or a batch that came in one answer with others holds these up.
            self._futile, self._careful = self._futile + 1, True
        return self._futile < FUTILE_MAX

    def _finished(self, page: Page) -> Page:
        reached = {entry["partition"]: entry["position"] for entry in page.reached}
        backwards = self.request.start == "newest"
        damaged = [
            damaged_of(verdict)
            for verdict in self._verdicts
            if (
                verdict["next_offset"] > reached[verdict["partition"]]
                if backwards
                else verdict["first_offset"] < reached[verdict["partition"]]
            )
        ]
        damaged.sort(key=lambda batch: (batch["partition"], batch["first_offset"]))
        return replace(page, damaged=damaged, stuck={})


@dataclass
class _Memory:
    """The latest verdicts of this process, by (bootstrap, topic). It is thread-safe.

    A verdict is about a batch with a certain checksum, so it holds for good.
    """

    _topics: OrderedDict[tuple[str, str], dict[tuple[int, int, int], Verdict]] = field(
        default_factory=OrderedDict
    )
    # When a batch was met last that makes care necessary (of `time.monotonic`), by topic.
    _cared_s: dict[tuple[str, str], float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, key: tuple[str, str], verdicts: Iterable[Verdict]) -> None:
        """Remembers verdicts, and forgets those of the topic that was looked at longest ago."""
        with self._lock:
            for verdict in verdicts:
                batches = self._topics.setdefault(key, {})
                batch = (verdict["partition"], verdict["first_offset"], verdict["crc"])
                if len(batches) < VERDICTS_MAX:
                    batches[batch] = verdict
                self._topics.move_to_end(key)
                if verdict["reason"] != UNDECODABLE:
                    self._cared_s[key] = time.monotonic()
            while len(self._topics) > TOPICS_MAX:
                gone, _ = self._topics.popitem(last=False)
                self._cared_s.pop(gone, None)

    def verdicts(self, key: tuple[str, str], partitions: Iterable[int]) -> list[Verdict]:
        """The verdicts about batches of partitions of a topic."""
        numbers = set(partitions)
        with self._lock:
            known = list(self._topics.get(key, {}).values())
        return [verdict for verdict in known if verdict["partition"] in numbers]

    def needs_care(self, key: tuple[str, str]) -> bool:
        """Whether a batch was met lately that ends, or holds up, the process that decodes it."""
        with self._lock:
            cared_s = self._cared_s.get(key)
        return cared_s is not None and time.monotonic() - cared_s < CARE_S


_memory = _Memory()


def _watch(
    access: Access,
    topic: str,
    positions: Mapping[int, int] | None,
    seconds_max: float,
    filter: str | None,  # noqa: A002 (as in `tail`)
) -> Generator[TailBatch]:
    """The batches of one worker's tail."""
    batches = access.workers.stream(
        access.connection,
        "tail",
        topic,
        positions=positions,
        seconds_max=seconds_max,
        filter=filter,
        limit_s=LIMIT_S,
    )
    with contextlib.closing(batches):
        for batch in batches:
            yield TailBatch(**batch | {"positions": _int_keys(batch["positions"])})


def _page_as_batch(
    access: Access,
    topic: str,
    positions: Mapping[int, int],
    filter: str | None,  # noqa: A002 (as in `tail`)
) -> TailBatch:
    """What a page from `positions` on has, as a batch of a tail."""
    request = Browse(
        "offset", partitions=list(positions), positions=positions, limit=LIMIT_MAX, filter=filter
    )
    page = browse(access, topic, request)
    reached = {entry["partition"]: entry["position"] for entry in page.reached}
    return TailBatch(
        page.records,
        {**positions, **reached},
        records_read=page.records_read,
        bytes_read=page.bytes_read,
        damaged=page.damaged,
    )


def page_of(content: Mapping[str, Any]) -> Page:
    """A page from its JSON."""
    positions = content["positions"]
    return Page(
        **{
            **content,
            "positions": None if positions is None else _int_keys(positions),
            "stuck": _int_keys(content["stuck"]),
        }
    )


def damaged_of(verdict: Verdict) -> Damaged:
    """What is shown of a verdict."""
    return Damaged(
        partition=verdict["partition"],
        first_offset=verdict["first_offset"],
        next_offset=verdict["next_offset"],
        reason=verdict["reason"],
    )


def _int_keys(positions: Mapping[str, int]) -> dict[int, int]:
    """Offsets by partition. JSON has the partitions' numbers as strings."""
    return {int(number): offset for number, offset in positions.items()}
