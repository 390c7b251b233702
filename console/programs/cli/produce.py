"""`freshet produce`: writes records through the REST interface, one after the other."""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from console.programs.cli import names, options, output
from console.programs.cli.client import segment
from console.programs.cli.errors import CommandError
from console.programs.cli.fields import Pair
from console.programs.cli.session import Session, pass_session

TOPICS = f"{names.IN_CLUSTER}/topics"


@pass_session
def produce_records(
    session: Session, /, topic: str, cluster: str | None, *, wake: bool, **values: Any
) -> None:
    """Produce records: --value, --file, or each line of the standard input.

    Each record is durable before the next one is sent. For many records use a Kafka client.
    """
    path = messages_path(session, cluster, topic)
    headers = [{"key": name, "value": value} for name, value in values["header"]]
    chosen = {"partition": values["partition"], "key": values["key"], "headers": headers or None}
    common = {name: value for name, value in chosen.items() if value is not None}
    query = {"wake": True} if wake else {}
    produced = 0
    try:
        for record in _read_bodies(values["value"], values["file"], values["separator"]):
            body = {**common, **record}
            answer = session.client.call("POST", path, query=query, body=body).json()
            produced += 1
            if session.as_json:
                session.print_json(answer, indent=None)
            else:
                output.print_line(f"partition {answer['partition']} offset {answer['offset']}")
    finally:
        if produced != 1:
            session.note(f"{produced} records were produced.")


def _read_bodies(
    value: str | None, file: str | None, separator: str | None
) -> Iterator[dict[str, Any]]:
    """Yields the request bodies of the records on the command line or the standard input.

    Raises `CommandError` where a file cannot be read, or a line has no separator.
    """
    if value is not None:
        yield {"value": value}
    elif file is not None:
        try:
            yield {"value": encode_content(Path(file).read_bytes())}
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror}.") from error
    else:
        for line in sys.stdin.buffer:
            content = line.rstrip(b"\n").removesuffix(b"\r")
            key, mark, rest = content.partition(separator.encode() if separator else b"\0")
            if separator and not mark:
                raise CommandError(f"A line lacks the separator {separator!r}: {content[:60]!r}.")
            yield (
                {"key": encode_content(key), "value": encode_content(rest)}
                if separator
                else {"value": encode_content(content)}
            )


def encode_content(content: bytes) -> str | dict[str, str]:
    """Returns bytes as the API takes them: as text where they are UTF-8, otherwise as base64."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def messages_path(session: Session, cluster: str | None, topic: str) -> str:
    """Returns the path of a topic's messages."""
    cluster_id = names.cluster_id(session, cluster)
    return f"/clusters/{segment(cluster_id)}/topics/{segment(topic)}/messages"


def topic_argument() -> click.Argument:
    """Returns the argument TOPIC."""
    return names.build_argument(TOPICS, "topic", "TOPIC")


def wake_option() -> click.Option:
    """Returns --wake."""
    return click.Option(["--wake"], is_flag=True, help="Wake the cluster if it sleeps.")


def produce_command() -> click.Command:
    """Returns `freshet produce`."""
    parameters: list[click.Parameter] = [
        topic_argument(),
        click.Option(["--value", "-v"], help="The value of one record."),
        click.Option(["--file", "-f"], metavar="FILE", help="A file: the value of one record."),
        click.Option(["--key", "-k"], help="The key of all records."),
        click.Option(
            ["--separator", "-s"], help="The text between key and value in each line of input."
        ),
        click.Option(
            ["--header"], type=Pair(), multiple=True, metavar="NAME=VALUE", help="A header."
        ),
        click.Option(
            ["--partition"],
            type=click.IntRange(min=0),
            help="The partition. Default: the key decides.",
        ),
        wake_option(),
        options.cluster_option(),
        *options.common_options(),
    ]
    return click.Command(
        "produce", callback=produce_records, params=parameters, help=produce_records.__doc__
    )
