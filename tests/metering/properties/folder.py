"""A usage store in memory, with faults that a store may have: losses, damage and copies."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from metering.events.errors import UsageFormatError
from metering.events.keys import parse_key
from metering.events.manifests import UsageManifest
from metering.events.store import read_manifest


class MemoryStore:
    """`metering.events.store.UsageStore` in a dict."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def put_new(self, key: str, data: bytes) -> bool:
        """See `UsageStore`."""
        if key in self.objects:
            return False
        self.objects[key] = data
        return True

    def get(self, key: str) -> bytes:
        """See `UsageStore`."""
        try:
            return self.objects[key]
        except KeyError:
            raise FileNotFoundError(key) from None

    def list(self, prefix: str) -> Iterator[str]:
        """See `UsageStore`."""
        yield from sorted(key for key in self.objects if key.startswith(prefix))

    def copy(self) -> MemoryStore:
        """The same objects, in a store of their own."""
        other = MemoryStore()
        other.objects = dict(self.objects)
        return other

    def lose(self, key: str) -> None:
        """Removes an object."""
        self.objects.pop(key, None)

    def damage(self, key: str) -> None:
        """Changes one byte of an object."""
        data = self.objects[key]
        at = len(data) // 2
        self.objects[key] = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]

    def manifests(self) -> Sequence[UsageManifest]:
        """All manifests that count: readable, and their data files there and unharmed."""
        readable = []
        for key in self.list(""):
            parsed = parse_key(key)
            if parsed is not None and parsed.is_manifest:
                try:
                    readable.append(read_manifest(self, key, verify=True))
                except (UsageFormatError, FileNotFoundError):
                    continue
        return readable


def sha256_of(data: bytes) -> str:
    """64 hex digits."""
    return hashlib.sha256(data).hexdigest()
