"""The engine: a Kafka broker over shared storage. `Broker` embeds one in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brokers.embedded import Broker

__all__ = ["Broker"]


def __getattr__(name: str) -> object:
    # `python -m brokers serve` passes through here and shall not wait for what it does not use.
    if name == "Broker":
        from brokers.embedded import Broker  # noqa: PLC0415 (see above)

        return Broker
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
