"""A stand-in for a broker in tests of the local driver: `fake_broker.py <settings file>`.

The section `[fake]` says how it behaves. With `status` it exits with this status before it serves,
at the first `times` starts. With `silent` it never serves. With `stubborn` it ignores SIGTERM, but
for creating a file `asked`. With `brief` it stands down as soon as it has served. It writes `log`
to its log at its start. Each start adds a line to the file `starts`.
"""

from __future__ import annotations

import signal
import sys
import tomllib
from pathlib import Path


def main(path: str) -> int:
    """Behaves as the settings file says, and returns the exit status."""
    fake = tomllib.loads(Path(path).read_text())["fake"]
    starts = Path(fake["starts"])
    with starts.open("a") as file:
        file.write("started\n")
    if fake.get("stubborn"):
        signal.signal(signal.SIGTERM, lambda *_: starts.with_name("asked").touch())
    else:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    sys.stderr.write(fake.get("log", ""))
    sys.stderr.flush()
    if "status" in fake and len(starts.read_text().splitlines()) <= fake.get("times", 1_000_000):
        sys.stderr.write("this is why\n")
        return int(fake["status"])
    if not fake.get("silent"):
        sys.stdout.write("ready bootstrap=127.0.0.1:1 metrics=- link=127.0.0.1:3\n")
        sys.stdout.flush()
    while not fake.get("brief"):
        signal.pause()
    return 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[-1]))
