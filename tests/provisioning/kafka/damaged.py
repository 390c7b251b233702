"""The sample of a log with damaged batches, served by a broker as a managed cluster's are."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brokers import Broker
from tests.provisioning.kafka.conftest import MANAGED

SAMPLE = Path(__file__).parents[2] / "brokers/samples/damaged"


@dataclass(frozen=True)
class Stored:
    """A batch of the sample. `damage` is None for a sound one."""

    partition: int
    first_offset: int
    next_offset: int
    stored_in: str
    damage: str | None
    values: tuple[str, ...]


def stored_batches(partition: int) -> list[Stored]:
    """The batches of a partition of the sample."""
    content: Any = json.loads((SAMPLE / "expected.json").read_text())
    return [
        Stored(
            partition,
            batch["base_offset"],
            batch["next_offset"],
            batch["stored_in"],
            batch["damage"],
            tuple(batch["values"]),
        )
        for batch in content["partitions"][partition]["batches"]
    ]


@contextmanager
def damaged_broker(folder: Path) -> Iterator[Broker]:
    """A broker on a copy of the sample."""
    shutil.copytree(SAMPLE, folder)
    with Broker(folder, **MANAGED) as broker:
        yield broker
