"""`freshet consume`: reads records through the REST interface, live ones by Server-Sent Events."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import click

from console.programs.cli import answers, options, output
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
# How many streams may fail in a row, without an event between them, before the command gives up.
FAILURES_MAX = 6
# The reasons for which the service ends a stream for good. After any other a new one is opened.
ENDS = {
    "access_ended": ("The API key may not read this any more.", NOT_ALLOWED),
    "topic_gone": ("The topic, or a partition of it, is gone.", NOT_FOUND),
    "unreadable": ("A record of the topic cannot be decoded by the service.", UNAVAILABLE),
}


@dataclass
class Consumer:
    """One run of `consume`: what it prints, and how far it has read."""

    session: Session
    path: str
    filter: str | None
    partition: int | None
    wake: bool
    max: int | None
    # None: print values; `keys`: keys and values; `long`: partition, offset and time as well.
    style: str | None = None
    # The offset at which each partition goes on.
    positions: dict[int, int] = field(default_factory=dict)
    printed: int = 0
    _truncated: bool = False

    def query(self, **more: object) -> dict[str, object]:
        """Returns the query parameters of a page or a stream, with `more`."""
        return {"filter": self.filter, "wake": True if self.wake else None, **more}

    @property
    def done(self) -> bool:
        """Whether as many records were printed as `max` asks for."""
        return self.max is not None and self.printed >= self.max

    def read_forward(self, **start: object) -> None:
        """Prints the records from a beginning to the end of the topic."""
        cursor: str | None = None
        while not self.done:
            limit = PAGE_RECORDS if self.max is None else min(PAGE_RECORDS, self.max - self.printed)
            query = self.query(partition=self.partition, limit=limit, cursor=cursor, **start)
            page = self.session.client.call("GET", self.path, query=query).json()
            for record in page["items"]:
                self.print_record(record)
            self.print_damage(page.get("damaged", []))
            for partition in page["scanned"]["partitions"]:
                self.positions[partition["partition"]] = int(partition["position"])
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def read_last(self, count: int) -> None:
        """Prints the newest `count` records, the oldest of them first."""
        query = self.query(partition=self.partition, **{"from": "newest"})
        records: list[dict[str, Any]] = []
        while len(records) < count:
            query["limit"] = min(PAGE_RECORDS, count - len(records))
            page = self.session.client.call("GET", self.path, query=query).json()
            records += page["items"]
            self.print_damage(page.get("damaged", []))
            for partition in page["scanned"]["partitions"]:
                self.positions.setdefault(partition["partition"], int(partition["end"]))
            query["cursor"] = page["next_cursor"]
            if query["cursor"] is None:
                break
        for record in reversed(records):
            self.print_record(record)

    def find_end(self) -> None:
        """Sets the positions to the present end of the topic.

        Every stream begins at them, so no record is missed where a stream is lost.
        """
        query = {"from": "newest", "limit": 1, "scan_bytes_max": SCAN_BYTES_MIN}
        query |= {"wake": True} if self.wake else {}
        page = self.session.client.call("GET", self.path, query=query).json()
        for partition in page["scanned"]["partitions"]:
            self.positions[partition["partition"]] = int(partition["end"])

    def follow(self) -> None:
        """Prints records as they arrive, over one stream after another, until `max` are printed."""
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
        """Prints the records of one stream; returns whether any event came over it.

        Raises `Lost` where it is lost or the brokers are being replaced, `CommandError` where
        reading cannot go on.
        """
        headers = {"Last-Event-ID": event_id(self.positions), "Accept": "text/event-stream"}
        heard = False
        try:
            with self.session.client.stream(
                f"{self.path}/stream", query=self.query(), headers=headers
            ) as reply:
                for kind, data in parse_events(reply.chunks()):
                    if kind == "end":
                        _raise_if_over(data["reason"])
                        return heard
                    heard = True
                    self._handle_event(kind, data)
                    if self.done:
                        return heard
        except CommandError as error:
            # The cluster's brokers are being replaced, and will serve again soon.
            if error.code != UNAVAILABLE:
                raise
            raise Lost(error.message) from error
        return heard

    def _handle_event(self, kind: str, data: dict[str, Any]) -> None:
        if kind == "message":
            self.positions[data["partition"]] = int(data["offset"]) + 1
            if self.partition in {None, data["partition"]}:
                self.print_record(data)
        elif kind == "damaged":
            self.positions[data["partition"]] = int(data["next_offset"])
            if self.partition in {None, data["partition"]}:
                self.print_damage([data])
        elif kind == "skipped":
            self.session.note(f"{data['count']} records were skipped, as they arrive too fast.")

    @staticmethod
    def print_damage(damaged: Iterable[dict[str, Any]]) -> None:
        """Says which batches were skipped, also where the output is JSON: it lacks them."""
        for batch in damaged:
            output.print_note(answers.damage_text(batch))

    def print_record(self, record: dict[str, Any]) -> None:
        """Prints a record in the style `style`, unless enough records were printed."""
        if self.done:
            return
        self.printed += 1
        if self.session.as_json:
            self.session.print_json(record, indent=None)
            sys.stdout.flush()
            return
        words = [_content_text(record["value"])]
        if self.style in {"keys", "long"}:
            words.insert(0, _content_text(record["key"]))
        if self.style == "long":
            words[:0] = [
                f"{record['partition']}:{record['offset']}",
                _time_text(record["timestamp_ms"]),
            ]
        text = "\t".join(words)
        output.print_line(output.escape_controls(text) if sys.stdout.isatty() else text)
        sys.stdout.flush()
        printed = ("value",) if self.style is None else ("key", "value")
        if not self._truncated and any((record[part] or {}).get("truncated") for part in printed):
            self._truncated = True
            self.session.note("Of longer keys and values only the first 64 KiB are shown.")


def _content_text(content: dict[str, Any] | None) -> str:
    """Returns the text of a key or a value; base64 where it is no text; `-` for null."""
    if content is None:
        return "-"
    return str(content["base64"] if content["text"] is None else content["text"])


def _time_text(timestamp_ms: int | str | None) -> str:
    if timestamp_ms is None:
        return "-"
    try:
        when = datetime.fromtimestamp(int(timestamp_ms) / 1000, UTC)
    except (ValueError, OverflowError, OSError):  # the producer sets it, so it may be any number
        return str(timestamp_ms)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _raise_if_over(reason: str) -> None:
    """Raises `CommandError` where the service ended a stream for good."""
    if reason in ENDS:
        message, code = ENDS[reason]
        raise CommandError(message, code=code)


def event_id(positions: dict[int, int]) -> str:
    """Returns positions as an event id, after which the next stream goes on.

    `provisioning/administration/api/streams.py` reads it.
    """
    text = json.dumps({str(n): at for n, at in positions.items()}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def parse_events(chunks: Iterator[bytes]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the kind and the data of Server-Sent Events (WHATWG HTML, section 9.2).

    As this service sends them: the data of an event is one line of JSON.
    """
    kind, rest = "message", b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            name, _, value = line.rstrip(b"\r").partition(b":")
            if name == b"event":
                kind = value.strip().decode()
            elif name == b"data":
                yield kind, json.loads(value)
            elif not line.strip():
                kind = "message"


