"""Reads the files of samples that keepers wrote into a bucket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from brokers.objects import open_objects
from provisioning.cell.sample_files import (
    FILE_BYTES_MAX,
    PREFIX,
    SampleFileContent,
    TakenSample,
    decode_file,
    parse_key,
)
from tests.supervisor.run import wait_until


def written_files(bucket: str | Path) -> Iterator[SampleFileContent]:
    """The files of a bucket in the order in which they were written."""
    objects = open_objects(str(bucket))
    for key in objects.list(PREFIX):
        assert parse_key(key) is not None, key
        file = decode_file(objects.read(key, FILE_BYTES_MAX))
        assert file.damaged == 0
        yield file


def newest_written(bucket: str | Path, cluster_id: str) -> TakenSample | None:
    """The newest sample of a cluster; None where there is none."""
    samples = [
        sample
        for file in written_files(bucket)
        for sample in file.samples
        if sample.cluster_id == cluster_id
    ]
    return samples[-1] if samples else None


def written_after(bucket: str | Path, cluster_id: str, moment_ms: int) -> TakenSample:
    """Waits for a sample that was started after a moment (Unix ms)."""
    samples: list[TakenSample] = []

    def is_there() -> bool:
        sample = newest_written(bucket, cluster_id)
        if sample is not None and sample.taken_at_ms > moment_ms:
            samples.append(sample)
        return bool(samples)

    wait_until(is_there, f"a sample of {cluster_id}")
    return samples[0]
