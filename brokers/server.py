"""One broker as a process: started, watched, stopped on request.

Everything that waits is in the extension. Here one thread waits for the broker's end while the main
thread waits for signals, so that an idle broker uses no processor time in Python.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import tomllib
from pathlib import Path

from brokers import _core
from brokers.errors import BrokerError, StorageError
from brokers.probe.alone import UnfitError, probe_alone

EXIT_STOPPED = 0
EXIT_NOT_STARTED = 1
# The broker stood down. Its supervisor starts it again, and that start is a takeover.
EXIT_STOOD_DOWN = 3

# Longer than the engine's own limit on a clean stop.
STOP_SECONDS = 25.0
FOR_EVER = 1e9

STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT}
# From the watching thread to the main thread.
ENDED = signal.SIGUSR1


class Watched:
    """A broker that a thread starts and watches. `outcome` says for people how it ended."""

    def __init__(self, settings: str) -> None:
        self.settings = settings
        self.process = _core.BrokerProcess(settings)
        self.outcome = ""
        self.status = EXIT_STOPPED
        self.started = threading.Event()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def _run(self) -> None:
        try:
            check_folder(self.settings)
            self.process.start()
            self.started.set()
            say_ready(self.process)
            reason = self.process.ended(FOR_EVER)
            self.status, self.outcome = EXIT_STOOD_DOWN, f"stood down: {reason}"
        except BrokerError as error:
            self.status, self.outcome = EXIT_NOT_STARTED, str(error)
        if not self.stopping.is_set():
            os.kill(os.getpid(), ENDED)

    def stop(self) -> None:
        """Stops cleanly. A broker that has not started yet is dropped: it acknowledged nothing."""
        self.stopping.set()
        if self.started.is_set():
            self.process.stop(STOP_SECONDS)


def serve_broker(settings: str) -> int:
    """Runs a broker with these settings (TOML) until SIGTERM, SIGINT or its end.

    Prints one line, `ready bootstrap=<host:port> metrics=<host:port> link=<host:port>`, once it
    serves; `-` stands for a listener that is off. Returns the status to exit with: 0 after a clean
    stop, 1 where it did not start, 3 where it stood down.
    """
    # Blocked before any thread starts, so that no other thread is interrupted by them.
    signal.pthread_sigmask(signal.SIG_BLOCK, {*STOP_SIGNALS, ENDED})
    _core.start_logs(settings)
    watched = Watched(settings)
    watched.thread.start()
    received = signal.sigwait({*STOP_SIGNALS, ENDED})
    while received == ENDED and not watched.outcome:  # somebody else's signal
        received = signal.sigwait({*STOP_SIGNALS, ENDED})
    if received == ENDED:
        # The threads that wait for storage may do so for ever: they are not waited for.
        watched.process.kill()
        sys.stderr.write(f"{watched.outcome}\n")
        return watched.status
    # A second request ends the process at once; the next start takes over.
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    watched.stop()
    return EXIT_STOPPED


def check_folder(settings: str) -> None:
    """Raises `StorageError` where the folder for lanes breaks a promise of a file system."""
    storage = tomllib.loads(settings)["storage"]
    folder = Path(storage["dfs"], storage["cluster"])
    try:
        probe_alone(folder)
    except UnfitError as error:
        message = f"storage.dfs {folder} is not fit for lanes: {error} (see freshet-probe)"
        raise StorageError(message) from error


def say_ready(process: _core.BrokerProcess) -> None:
    """Writes the ready line for the supervisor to standard output."""
    metrics, link = process.metrics_address or "-", process.link_address or "-"
    line = f"ready bootstrap={process.bootstrap} metrics={metrics} link={link}\n"
    # A supervisor that has closed the pipe is no reason to stop serving.
    with contextlib.suppress(OSError):
        os.write(1, line.encode())
