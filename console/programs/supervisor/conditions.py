"""The conditions that say that a child is up. One is checked again and again until it holds."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

ASK_TIMEOUT_S = 2.0


class Condition(Protocol):
    """A condition that holds once a child is up."""

    @property
    def sentence(self) -> str:
        """What the child did not do yet, as words that follow `did not`."""

    async def holds(self, lines: list[str]) -> bool:
        """Returns whether the condition holds. `lines`: what the child printed since its start."""


@dataclass(frozen=True)
class Says:
    """The child printed a line that matches the pattern."""

    pattern: re.Pattern[str]

    @property
    def sentence(self) -> str:
        """See Condition."""
        return "say that it is ready"

    async def holds(self, lines: list[str]) -> bool:
        """See Condition."""
        return any(self.pattern.search(line) for line in lines)


@dataclass(frozen=True)
class AnswersHttp:
    """A GET of a path on a port of the loopback is answered with status 200."""

    port: int
    path: str

    @property
    def sentence(self) -> str:
        """See Condition."""
        return f"answer GET {self.path} on port {self.port}"

    async def holds(self, lines: list[str]) -> bool:
        """See Condition."""
        request = f"GET {self.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        try:
            async with asyncio.timeout(ASK_TIMEOUT_S):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                try:
                    writer.write(request.encode())
                    status = await reader.readline()
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return False
        return status.split(b" ")[1:2] == [b"200"]


@dataclass(frozen=True)
class AnswersPing:
    """Redis answers PING on its Unix socket. While it still loads its file it answers an error."""

    socket: Path

    @property
    def sentence(self) -> str:
        """See Condition."""
        return f"answer on {self.socket}"

    async def holds(self, lines: list[str]) -> bool:
        """See Condition."""
        try:
            async with asyncio.timeout(ASK_TIMEOUT_S):
                reader, writer = await asyncio.open_unix_connection(str(self.socket))
                try:
                    writer.write(b"PING\r\n")
                    answer = await reader.readline()
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return False
        return answer.startswith(b"+PONG")
