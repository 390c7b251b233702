"""The errors of brokers and of metadata, by what the caller can do about them.

`BrokerError` is the parent of all, `MetadataError` of those below `brokers.metadata`; each of these
has a `kind` (`not_found`, `exists`, `conflict`, `invalid`, `limit_reached`, `too_large`,
`unavailable`, `unknown`, `compacted`, `corrupt`), and a `field` where an argument is wrong: a JSON
pointer without the slash in front, such as `configs/retention.ms`. They are raised by the
extension, in one place there.
"""

from __future__ import annotations

from brokers._core import (
    BrokerError,
    CompactedError,
    ConfigError,
    ConflictError,
    CorruptError,
    ExistsError,
    InvalidError,
    LimitReachedError,
    MetadataError,
    NotFoundError,
    StartError,
    StoppedError,
    StorageError,
    TooLargeError,
    UnavailableError,
    UnknownOutcomeError,
)

__all__ = [
    "BrokerError",
    "CompactedError",
    "ConfigError",
    "ConflictError",
    "CorruptError",
    "ExistsError",
    "InvalidError",
    "LimitReachedError",
    "MetadataError",
    "NotFoundError",
    "StartError",
    "StoppedError",
    "StorageError",
    "TooLargeError",
    "UnavailableError",
    "UnknownOutcomeError",
]
