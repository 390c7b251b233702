"""`produce`: records through the REST interface, one after the other."""

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
def produce(
    session: Session, /, topic: str, cluster: str | None, *, wake: bool, **given: Any
) -> None:
    """Produce records: --value, --file, or each line of the standard input.

    Each is durable before the next one is sent. For volume use a Kafka client.
    """
    path = messages_path(session, cluster, topic)
    headers = [{"key": name, "value": value} for name, value in given["header"]]
    chosen = {"partition": given["partition"], "key": given["key"], "headers": headers or None}
    common = {name: value for name, value in chosen.items() if value is not None}
    query = {"wake": True} if wake else {}
    produced = 0
    try:
        for each in _bodies(given["value"], given["file"], given["separator"]):
            body = {**common, **each}
            answer = session.client.call("POST", path, query=query, body=body).json()
            produced += 1
            if session.as_json:
                session.print_json(answer, indent=None)
            else:
                output.write(f"partition {answer['partition']} offset {answer['offset']}")
    finally:
        if produced != 1:
            session.note(f"{produced} records were produced.")


def _bodies(value: str | None, file: str | None, separator: str | None) -> Iterator[dict[str, Any]]:
    """Bodies of the records that the command line or its input names."""
    if value is not None:
        yield {"value": value}
    elif file is not None:
        try:
            yield {"value": written(Path(file).read_bytes())}
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror}.") from error
    else:
        for line in sys.stdin.buffer:
            content = line.rstrip(b"\n").removesuffix(b"\r")
            key, found, rest = content.partition(separator.encode() if separator else b"\0")
            if separator and not found:
                raise CommandError(f"A line has no {separator!r} in it: {content[:60]!r}.")
            yield (
                {"key": written(key), "value": written(rest)}
                if separator
                else {"value": written(content)}
            )


def written(content: bytes) -> str | dict[str, str]:
    """Bytes as the API takes them."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def messages_path(session: Session, cluster: str | None, topic: str) -> str:
    """The path of a topic's messages."""
    found = names.cluster_id(session, cluster)
    return f"/clusters/{segment(found)}/topics/{segment(topic)}/messages"


def topic_argument() -> click.Argument:
    """Which topic."""
    return names.argument(TOPICS, "topic", "TOPIC")


def wake_option() -> click.Option:
    """Whether a sleeping cluster is woken."""
    return click.Option(["--wake"], is_flag=True, help="Wake the cluster if it sleeps.")


def produce_command() -> click.Command:
    """`freshet produce`."""
    parameters: list[click.Parameter] = [
        topic_argument(),
        click.Option(["--value", "-v"], help="The value of one record."),
        click.Option(["--file", "-f"], metavar="FILE", help="A file: the value of one record."),
        click.Option(["--key", "-k"], help="The key of all of them."),
        click.Option(
            ["--separator", "-s"], help="What stands between key and value of each line of input."
        ),
        click.Option(
            ["--header"], type=Pair(), multiple=True, metavar="NAME=VALUE", help="A header."
        ),
        click.Option(["--partition"], type=click.IntRange(min=0), help="Else the key decides."),
        wake_option(),
        options.cluster(),
        *options.common(),
    ]
    return click.Command("produce", callback=produce, params=parameters, help=produce.__doc__)
