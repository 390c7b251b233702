"""The outside of a broker, for the driver's tests: `fake_broker.py <settings file>`.

`[fake]` says how it behaves: `status` it exits with before it serves, for the first `times` starts;
`silent` never serves; `stubborn` only makes a file `asked` at SIGTERM; `brief` stands down as soon
as it served; `log` is what it logs at its start. Each start adds a line to `starts`.
"""

from __future__ import annotations

import signal
import sys
import tomllib
from pathlib import Path


def main(path: str) -> int:
    """Behaves as it is told."""
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
