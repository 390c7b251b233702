"""A live tail as Server-Sent Events (WHATWG HTML, section 9.2).

The records are read in a thread, because Kafka's client blocks, and reach the event loop through a
short queue, as the bytes of their events. While a browser does not read, the thread waits, and so
it does where the tails of its organization have read much (`tail_shares.py`); the tail then skips
the records that it could not show. It decodes, filters and writes records in turns, as requests of
its organization compute (`turns.py`). When the client goes away, the thread ends.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
import threading
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field

from asgiref.sync import sync_to_async
from django.db import close_old_connections, connection

from console.base.accounts.services import renew_actor
from console.base.common.actor import Actor, Permission
from console.base.common.concurrency import Count, Place, TooManyAtOnce, concurrency
from console.base.common.tenancy import organization_scope
from console.base.common.turns import RequestTurn
from console.base.common.waiting import stay_counted
from console.base.limits.services import limit_of
from provisioning import kafka
from provisioning.administration.api.message_serializers import shown_damage, shown_record
from provisioning.administration.services.readings import TailRead, note_reading
from provisioning.administration.services.tail_shares import TailShares
from provisioning.clusters.services.brokers import is_serving
from provisioning.clusters.services.observation import observe_cluster
from provisioning.errors import TooManyStreams
from provisioning.models import Cluster

logger = logging.getLogger(__name__)

SECONDS_MAX = 600.0
QUEUE_BATCHES = 1
# How often a tail checks that its brokers are still the cluster's, since from replaced ones no more
# records come, and that its actor may still see the cluster.
LOOK_EVERY_S = 3.0
PROGRESS_EVERY_BATCHES = 4
LIMIT = "live_tails"
# A tail whose process died counts for so long.
COUNTED_S = 30.0


_shares = TailShares()


@dataclass(frozen=True, slots=True)
class Shown:
    """A part of the answer: the events of a batch, which may be none, or the end."""

    events: bytes
    ends: bool = False


@dataclass
class Stream:
    """One live tail, as an answer's parts: iterating it opens it, `close` ends it.

    Making one counts it, and raises `TooManyStreams` at the organization's limit.
    """

    actor: Actor
    cluster: Cluster
    access: kafka.Access
    topic: str
    positions: dict[int, int] | None
    filter: str | None = None
    _left: threading.Event = field(default_factory=threading.Event)
    # Batches that may still be handed over before the client takes one.
    _room: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(QUEUE_BATCHES))

    _read: TailRead = field(default_factory=TailRead)

    _place: Place = field(init=False)
    _turn: RequestTurn = field(init=False)

    def __post_init__(self) -> None:
        organization_id = self.actor.organization_id
        self._turn = RequestTurn(key=organization_id)
        count = Count(LIMIT, organization_id, limit_of(LIMIT, organization_id=organization_id))
        try:
            self._place = concurrency().take([count], lasts_s=COUNTED_S)
        except TooManyAtOnce as error:
            raise TooManyStreams(quota=error.quota, retry_after_s=5) from error

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The events, until the client or the brokers go away, or `SECONDS_MAX` are over."""
        return self._events()

    def close(self) -> None:
        """Ends the tail, also one that was never iterated. Repeating it changes nothing."""
        self._left.set()
        self._place.give_back()

    async def _events(self) -> AsyncIterator[bytes]:
        queue: asyncio.Queue[Shown] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        thread = threading.Thread(
            target=self._read_records, args=(loop, queue), name="live-tail", daemon=True
        )
        thread.start()
        counting = asyncio.create_task(stay_counted(self._place))
        try:
            async for shown in self._shown(queue):
                yield shown
        finally:
            counting.cancel()
            self._left.set()
            # Not awaited: an answer that is given up may end within a cancellation.
            loop.run_in_executor(None, self._end)

    def _end(self) -> None:
        """Ends the tail, and notes what it has read since its last look."""
        self.close()
        try:
            self._note_read()
        except Exception:
            logger.exception("live_tail.reading_lost", extra={"cluster": self.cluster.pk})
        finally:
            connection.close()

    def _note_read(self) -> None:
        read = self._read.take()
        if read is None:
            return
        try:
            with organization_scope(self.actor.organization_id):
                note_reading(actor=self.actor, cluster=self.cluster, topic=self.topic, read=read)
        except BaseException:
            self._read.put_back(read)
            raise

    async def _shown(self, queue: asyncio.Queue[Shown]) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        looked_at = loop.time()
        while True:
            shown = await queue.get()
            self._room.release()
            if shown.events:
                yield shown.events
            if shown.ends:
                return
            if loop.time() - looked_at >= LOOK_EVERY_S:
                over = await sync_to_async(self._why_over)()
                if over is not None:
                    yield event("end", {"reason": over})
                    return
                looked_at = loop.time()
                # Writing this comment (`:`) notices a client that went away.
                yield b": still live\n\n"

    def _read_records(self, loop: asyncio.AbstractEventLoop, queue: asyncio.Queue[Shown]) -> None:
        reason = "time"
        try:
            watched = kafka.tail(
                self.access.computing_by(self._turn.compute),
                self.topic,
                positions=self.positions,
                stopped=self._left.is_set,
                seconds_max=SECONDS_MAX,
                pause_s=self._pause_s,
                filter=self.filter,
            )
            with contextlib.closing(watched):
                if not self._hand_batches_over(loop, queue, watched):
                    return
        except kafka.UnknownPartitionError:
            reason = "topic_gone"
        except kafka.UndecodableError:
            # What could not be decoded is still there, so the client must begin behind it.
            reason = "unreadable"
        except kafka.KafkaCallError:
            reason = "brokers_away"
        except Exception:
            # Whatever the error was, the client must get an `end`: otherwise it waits for ever.
            logger.exception("live_tail.failed")
            reason = "failed"
        self._hand_over(loop, queue, Shown(event("end", {"reason": reason}), ends=True))

    def _pause_s(self, batch: kafka.TailBatch) -> float:
        return _shares.pay(
            self.actor.organization_id, records=batch.records_read, size=batch.bytes_read
        )

    def _hand_batches_over(
        self,
        loop: asyncio.AbstractEventLoop,
        queue: asyncio.Queue[Shown],
        batches: Iterable[kafka.TailBatch],
    ) -> bool:
        """Hands over what each batch shows, written here and not in the event loop, for which
        others wait. Returns False once the client has left.
        """
        progress = None if self.filter is None else StreamProgress()
        live = False
        for batch in batches:
            # Only now the positions are known, so that records written from now on are shown.
            events = [] if live else [event("live", {}, batch.positions)]
            live = True
            if batch.records:
                with self._turn.compute():
                    events += events_of(batch)
            else:
                events += events_of(batch)
            if progress is not None:
                events += progress.events(batch)
            self._read.add(batch)
            if not self._hand_over(loop, queue, Shown(b"".join(events))):
                return False
        return True

    def _hand_over(
        self,
        loop: asyncio.AbstractEventLoop,
        queue: asyncio.Queue[Shown],
        shown: Shown,
    ) -> bool:
        """Puts a part into the queue, waiting for the client to read; False once it has left."""
        while not self._room.acquire(timeout=0.2):
            if self._left.is_set():
                return False
        try:
            loop.call_soon_threadsafe(queue.put_nowait, shown)
        except RuntimeError:
            return False  # the loop is closed
        return not self._left.is_set()

    def _why_over(self) -> str | None:
        """Why the tail must not go on; None if it may."""
        try:
            self._note_read()
            actor = renew_actor(self.actor)
            if actor is None or not self._readable(actor):
                return "access_ended"
            return None if self._are_brokers_same() else "brokers_changed"
        finally:
            close_old_connections()

    def _readable(self, actor: Actor) -> bool:
        """Whether the actor may still read the cluster's records, in the project of today."""
        with organization_scope(actor.organization_id):
            clusters = Cluster.objects.readable(actor).active().filter(pk=self.cluster.pk)
            project_id = clusters.values_list("project_id", flat=True).first()
        return project_id is not None and actor.may(Permission.DATA_READ, project_id)

    def _are_brokers_same(self) -> bool:
        """Whether the brokers that the tail reads from are still those of the cluster."""
        observation = observe_cluster(self.cluster)
        if not is_serving(observation) or observation.cell is None:
            return False
        brokers = ",".join(broker.kafka for broker in observation.cell.brokers)
        return brokers == self.access.connection.bootstrap


