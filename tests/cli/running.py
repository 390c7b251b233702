"""Runs command lines in this process and captures what they print."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from django.test import Client as DjangoClient

from console.programs.cli import app
from console.programs.cli.session import Session
from console.programs.cli.transport import Lost, Reply, Request
from tests.console.clients import content_of, path_info

URL = "http://localhost:8080"


@dataclass(frozen=True)
class CommandResult:
    """What a command line printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401
        """The output, decoded."""
        return json.loads(self.out)

    def rows(self) -> list[list[str]]:
        """Returns the words of each line of a table, without its heading."""
        return [line.split() for line in self.out.splitlines()[1:]]


class Terminal(io.TextIOWrapper):
    """A standard input that is a terminal."""

    def isatty(self) -> bool:
        """Returns True: it is a terminal."""
        return True


def run_freshet(
    session: Session, *arguments: str, stdin_text: str = "", terminal: bool = False
) -> CommandResult:
    """Runs a command line with `stdin_text` as its standard input."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    make = Terminal if terminal else io.TextIOWrapper
    stdin = make(io.BytesIO(stdin_text.encode()), "utf-8")
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "stdin", stdin),
    ):
        code = app.run_command_line(list(arguments), session)
        out.flush()
        err.flush()
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]
    return CommandResult(code, *texts)


@dataclass
class WholeReply:
    """An answer whose whole body is known; implements `Reply`."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    def read(self) -> bytes:
        """Returns the body."""
        return self.content

    def chunks(self) -> Iterator[bytes]:
        """Yields the body in parts of 7 bytes, as a network may deliver it."""
        for begin in range(0, len(self.content), 7):
            yield self.content[begin : begin + 7]


@dataclass
class DjangoTransport:
    """Sends requests to the service in this process; implements `Transport`."""

    requests: list[Request] = field(default_factory=list)
    client: DjangoClient = field(
        default_factory=lambda: DjangoClient(raise_request_exception=False)
    )

    @contextlib.contextmanager
    def open(self, request: Request) -> Iterator[Reply]:
        """Sends a request to the service."""
        self.requests.append(request)
        stdin_text = {key: value for key, value in request.headers.items() if key != "Cookie"}
        self.client.cookies.clear()
        self.client.cookies.load(request.headers.get("Cookie", ""))
        kind = stdin_text.pop("Content-Type", "application/json")
        response = self.client.generic(
            request.method,
            request.target,
            request.body or b"",
            content_type=kind,
            headers=stdin_text,
            PATH_INFO=path_info(request.target),
        )
        headers = {name.lower(): value for name, value in response.items()}
        headers["set-cookie"] = "\n".join(
            morsel.OutputString() for morsel in response.cookies.values()
        )
        yield WholeReply(response.status_code, headers, content_of(response))

    def close(self) -> None:
        """Does nothing: there are no connections."""


@dataclass
class ScriptedTransport:
    """Gives scripted answers one after the other; an exception among them is raised."""

    answers: list[WholeReply | BaseException]
    requests: list[Request] = field(default_factory=list)

    @contextlib.contextmanager
    def open(self, request: Request) -> Iterator[Reply]:
        """Gives the next scripted answer."""
        self.requests.append(request)
        json_reply = self.answers.pop(0)
        if isinstance(json_reply, BaseException):
            raise json_reply
        yield json_reply

    def close(self) -> None:
        """Does nothing: there are no connections."""


def json_reply(status: int, content: object = None, **headers: str) -> WholeReply:
    """Returns an answer with a JSON body. `headers`: `_` in a name stands for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return WholeReply(status, named, b"" if content is None else json.dumps(content).encode())


LOST = Lost("Connection reset by peer")