@pass_session
def consume_records(
    session: Session, /, topic: str, cluster: str | None, *, follow: bool, **given: Any
) -> None:
    """Read records: those that arrive from now on, until Ctrl-C, or from a place on.

    From a place on (--from-beginning, --from-offset, --since, --last) it reads to the end and stops
    there, or goes on with --follow. It commits nothing and joins no group. What is read of the log
    is billed as read, with what a filter leaves out.
    """
    starts = {name: given.pop(name) for name in ("from_beginning", "from_offset", "since", "last")}
    chosen = [(name, value) for name, value in starts.items() if value not in {None, False}]
    if len(chosen) > 1:
        raise CommandError(
            "Choose only one of --from-beginning, --from-offset, --since and --last."
        )
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
    """Returns `freshet consume`."""
    count = click.IntRange(min=1)
    parameters: list[click.Parameter] = [
        topic_argument(),
        click.Option(
            ["--from-beginning", "-b"], is_flag=True, help="Begin with the oldest record."
        ),
        click.Option(
            ["--from-offset"],
            type=click.IntRange(min=0),
            help="Begin at this offset in each partition.",
        ),
        click.Option(
            ["--since"],
            type=Moment(),
            metavar="TIME",
            help="Begin with records of this time, such as -1h.",
        ),
        click.Option(["--last"], type=count, help="Begin with the newest N records."),
        click.Option(["--follow"], is_flag=True, help="Go on with records that arrive."),
        click.Option(["--max", "-n"], type=count, help="Stop after N records."),
        click.Option(
            ["--partition"], type=click.IntRange(min=0), help="Only records of this partition."
        ),
        click.Option(
            ["--filter"],
            help="A text in key, value or headers, or an expression such as 'value.total > 100'.",
        ),
        click.Option(["--keys", "style"], flag_value="keys", help="Print keys before values."),
        click.Option(
            ["--long", "style"], flag_value="long", help="Print partition, offset and time too."
        ),
        wake_option(),
        options.cluster_option(),
        *options.common_options(),
    ]
    return click.Command(
        "consume", callback=consume_records, params=parameters, help=consume_records.__doc__
    )
