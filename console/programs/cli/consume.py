"""`consume`: records through the REST interface, live by Server-Sent Events."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import click

from console.programs.cli import options, output
from console.programs.cli.errors import (
    NOT_ALLOWED,
    NOT_FOUND,
    UNAVAILABLE,
    CommandError,
    Unreachable,
)
from console.programs.cli.fields import Moment
from console.programs.cli.produce import messages_path, topic_argument, wake_option
from console.programs.cli.session import Session, pass_session
from console.programs.cli.transport import Lost

PAGE_RECORDS = 500
SCAN_BYTES_MIN = 1024
# Streams that fail one after the other, without a word between them, before it is given up.
FAILURES_MAX = 6
# Reasons for which the service ends a stream, after which asking again makes no sense.
ENDS = {
    "access_ended": ("The API key may not read this any more.", NOT_ALLOWED),
    "topic_gone": ("The topic, or a partition of it, is gone.", NOT_FOUND),
    "unreadable": ("A record of the topic cannot be decoded by the service.", UNAVAILABLE),
}


@dataclass
class Consumer:
    """One `consume`: what it prints, and how far it has come."""

    session: Session
    path: str
    filter: str | None
    partition: int | None
    wake: bool
    max: int | None
    # None: values alone; keys; long.
    style: str | None = None
    # Where each partition goes on.
    positions: dict[int, int] = field(default_factory=dict)
    printed: int = 0
    _truncated: bool = False

    def query(self, **more: object) -> dict[str, object]:
        """Parameters of a page or a stream."""
        return {"filter": self.filter, "wake": True if self.wake else None, **more}

    @property
    def done(self) -> bool:
        """Whether as many were printed as were wanted."""
        return self.max is not None and self.printed >= self.max

    def read_forward(self, **start: object) -> None:
        """Prints what there is from a beginning on to the end."""
        cursor: str | None = None
        while not self.done:
            left = PAGE_RECORDS if self.max is None else min(PAGE_RECORDS, self.max - self.printed)
            query = self.query(partition=self.partition, limit=left, cursor=cursor, **start)
            page = self.session.client.call("GET", self.path, query=query).json()
            for record in page["items"]:
                self.print(record)
            for partition in page["scanned"]["partitions"]:
                self.positions[partition["partition"]] = partition["position"]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def read_last(self, count: int) -> None:
        """Prints the newest ones, the oldest of them first."""
        query = self.query(partition=self.partition, **{"from": "newest"})
        found: list[dict[str, Any]] = []
        while len(found) < count:
            query["limit"] = min(PAGE_RECORDS, count - len(found))
            page = self.session.client.call("GET", self.path, query=query).json()
            found += page["items"]
            for partition in page["scanned"]["partitions"]:
                self.positions.setdefault(partition["partition"], partition["end"])
            query["cursor"] = page["next_cursor"]
            if query["cursor"] is None:
                break
        for record in reversed(found):
            self.print(record)

    def find_end(self) -> None:
        """Begins where the topic ends now: a stream that is lost misses nothing since."""
        query = {"from": "newest", "limit": 1, "scan_bytes_max": SCAN_BYTES_MIN}
        query |= {"wake": True} if self.wake else {}
        page = self.session.client.call("GET", self.path, query=query).json()
        for partition in page["scanned"]["partitions"]:
            self.positions[partition["partition"]] = partition["end"]

    def follow(self) -> None:
        """Prints what arrives, over one stream after the other, until enough was printed."""
        failures = 0
        while not self.done:
            try:
                heard = self._one_stream()
            except Lost as lost:
                heard, reason = False, str(lost)
            else:
                reason = "its live tails end at once"
            failures = 0 if heard else failures + 1
            if failures >= FAILURES_MAX:
                raise Unreachable(f"Freshet does not answer: {reason}.")
            if not self.done and failures:
                self.session.pause(min(0.2 * 2**failures, 5.0))

    def _one_stream(self) -> bool:
        """Whether anything came over it. Raises `Lost`, CommandError."""
        headers = {"Last-Event-ID": event_id(self.positions), "Accept": "text/event-stream"}
        heard = False
        try:
            with self.session.client.stream(
                f"{self.path}/stream", query=self.query(), headers=headers
            ) as reply:
                for kind, data in events(reply.chunks()):
                    if kind == "end":
                        _over(data["reason"])
                        return heard
                    heard = True
                    self._take(kind, data)
                    if self.done:
                        return heard
        except CommandError as error:
            # Its brokers are being replaced: they will be back.
            if error.code != UNAVAILABLE:
                raise
            raise Lost(error.message) from error
        return heard

    def _take(self, kind: str, data: dict[str, Any]) -> None:
        if kind == "message":
            self.positions[data["partition"]] = data["offset"] + 1
            if self.partition in {None, data["partition"]}:
                self.print(data)
        elif kind == "skipped":
            self.session.note(f"{data['count']} records were skipped: they come too fast.")

    def print(self, record: dict[str, Any]) -> None:
        """Prints a record, in the style that was asked for."""
        if self.done:
            return
        self.printed += 1
        if self.session.as_json:
            self.session.print_json(record, indent=None)
            sys.stdout.flush()
            return
        words = [_shown(record["value"])]
        if self.style in {"keys", "long"}:
            words.insert(0, _shown(record["key"]))
        if self.style == "long":
            words[:0] = [f"{record['partition']}:{record['offset']}", _time(record["timestamp_ms"])]
        text = "\t".join(words)
        output.write(output.safe(text) if sys.stdout.isatty() else text)
        sys.stdout.flush()
        if (record["value"] or {}).get("truncated") and not self._truncated:
            self._truncated = True
            self.session.note("Of values that are longer, the first 64 KiB are shown.")


def _shown(content: dict[str, Any] | None) -> str:
    """A key or a value: its text, or base64 of what is none; null as `-`."""
    if content is None:
        return "-"
    return str(content["base64"] if content["text"] is None else content["text"])


def _time(timestamp_ms: int | None) -> str:
    if timestamp_ms is None:
        return "-"
    try:
        when = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):  # the producer's own, it may be anything
        return str(timestamp_ms)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _over(reason: str) -> None:
    """Raises CommandError where a stream's end is the end of it all."""
    if reason in ENDS:
        message, code = ENDS[reason]
        raise CommandError(message, code=code)


