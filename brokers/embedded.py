"""A broker inside this process, for tests and tools."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from brokers import _core
from brokers.errors import StoppedError
from brokers.settings.writing import overrides_of

# Where a test differs from a service: a free port, short waits, few partitions, few logs.
TEST_SETTINGS: Mapping[str, Mapping[str, object]] = {
    "listener": {"kafka": "127.0.0.1:0"},
    "topics": {"offsets_partitions": 4},
    "groups": {"initial_rebalance_delay_ms": 0},
    "threads": {"runtime": 2},
    "log": {"level": "warn"},
}


class Broker:
    """A broker in this process, with all its data in one folder.

    `folder` is kept; without it there is a temporary one, which `close` removes. Each section of
    the settings is a keyword: `Broker(topics={"auto_create": False})`. As a context manager it
    starts on entry, and stops cleanly and closes on exit; where it stood down by itself meanwhile,
    leaving raises `StoppedError`.
    """

    def __init__(self, folder: str | Path | None = None, **sections: Mapping[str, object]) -> None:
        self._temporary = folder is None
        self.folder = Path(folder or tempfile.mkdtemp(prefix="freshet-broker-"))
        storage = {name: self.folder / name for name in ("dfs", "bucket")}
        given = {"storage": {**storage, "metadata": self.folder / "metadata.sqlite"}}
        self._overrides = [
            *overrides_of(given),
            *overrides_of(TEST_SETTINGS),
            *overrides_of(sections),
        ]
        self._process = _core.BrokerProcess(self.settings)
        self._bootstrap = ""

    @property
    def settings(self) -> str:
        """All settings, as TOML."""
        # Overrides are checked together with the file: storage must not be missing from it.
        return _core.resolve_settings(_STORAGE_BY_OVERRIDE, self._overrides)

    @property
    def bootstrap(self) -> str:
        """`host:port` for Kafka clients; the same after a restart."""
        if not self._bootstrap:
            message = "the broker was not started"
            raise StoppedError(message)
        return self._bootstrap

    @property
    def metrics_address(self) -> str | None:
        """`host:port` of `/metrics` and `/healthz`; None where they are off."""
        return self._process.metrics_address

    @property
    def link_address(self) -> str | None:
        """`host:port` for gateways; None where `listener.link` is not set. Kept over restarts."""
        return self._process.link_address

    @property
    def incarnation(self) -> int:
        """The incarnation: the number of this start. Numbers may have been skipped before it."""
        return self._process.incarnation

    def start(self) -> None:
        """Starts it; it serves when this returns."""
        self.folder.mkdir(parents=True, exist_ok=True)
        _core.start_logs(self.settings)
        self._process.start()
        if not self._bootstrap:
            # The port is kept over restarts, as a supervised broker keeps its own.
            self._bootstrap = self._process.bootstrap
            self._overrides.append(f"listener.kafka={self._bootstrap}")
            if self.link_address is not None:
                self._overrides.append(f"listener.link={self.link_address}")

    def stop(self, timeout_s: float = 30.0) -> None:
        """Stops cleanly, within `timeout_s` seconds."""
        self._process.stop(timeout_s)

    def crash(self) -> None:
        """Drops everything as `kill -9` does, without a clean stop."""
        self._process.kill()

    def restart(self) -> None:
        """Starts it anew, after `stop`, `crash`, or as a takeover from itself while it runs."""
        self._process.kill()
        self._process = _core.BrokerProcess(self.settings)
        self.start()

    def ended(self, timeout_s: float = 0.0) -> str | None:
        """Why it stood down by itself; None where it did not within `timeout_s` seconds."""
        return self._process.ended(timeout_s)

    def close(self) -> None:
        """Stops it, and removes the temporary folder."""
        self.stop()
        if self._temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        """Starts it."""
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stops and closes it. Raises `StoppedError` where it had stood down by itself."""
        reason = None
        try:
            reason = self.ended()
        except StoppedError:
            pass  # stopped or crashed on purpose
        finally:
            self.close()
        if reason is not None and error is None:
            message = f"the broker stood down: {reason}"
            raise StoppedError(message)


_STORAGE_BY_OVERRIDE = "[storage]\ndfs = '-'\nbucket = '-'\nmetadata = '-'\n"
