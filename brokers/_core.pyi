"""The engine, compiled. What is documented here is checked against it by `mypy.stubtest`."""

from collections.abc import Sequence
from typing import final

__all__ = [
    "BrokerError",
    "BrokerProcess",
    "ConfigError",
    "StartError",
    "StoppedError",
    "StorageError",
    "default_settings",
    "inspect",
    "resolve_settings",
    "start_logs",
    "version",
]

class BrokerError(Exception):
    """Something about a broker failed."""

class ConfigError(BrokerError):
    """Settings that make no sense; the text names line and key."""

class StorageError(BrokerError):
    """Storage that cannot be used."""

class StartError(BrokerError):
    """A broker that did not start; another start may succeed."""

class StoppedError(BrokerError):
    """A broker that does not run."""

@final
class BrokerProcess:
    """A broker in this process. Whatever waits does so without the interpreter's lock."""

    def __new__(cls, settings: str) -> BrokerProcess:
        """A broker with these settings (TOML) that does not run yet. Raises `ConfigError`."""

    def start(self) -> None:
        """Starts it; it serves when this returns. Raises `StartError` or `StorageError`."""

    def stop(self, timeout_s: float = 30.0) -> None:
        """Stops cleanly; after `timeout_s` seconds what is left is dropped."""

    def kill(self) -> None:
        """Drops everything without any clean stop, as a killed process does."""

    def ended(self, timeout_s: float) -> str | None:
        """Waits until the broker stood down and says why; None once `timeout_s` seconds passed."""

    @property
    def bootstrap(self) -> str:
        """`host:port` for Kafka clients. Raises `StoppedError`."""

    @property
    def metrics_address(self) -> str | None:
        """`host:port` of `/metrics` and `/healthz`; None where they are off."""

    @property
    def link_address(self) -> str | None:
        """`host:port` for gateways; None where there is no such listener."""

    @property
    def incarnation(self) -> int:
        """Which start of a broker of its cluster it is."""

def version() -> str:
    """The broker's version."""

def default_settings() -> str:
    """Every setting with its default, as TOML."""

def resolve_settings(settings: str, overrides: Sequence[str]) -> str:
    """Settings (TOML) with `section.setting=value` overrides and defaults filled in.

    Raises `ConfigError`, which names line and key.
    """

def start_logs(settings: str) -> None:
    """Has this process log to standard error as the settings say. The first call decides."""

def inspect(
    settings: str, *, verify: bool = False, lane: int | None = None, topic: str | None = None
) -> str:
    """What lies on a cluster's storage, as JSON. Raises `StorageError`."""
