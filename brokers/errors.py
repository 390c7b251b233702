"""What can go wrong with a broker, by what the caller can do about it.

`BrokerError` is the parent of all. They are raised by the extension, in one place there.
"""

from __future__ import annotations

from brokers._core import BrokerError, ConfigError, StartError, StoppedError, StorageError

__all__ = ["BrokerError", "ConfigError", "StartError", "StoppedError", "StorageError"]
