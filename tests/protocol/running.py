"""A broker that the tests ask, and what it advertises."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from brokers import Broker
from brokers.metadata import CellStore
from tests.protocol.codec import Codec
from tests.protocol.connection import Connection
from tests.protocol.schemas import error_names, load_schemas
from tests.protocol.world import SOFTWARE, Account, Place, World

CLUSTER = "local"
ROOT, NOBODY = Account("root", "password-of-root"), Account("nobody", "password-of-nobody")
# The errors of ApiVersions, for what is read before the others are needed.
NO_ERRORS = {0: "NONE"}


@contextmanager
def running_broker(folder: Path) -> Iterator[World]:
    """A broker of this checkout, without content where the folder is new."""
    metadata = folder / "metadata.sqlite"
    if not metadata.exists():
        cluster = CellStore(metadata).cluster(CLUSTER)
        cluster.create()
        for account in (ROOT, NOBODY):
            cluster.set_user(account.user, account.password)
    listener = {"sasl": ["PLAIN", "SCRAM-SHA-256"]}
    security = {"super_users": [f"User:{ROOT.user}"]}
    codec = Codec(load_schemas(), error_names())
    with Broker(folder, listener=listener, security=security) as broker:
        world = World(Place(broker.bootstrap, codec, ROOT, NOBODY))
        yield world
        world.close()


@cache
def advertised() -> dict[int, tuple[int, int]]:
    """What a broker says that it serves: the oldest and the newest version by API key.

    Asked when tests are collected, of a broker that runs for this alone: it starts in an instant.
    """
    with tempfile.TemporaryDirectory() as folder, Broker(folder) as broker:
        codec = Codec(load_schemas(), NO_ERRORS)
        with Connection(broker.bootstrap, codec) as connection:
            answer = connection.ask("ApiVersions", 4, SOFTWARE)
    return {
        entry["ApiKey"]: (entry["MinVersion"], entry["MaxVersion"]) for entry in answer["ApiKeys"]
    }


def served_versions() -> list[tuple[str, int]]:
    """Name and version of all that a broker advertises, as far as Kafka has a schema for it."""
    apis = load_schemas().apis
    return [
        (apis[key].name, version)
        for key, (oldest, newest) in advertised().items()
        for version in range(oldest, newest + 1)
        if version in apis[key].request.versions
    ]


def unserved_versions() -> list[tuple[int, int]]:
    """API key and version of what stands beside each range, and of what has no schema."""
    apis = load_schemas().apis
    result = []
    for key, (oldest, newest) in advertised().items():
        known = apis[key].request.versions
        result += [
            (key, version)
            for version in range(oldest - 1, newest + 2)
            if not oldest <= version <= newest or version not in known
        ]
    return result
