"""The programs of `tests/clients/programs`, each of which asks one library that is not Python's."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.clients.by_time.scenario import END, Batch, Record
from tests.peer.processes import bound_command

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / ".tools" / "clients"
SCRIPT = ROOT / "tests" / "clients" / "programs" / "js" / "main.js"
# More than the programs give themselves.
LIMIT_S = 120

ALL_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Program:
    """A program with the arguments that all of them have. `nothing` as in `Library`."""

    def __init__(
        self, command: Sequence[Path | str], nothing: int | None, codecs: Sequence[str] = ALL_CODECS
    ) -> None:
        self.command = command
        self.nothing = nothing
        self.codecs = codecs

    def produce(
        self, bootstrap: str, topic: str, batches: Sequence[Batch], codec: str
    ) -> list[int]:
        """As `Library.produce`."""
        sent = [[asdict(record) for record in batch] for batch in batches]
        answer = self._run(bootstrap, topic, "produce", {"codec": codec, "batches": sent})
        return list(answer["offsets"])

    def offsets(self, bootstrap: str, topic: str, times: Sequence[int]) -> list[int | None]:
        """As `Library.offsets`."""
        return list(self._run(bootstrap, topic, "offsets", {"times": list(times)})["offsets"])

    def reset(self, bootstrap: str, topic: str, group: str, time: int, count: int) -> list[Record]:
        """As `Library.reset`."""
        details = {"group": group, "time": time, "count": count}
        answer = self._run(bootstrap, topic, "reset", details)
        return [Record(**record) for record in answer["records"]]

    def _run(self, bootstrap: str, topic: str, step: str, details: dict[str, Any]) -> Any:
        program = Path(self.command[-1])
        assert program.exists(), f"no {program}: run .ci/setup (`full` tests: .ci/setup all)"
        done = subprocess.run(
            bound_command([*self.command, bootstrap, topic, step, json.dumps(details)]),
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            env={**os.environ, "KAFKAJS_NO_PARTITIONER_WARNING": "1"},
        )
        assert done.returncode == 0, f"{program.name} {step}: {done.stderr}"
        return json.loads(done.stdout)


def programs() -> dict[str, Program]:
    """All programs by the names of their libraries."""
    return {
        # The newest version that leaves a batch's largest timestamp at -1, and the newest.
        "sarama-1.45": Program([FOLDER / "sarama-1.45"], -1),
        "sarama": Program([FOLDER / "sarama"], -1),
        "franz-go": Program([FOLDER / "franzgo"], END),
        "kafka-go": Program([FOLDER / "kafkago"], -1),
        "rdkafka": Program([FOLDER / "rdkafka"], None),
        # The other codecs are not KafkaJS's own.
        "kafkajs": Program(["node", SCRIPT], END, ("none", "gzip")),
    }
