"""The cell of the tests, with functions that act in it as the keeper would."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from brokers import Broker, metadata
from brokers.metadata_records import BrokerStatus, ClusterStatus, Phase
from brokers.secrets import create_cell_secret, read_cell_secret, super_password
from console.base.common.conf import config
from provisioning import cells
from provisioning.kafka import SUPER_USER, Access


def prepare_cell() -> None:
    """Makes the folders and the secret that `manage.py up` makes."""
    settings = config().cell
    folder = settings.secret.parent
    folder.mkdir(parents=True, exist_ok=True)
    create_cell_secret(settings.secret)


def put_status(
    cluster_id: str,
    phase: Phase,
    generation: int = 1,
    **fields: Any,  # noqa: ANN401 (the record's own)
) -> None:
    """Writes the status of a cluster that the keeper would write."""
    status = ClusterStatus(
        observed_generation=generation,
        phase=phase,
        since_ms=time.time_ns() // 1_000_000,
        **fields,
    )
    cells.cell_store().put_status(cluster_id, status)


def access_of(cluster_id: str) -> Access:
    """Access to the brokers that the cluster's status names, as the control plane's user."""
    status = cells.cell_store().status(cluster_id)
    assert status is not None
    return cells.broker_access(cluster_id, status)


@contextmanager
def running_broker(cluster_id: str, generation: int = 1) -> Iterator[Broker]:
    """Runs the cluster's broker, on its storage and in its metadata, until the end of the block."""
    settings = config().cell
    storage = {
        "dfs": settings.dfs,
        "bucket": Path(settings.bucket.removeprefix("file://")),
        "metadata": Path(settings.metadata.removeprefix("sqlite://")),
        "cluster": cluster_id,
    }
    password = super_password(read_cell_secret(settings.secret), cluster_id)
    security = {
        "super_users": [f"User:{SUPER_USER}"],
        "users": [{"name": SUPER_USER, "password": password}],
        "allow_everyone_if_no_acl_found": False,
    }
    listener = {"kafka": "127.0.0.1:0", "sasl": ["PLAIN", "SCRAM-SHA-512"]}
    folder = settings.dfs.parent / "broker"
    with Broker(folder, storage=storage, listener=listener, security=security) as broker:
        address = BrokerStatus(slot=0, link="", kafka=broker.bootstrap, metrics="")
        put_status(cluster_id, "running", generation, brokers=(address,))
        yield broker
        put_status(cluster_id, "asleep", generation)


@contextmanager
def failing(
    call: str, *errors: BaseException | None, owner: type = metadata.ClusterStore
) -> Iterator[list[BaseException | None]]:
    """Makes the next calls of a method fail, one for each error; for a None the call works.

    With an error of `lost` the call is made and its answer discarded. Gives the errors left over.
    """
    real = getattr(owner, call)
    left = list(errors)

    def attempt(self: object, *args: object, **kwargs: object) -> object:
        error = left.pop(0) if left else None
        if error is None:
            return real(self, *args, **kwargs)
        if getattr(error, "done", False):
            real(self, *args, **kwargs)
        raise error

    with mock.patch.object(owner, call, attempt):
        yield left


def lost(error: BaseException) -> BaseException:
    """Marks an error as one that comes after the call was made, so that only its answer is lost."""
    error.done = True  # type: ignore[attr-defined]
    return error
