"""Command lines, run with what they print caught."""

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
class Said:
    """What a command line printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401
        """The output, decoded."""
        return json.loads(self.out)

    def rows(self) -> list[list[str]]:
        """The words of each line of a table, without its heading."""
        return [line.split() for line in self.out.splitlines()[1:]]


class Terminal(io.TextIOWrapper):
    """An input that somebody sits at."""

    def isatty(self) -> bool:
        """Somebody does."""
        return True


def run(session: Session, *arguments: str, given: str = "", terminal: bool = False) -> Said:
    """Runs a command line with `given` as its input."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    make = Terminal if terminal else io.TextIOWrapper
    stdin = make(io.BytesIO(given.encode()), "utf-8")
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "stdin", stdin),
    ):
        code = app.run(list(arguments), session)
        out.flush()
        err.flush()
    texts = [each.buffer.getvalue().decode() for each in (out, err)]
    return Said(code, *texts)


@dataclass
class Answered:
    """An answer that is there as a whole."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    def read(self) -> bytes:
        """All of it."""
        return self.content

    def chunks(self) -> Iterator[bytes]:
        """In small parts, as a network may deliver it."""
        for begin in range(0, len(self.content), 7):
            yield self.content[begin : begin + 7]


@dataclass
class DjangoTransport:
    """Requests to the service in this process."""

    requests: list[Request] = field(default_factory=list)
    client: DjangoClient = field(
        default_factory=lambda: DjangoClient(raise_request_exception=False)
    )

    @contextlib.contextmanager
    def open(self, request: Request) -> Iterator[Reply]:
        """Sends a request."""
        self.requests.append(request)
        given = {key: value for key, value in request.headers.items() if key != "Cookie"}
        self.client.cookies.clear()
        self.client.cookies.load(request.headers.get("Cookie", ""))
        kind = given.pop("Content-Type", "application/json")
        response = self.client.generic(
            request.method,
            request.target,
            request.body or b"",
            content_type=kind,
            headers=given,
            PATH_INFO=path_info(request.target),
        )
        headers = {name.lower(): value for name, value in response.items()}
        headers["set-cookie"] = "\n".join(
            morsel.OutputString() for morsel in response.cookies.values()
        )
        yield Answered(response.status_code, headers, content_of(response))

    def close(self) -> None:
        """Nothing is held."""


@dataclass
class ScriptedTransport:
    """Answers as it is told, one after the other: an answer, or an exception that is raised."""

    answers: list[Answered | BaseException]
    requests: list[Request] = field(default_factory=list)

    @contextlib.contextmanager
    def open(self, request: Request) -> Iterator[Reply]:
        """Gives the next answer."""
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        yield answer

    def close(self) -> None:
        """Nothing is held."""


def answer(status: int, content: object = None, **headers: str) -> Answered:
    """An answer with JSON."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answered(status, named, b"" if content is None else json.dumps(content).encode())


LOST = Lost("Connection reset by peer")
