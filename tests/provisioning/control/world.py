"""The cell of the tests, with functions that act in it as the keeper would."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import orjson

from brokers import Broker, metadata
from brokers.metadata_records import BrokerStatus, ClusterStatus, Phase
from brokers.objects import FolderObjects
from brokers.secrets import create_cell_secret, read_cell_secret, super_password
from console.base.common.conf import config
from provisioning import cells
from provisioning.cell.sample_files import encode_file, file_key, sample_line
from provisioning.clusters.services.sample_ingest import ingest_samples
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


def put_sample(cluster_id: str, taken_at_ms: int, content: Mapping[str, object]) -> None:
    """Takes in a file with one sample, as a keeper would write it that took the cell over now."""
    now_ms = time.time_ns() // 1_000_000
    line = sample_line(cluster_id, taken_at_ms, orjson.dumps(content))
    file = encode_file([line], {}, emitted_at_ms=now_ms, term=now_ms, whole=True)
    with tempfile.TemporaryDirectory() as folder:
        objects = FolderObjects(folder)
        assert objects.put_new(file_key(now_ms, now_ms), file)
        done = ingest_samples(objects=objects)
    assert (done.files, done.samples, done.damaged) == (1, 1, 0), done


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
    listener = {
        "kafka": "127.0.0.1:0",
        "metrics": "127.0.0.1:0",
        "sasl": ["PLAIN", "SCRAM-SHA-512"],
    }
    folder = settings.dfs.parent / "broker"
    with Broker(folder, storage=storage, listener=listener, security=security) as broker:
        metrics = broker.metrics_address or ""
        address = BrokerStatus(slot=0, link="", kafka=broker.bootstrap, metrics=metrics)
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
