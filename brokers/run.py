"""PID 1 of a pod: runs a broker, and starts it again when it ends.

The next incarnation begins milliseconds after an end, where a platform would take seconds to start
a container. This process runs `python -m brokers serve`, passes the request to stop on, and waits
for every child that it inherits. It gives up only where another start does not help: where the
settings are refused, or the broker stands down again and again. Then the platform starts this
process again, with longer and longer pauses.
"""

from __future__ import annotations

import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import IO

from brokers.backoff import Backoff, Ends

# Exit statuses of `python -m brokers serve`.
EXIT_USAGE = 2
EXIT_STOOD_DOWN = 3
# The pause after a broker stood down. Most likely the broker of the pod that replaces this one took
# over. Without the pause the two would fence each other for ever; within it this pod is stopped.
STOOD_DOWN_PAUSE_S = 3.0
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
READY = b"ready "
PIECE = 65_536


class Runner:
    """Runs one broker at a time, until a signal asks to stop."""

    def __init__(self, command: Sequence[str], backoff: Backoff | None = None) -> None:
        self._command = list(command)
        self._backoff = backoff or Backoff()
        self._ends = Ends()
        self._child: subprocess.Popen[bytes] | None = None
        self._served_at: float | None = None
        self._start_at = 0.0
        self._stopping = False
        self._status: int | None = None

    def run(self) -> int:
        """Runs until SIGTERM or SIGINT, or until it gives up; returns the status to exit with."""
        use_all_files()
        wakeups, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        for number in (*STOP_SIGNALS, signal.SIGCHLD):
            # The handler must be Python's, or the number would not reach the pipe.
            signal.signal(number, lambda _number, _frame: None)
        with selectors.DefaultSelector() as selector:
            selector.register(wakeups, selectors.EVENT_READ)
            while self._status is None:
                if self._child is None and time.monotonic() >= self._start_at:
                    self._start(selector)
                for key, _ in selector.select(self._pause_s()):
                    if key.fd == wakeups:
                        self._on_signals(os.read(wakeups, PIECE), selector)
                    else:
                        self._on_output(key.fd, selector)
        return self._status

    def _pause_s(self) -> float | None:
        return None if self._child else max(0.0, self._start_at - time.monotonic())

    def _start(self, selector: selectors.BaseSelector) -> None:
        self._served_at = None
        self._child = subprocess.Popen(self._command, stdout=subprocess.PIPE)
        selector.register(_output_of(self._child), selectors.EVENT_READ)

    def _on_output(self, pipe: int, selector: selectors.BaseSelector) -> None:
        """Passes on what the broker says; that it serves is the one thing that counts here."""
        piece = os.read(pipe, PIECE)
        if not piece:
            selector.unregister(pipe)
            return
        if self._served_at is None and READY in piece:
            self._served_at = time.monotonic()
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()

    def _on_signals(self, numbers: bytes, selector: selectors.BaseSelector) -> None:
        for number in numbers:
            if number in STOP_SIGNALS:
                self._stop()
        self._reap(selector)

    def _stop(self) -> None:
        self._stopping = True
        if self._child is None:
            self._status = 0
            return
        # A second request ends the broker at once: that is its own rule.
        self._child.send_signal(signal.SIGTERM)

    def _reap(self, selector: selectors.BaseSelector) -> None:
        """Waits for every child that has ended: PID 1 inherits those of other processes, too."""
        child = self._child
        while True:
            try:
                pid, wait_status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if child is not None and pid == child.pid:
                child.returncode = os.waitstatus_to_exitcode(wait_status)
                self._on_end(child, selector)
                child = None

    def _on_end(self, child: subprocess.Popen[bytes], selector: selectors.BaseSelector) -> None:
        with _output_of(child) as output:
            while output.fileno() in selector.get_map():
                self._on_output(output.fileno(), selector)
        self._child = None
        if self._stopping or child.returncode == EXIT_USAGE:
            # A broker that refuses its settings would refuse them again.
            self._status = max(child.returncode, 0)
            return
        now = time.monotonic()
        served_s = None if self._served_at is None else now - self._served_at
        stood_down = child.returncode == EXIT_STOOD_DOWN
        self._ends = self._backoff.after(self._ends, served_s, stood_down=stood_down)
        if stood_down and self._backoff.stands_down_repeatedly(self._ends):
            self._status = EXIT_STOOD_DOWN
            sys.stderr.write(
                f"the broker stood down {self._ends.stood_down} times in a row, and is given up\n"
            )
            return
        pause_s = self._backoff.pause_s(self._ends)
        if stood_down:
            pause_s = max(pause_s, STOOD_DOWN_PAUSE_S)
        self._start_at = now + pause_s
        sys.stderr.write(
            f"the broker ended ({child.returncode}); it is started again in {pause_s:.1f} s\n"
        )


def _output_of(child: subprocess.Popen[bytes]) -> IO[bytes]:
    if child.stdout is None:
        message = "a child without a pipe"
        raise RuntimeError(message)
    return child.stdout


def use_all_files() -> None:
    """Raises the limit on open files to the most that is allowed, which children inherit."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def run_broker(arguments: Sequence[str]) -> int:
    """Runs `python -m brokers serve` with these arguments; see `Runner.run`."""
    return Runner([sys.executable, "-m", "brokers", "serve", *arguments]).run()