def event_id(positions: dict[int, int]) -> str:
    """Positions as the id of an event that the next stream goes on behind
    (`provisioning/administration/api/streams.py`)."""
    text = json.dumps({str(n): at for n, at in positions.items()}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def events(chunks: Iterator[bytes]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Kind and data of Server-Sent Events (WHATWG HTML, section 9.2), as this service sends them:
    the data is one line of JSON."""
    kind, left = "message", b""
    for chunk in chunks:
        *lines, left = (left + chunk).split(b"\n")
        for line in lines:
            name, _, value = line.rstrip(b"\r").partition(b":")
            if name == b"event":
                kind = value.strip().decode()
            elif name == b"data":
                yield kind, json.loads(value)
            elif not line.strip():
                kind = "message"


@pass_session
def consume(
    session: Session, /, topic: str, cluster: str | None, *, follow: bool, **given: Any
) -> None:
    """Read records. Without a place to begin: those that arrive from now on, until Ctrl-C.

    With one it reads to the end and stops there, or goes on with --follow. It commits nothing and
    joins no group, and is not billed.
    """
    starts = {name: given.pop(name) for name in ("from_beginning", "from_offset", "since", "last")}
    chosen = [(name, value) for name, value in starts.items() if value not in {None, False}]
    if len(chosen) > 1:
        raise CommandError("Only one place to begin can be chosen.")
    consumer = Consumer(session, messages_path(session, cluster, topic), **given)
    match chosen:
        case [("from_beginning", _)]:
            consumer.read_forward(**{"from": "oldest"})
        case [("from_offset", offset)]:
            consumer.read_forward(**{"from": "offset", "offset": offset})
        case [("since", when)]:
            consumer.read_forward(**{"from": "timestamp", "timestamp": when})
        case [("last", count)]:
            consumer.read_last(count)
        case _:
            consumer.find_end()
    if follow or not chosen:
        consumer.follow()


def consume_command() -> click.Command:
    """`freshet consume`."""
    count = click.IntRange(min=1)
    parameters: list[click.Parameter] = [
        topic_argument(),
        click.Option(["--from-beginning", "-b"], is_flag=True, help="Begin with the oldest."),
        click.Option(
            ["--from-offset"], type=click.IntRange(min=0), help="Begin there in each partition."
        ),
        click.Option(
            ["--since"], type=Moment(), metavar="TIME", help="Begin with those of this time: -1h."
        ),
        click.Option(["--last"], type=count, help="Begin with the newest so many."),
        click.Option(["--follow"], is_flag=True, help="Go on with those that arrive."),
        click.Option(["--max", "-n"], type=count, help="Stop after so many."),
        click.Option(["--partition"], type=click.IntRange(min=0), help="Only of this partition."),
        click.Option(
            ["--filter"],
            help="A text in key, value or headers, or an expression such as 'value.total > 100'.",
        ),
        click.Option(["--keys", "style"], flag_value="keys", help="Print keys before values."),
        click.Option(
            ["--long", "style"], flag_value="long", help="Print partition, offset and time too."
        ),
        wake_option(),
        options.cluster(),
        *options.common(),
    ]
    return click.Command("consume", callback=consume, params=parameters, help=consume.__doc__)
