"""`python -m console.programs.web`: serves the REST interface and the console until it is ended."""

from __future__ import annotations

import argparse
import ctypes
import sys
from importlib import import_module

import uvicorn

from console.programs.web.server import BoundedServer, connections_max, listen
from console.settings.config import load_config

# The connections that the kernel keeps until they are accepted.
BACKLOG = 2048
GRACEFUL_S = 5
# glibc's option for how many heaps threads share (`mallopt(3)`).
M_ARENA_MAX = -8


def main(arguments: list[str] | None = None) -> int:
    """Serves until SIGINT or SIGTERM; returns the exit status."""
    share_one_heap()
    config = load_config()
    parser = argparse.ArgumentParser(prog="console.programs.web")
    parser.add_argument("--host", default=config.web.bind, help="the address to listen on")
    parser.add_argument("--port", type=int, default=config.web.port, help="its port")
    parser.add_argument(
        "--timeout-graceful-shutdown",
        type=int,
        default=GRACEFUL_S,
        help="seconds that requests which are under way have at the end",
    )
    options = parser.parse_args(arguments)
    # All of it is imported before the first connection is accepted.
    import_module("console.asgi")
    listeners = listen(options.host, options.port, BACKLOG)
    server = BoundedServer(
        uvicorn_config(options.timeout_graceful_shutdown),
        listeners,
        most=connections_max(config.web.connections_max),
        # Behind a proxy all connections are the proxy's, which bounds those of its clients.
        of_network_max=(
            None if config.web.behind_proxy else config.limits.web_connections_per_address
        ),
    )
    server.run()
    return 0


def share_one_heap() -> None:
    """Has all threads allocate from one heap, where the C library is glibc.

    Each would otherwise get one of up to eight for each core, which keep what large answers took.
    Threads of Python run one at a time, so that they do not wait for each other there.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_ARENA_MAX, 1)


def uvicorn_config(graceful_s: int) -> uvicorn.Config:
    """Returns uvicorn's own settings."""
    return uvicorn.Config(
        "console.asgi:application",
        # Whether forwarded addresses count is decided by `web.behind_proxy`, not by uvicorn.
        proxy_headers=False,
        lifespan="off",
        http="h11",
        ws="none",
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=graceful_s,
    )


if __name__ == "__main__":
    sys.exit(main())