@dataclass
class StreamProgress:
    """Counts the records that a filter looked at; an event after every fourth batch says so.

    Batches come about four times a second.
    """

    records: int = 0
    scanned_bytes: int = 0
    _batches: int = 0

    def events(self, batch: kafka.TailBatch) -> list[bytes]:
        """The event `progress` after every fourth batch, otherwise nothing.

        Its id lets a later stream go on behind the batch.
        """
        self.records += batch.records_read
        self.scanned_bytes += batch.bytes_read
        self._batches += 1
        if self._batches % PROGRESS_EVERY_BATCHES:
            return []
        counts: dict[str, object] = {"records": self.records, "bytes": self.scanned_bytes}
        return [event("progress", counts, batch.positions)]


def events_of(batch: kafka.TailBatch) -> list[bytes]:
    """The events of a batch: its records, damaged batches, then how many records were skipped.

    The id of an event holds the positions behind its record.
    """
    positions = dict(batch.positions)
    for record in reversed(batch.records):
        positions[record["partition"]] = min(
            positions.get(record["partition"], record["offset"]), record["offset"]
        )
    shown = []
    for record in batch.records:
        positions[record["partition"]] = record["offset"] + 1
        shown.append(event("message", shown_record(record), positions))
    shown += [event("damaged", shown_damage(damaged), batch.positions) for damaged in batch.damaged]
    if batch.skipped:
        shown.append(event("skipped", {"count": batch.skipped}, batch.positions))
    return shown


def event(kind: str, data: dict[str, object], positions: dict[int, int] | None = None) -> bytes:
    """One Server-Sent Event. JSON has no raw line breaks, so `data` is one line."""
    name = "" if positions is None else f"id: {write_id(positions)}\n"
    return f"{name}event: {kind}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


def write_id(positions: dict[int, int]) -> str:
    """An event's id: partition → next offset, as base64 of JSON."""
    text = json.dumps({str(n): at for n, at in positions.items()}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def positions_of(last_event_id: str | None) -> dict[int, int] | None:
    """The positions in a `Last-Event-ID`; None where it has none, so the tail begins at the end."""
    if not last_event_id:
        return None
    try:
        padded = last_event_id + "=" * (-len(last_event_id) % 4)
        decoded = json.loads(base64.urlsafe_b64decode(padded))
        return {int(number): int(offset) for number, offset in decoded.items()}
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
