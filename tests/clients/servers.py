"""Brokers as processes: started from the command line, killed, and started again."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from brokers.settings.writing import overrides_of
from tests.brokers.logscan import LogScan
from tests.peer.processes import bound_command, stop_servers
from tests.ports import free_ports

ROOT = Path(__file__).parent.parent.parent

# Short waits and few partitions of the offsets topic, so that many brokers can be started.
SHORT: Mapping[str, Mapping[str, object]] = {
    "topics": {"offsets_partitions": 4},
    "groups": {"initial_rebalance_delay_ms": 0},
    "threads": {"runtime": 2},
}


class BrokerServer:
    """`python -m brokers serve` with all its data in one folder, on the same port every time.

    Each section of the settings is a keyword.
    """

    def __init__(self, folder: Path, **sections: Mapping[str, object]) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        port, metrics = free_ports(2)
        storage: dict[str, object] = {"dfs": folder / "dfs", "bucket": folder / "bucket"}
        given: dict[str, dict[str, object]] = {
            "storage": {**storage, "metadata": folder / "metadata.sqlite"},
            "listener": {"kafka": f"127.0.0.1:{port}", "metrics": f"127.0.0.1:{metrics}"},
        }
        self.bootstrap = f"127.0.0.1:{port}"
        self.metrics_address = f"127.0.0.1:{metrics}"
        self.config = folder / "broker.toml"
        lines = [line for layer in (given, SHORT, sections) for line in overrides_of(layer)]
        # Dotted keys; the last one of a name wins, as on the command line.
        unique = dict(line.split("=", 1) for line in lines)
        text = "".join(f"{key} = {value}\n" for key, value in unique.items())
        self.config.write_text(text)
        self.log = folder / "broker.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it and waits until it says that it serves."""
        command = [sys.executable, "-m", "brokers", "serve", "--config", str(self.config)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                bound_command(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=ROOT,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        if not line.startswith("ready "):
            status = self.wait()
            tail = self.log.read_text(errors="replace")[-4000:]
            message = f"the broker did not start ({status}):\n{tail}"
            raise AssertionError(message)

    def signal(self, number: signal.Signals) -> None:
        """Sends it a signal, if it runs."""
        assert self.process is not None
        self.process.send_signal(number)

    def wait(self) -> int:
        """Waits until it is gone; returns its status, negative for a signal."""
        assert self.process is not None
        status = self.process.wait()
        self._close_pipe()
        return status

    def kill(self) -> None:
        """Ends it with SIGKILL and waits until it is gone."""
        self.signal(signal.SIGKILL)
        self.wait()

    def stop(self) -> int:
        """Ends it with SIGTERM; returns its status."""
        assert self.process is not None
        stop_servers([self.process])
        self._close_pipe()
        return self.process.returncode

    def scan(self) -> LogScan:
        """Its log, read from storage. The broker should not run."""
        return LogScan(self.folder / "dfs", self.folder / "bucket", self.folder / "metadata.sqlite")

    def _close_pipe(self) -> None:
        if self.process is not None and self.process.stdout is not None:
            self.process.stdout.close()

    def __enter__(self) -> Self:
        """Starts it."""
        try:
            self.start()
        except BaseException:
            self._close_pipe()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Ends it, if it runs."""
        if self.process is not None and self.process.poll() is None:
            self.stop()
        self._close_pipe()


class Supervisor:
    """Starts a broker again the moment it ends."""

    def __init__(self, broker: BrokerServer) -> None:
        self.broker = broker
        self.starts = 0
        self.failure: BaseException | None = None
        self._running = threading.Condition()
        self._leaving = False
        self._thread = threading.Thread(target=self._supervise, daemon=True)

    def _supervise(self) -> None:
        while self.failure is None and not self._leaving:
            try:
                self.broker.start()
            except BaseException as error:  # handed to whoever waits
                self.failure = error
            with self._running:
                self.starts += 1
                self._running.notify_all()
            if self.failure is None:
                self.broker.wait()

    def wait_for_start(self, number: int) -> None:
        """Waits until it was started so many times. Raises what kept it from starting."""
        with self._running:
            self._running.wait_for(lambda: self.starts >= number or self.failure is not None)
        if self.failure is not None:
            raise self.failure

    def kill(self) -> None:
        """Kills it without warning; returns once its successor serves."""
        due = self.starts + 1
        self.broker.signal(signal.SIGKILL)
        self.wait_for_start(due)

    def stop(self) -> None:
        """Ends the broker in order and for good."""
        self._leaving = True
        self.broker.signal(signal.SIGTERM)
        self._thread.join()

    def __enter__(self) -> Self:
        """Starts the broker."""
        self._thread.start()
        self.wait_for_start(1)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Kills the broker for good."""
        self._leaving = True
        self.broker.signal(signal.SIGKILL)
        self._thread.join()
