"""The peer by hand: `python -m tests.peer fetch | start KIND | run CLASS ARGUMENT...`."""

from __future__ import annotations

import contextlib
import os
import signal
import sys

from spark_usage.jars import POM as S3A_POM
from tests.peer.jars import fetch_jars
from tests.peer.kafka import KINDS, Peer, java_command


def main(arguments: list[str]) -> int:
    """Runs the command of the first argument; returns the exit status."""
    match arguments:
        case ["fetch"]:
            print(f"Kafka's jars: {fetch_jars()}")
            print(f"Spark's jars for S3: {fetch_jars(S3A_POM)}")
        case ["start", kind] if kind in KINDS:
            with Peer(kind) as peer:
                print(f"{kind}: {peer.bootstrap} (Ctrl-C stops it)", flush=True)
                with contextlib.suppress(KeyboardInterrupt):
                    signal.pause()
        case ["run", main_class, *rest]:
            command = java_command(main_class, *rest, options=("-Xmx512m",))
            os.execvp(command[0], command)  # noqa: S606 -- Java takes our place on purpose
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
