"""Which version a lane file has is read as it is written, by the documented format alone."""

import hashlib
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.metering.proof.usage_folder import UsageFolder
from tests.metering.proof.versions import COLUMNS, read_versions, sums_beside_blocks

WHOSE = ("cl_a", "ingress_bytes", "0a", "User:alice")


@pytest.fixture
def usage(tmp_path):
    """An empty usage folder."""
    return UsageFolder(tmp_path / "usage", tmp_path / "late", seed=1)


def put(usage, name, rows, entry):
    """A usage file of rows (version, lane file, block, bytes) with an entry of their lane."""
    fixed = {"cluster_id": "cl_a", "incarnation": 1, "topic_id": "0a", "partition": 0}
    fixed |= {"principal": "User:alice", "meter": "ingress_bytes", "window_start_ms": 0}
    varying = ("schema_version", "lane_file", "block", "quantity")
    plain = [fixed | {"billed": True} | dict(zip(varying, row, strict=True)) for row in rows]
    data = usage.root / "v1" / "cell=local" / "day=2026-01-01" / f"{name}.parquet"
    data.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(plain).select(COLUMNS), data)
    lane = {"incarnation": 1} | entry
    said = {
        "sha256": hashlib.sha256(data.read_bytes()).hexdigest(),
        "clusters": [{"cluster_id": "cl_a", "lanes": [lane]}],
    }
    data.with_suffix(".json").write_text(json.dumps(said))


def test_files_and_rows_are_counted_by_version(usage):
    blocks = [(1, 0, 1, 5), (1, 0, 2, 5), (1, 1, 3, 5)]
    put(usage, "a", blocks, {"first_sequence": 1, "last_sequence": 3})
    sums = [(2, 1, None, 5), (2, 2, None, 7)]
    files = [[1, 3, 3], [2, 4, 6]]
    put(usage, "b", sums, {"first_sequence": 3, "last_sequence": 6, "files": files})
    # Copies are one.
    put(usage, "c", sums, {"first_sequence": 3, "last_sequence": 6, "files": files})
    assert read_versions(usage.files()).details() == {
        "lane_files_by_blocks": 2,
        "lane_files_summed": 2,
        "lane_files_with_both": 1,
        "rows_of_blocks": 3,
        "rows_of_sums": 2,
    }
    # Of the second lane file a block was covered alone, of the third none.
    assert sums_beside_blocks(usage.files()) == {WHOSE: 5}


def test_covered_blocks_without_rows_make_a_sum_doubtful_too(usage):
    put(usage, "a", [(1, 0, 1, 5)], {"first_sequence": 1, "last_sequence": 2})
    files = [[1, 2, 4]]
    put(usage, "b", [(2, 1, None, 9)], {"first_sequence": 2, "last_sequence": 4, "files": files})
    assert sums_beside_blocks(usage.files()) == {WHOSE: 9}
