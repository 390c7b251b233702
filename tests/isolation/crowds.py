"""Many requests at a time, each in a thread with a connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from tests.supervisor.run import Run, wait_until

TIMEOUT_S = 90.0


class Crowd:
    """Threads that each call `ask` once with their number; `answers` has what they returned."""

    def __init__(self, size: int, ask: Callable[[int], Any]) -> None:
        self.answers: list[Any] = []
        self._failures: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._run, args=(ask, number), name=f"crowd-{number}")
            for number in range(size)
        ]

    def _run(self, ask: Callable[[int], Any], number: int) -> None:
        try:
            self.answers.append(ask(number))
        except BaseException as error:
            self._failures.append(error)

    def start(self) -> Crowd:
        """Begins."""
        for thread in self._threads:
            thread.start()
        return self

    @property
    def asking(self) -> int:
        """How many of them have no answer yet."""
        return sum(thread.is_alive() for thread in self._threads)

    def end(self) -> list[Any]:
        """Waits for all answers and returns them. Raises what one of them raised."""
        for thread in self._threads:
            thread.join(2 * TIMEOUT_S)
        assert not self.asking
        if self._failures:
            raise self._failures[0]
        return self.answers

    def statuses(self) -> list[int]:
        """The sorted statuses of the answers, after `end`."""
        return sorted(answer.status_code for answer in self.answers)


def client(service: Run, key: str = "", source: str = "127.0.0.1") -> httpx.Client:
    """A client of the service's API that comes from an address of the loopback."""
    return httpx.Client(
        base_url=f"{service.address}/api/v1",
        headers={"Authorization": f"Bearer {key}"} if key else {},
        timeout=TIMEOUT_S,
        transport=httpx.HTTPTransport(local_address=source),
    )


def used(http: httpx.Client, limit: str) -> int:
    """How much of a limit the client's organization uses at this moment."""
    items = http.get("/limits").json()["items"]
    count: int = next(item["used"] for item in items if item["name"] == limit)
    return count


def wait_until_used(http: httpx.Client, limit: str, at_least: int) -> None:
    """Waits until so much of a limit is used.

    It asks seldom: each look takes a turn from the requests of the same organization.
    """
    what = f"{at_least} of {limit} are used"
    wait_until(lambda: used(http, limit) >= at_least, what, pause_s=1)


@contextmanager
def looping(size: int, ask: Callable[[int], Any]) -> Iterator[list[Any]]:
    """Has threads call `ask` again and again for as long as the block lasts; gives the answers."""
    stopping = threading.Event()
    answers: list[Any] = []

    def ask_again(number: int) -> None:
        while not stopping.is_set():
            answers.append(ask(number))

    crowd = Crowd(size, ask_again).start()
    try:
        yield answers
    finally:
        stopping.set()
        crowd.end()
