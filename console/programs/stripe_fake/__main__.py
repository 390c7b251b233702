"""`python -m console.programs.stripe_fake`: serves the fake until a signal ends it."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path

from console.programs.stripe_fake.keys import PORT
from console.programs.stripe_fake.server import FakeServer


def main(arguments: list[str] | None = None) -> int:
    """Serves until SIGINT or SIGTERM; returns the exit status."""
    parser = argparse.ArgumentParser(prog="console.programs.stripe_fake")
    parser.add_argument("--port", type=int, default=PORT, help="a port of the loopback")
    parser.add_argument("--state", type=Path, help="the file that keeps everything")
    parser.add_argument("--webhook", help="the address that events are sent to")
    options = parser.parse_args(arguments)
    if options.state is not None:
        options.state.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    server = FakeServer(options.port, options.state, options.webhook)
    server.start()
    sys.stdout.write(f"ready on {server.base}\n")
    sys.stdout.flush()
    stop.wait()
    server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
