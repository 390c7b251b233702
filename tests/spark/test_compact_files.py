"""Files are joined without a row lost, added or changed, copies and contradictions included."""

import io
import json

import pyarrow.parquet as pq
import pytest

from metering.events.records import USAGE_SCHEMA, decode_usage
from spark_usage.errors import JobError
from spark_usage.jobs import compact_files
from spark_usage.progress import Progress
from tests.spark import oracle
from tests.spark.runs import arguments_for
from tests.spark.usage_files import (
    ingress,
    random_rows,
    split_rows,
    spoil_rows,
    storage,
    sum_files,
)


@pytest.fixture
def compact(spark, folder):
    """Runs the job over inputs; returns its report and the joined file's bytes."""

    def run(inputs, run_id="run_1"):
        manifest = folder.run(inputs, run_id)
        output = folder.root / f"run_id={run_id}"
        progress = Progress(spark.sparkContext, compact_files.STAGES)
        compact_files.compact_usage(spark, arguments_for(manifest, output, run_id), progress)
        report = json.loads((output / "report.json").read_text())
        return report, (output / report["file"]).read_bytes()

    return run


def contents(rows):
    """Rows in any order, copies included."""
    return sorted(map(str, rows))


@pytest.mark.parametrize("seed", [1, 2])
def test_a_roll_up_of_the_joined_file_is_that_of_the_files(compact, folder, seed):
    rows = random_rows(seed)
    rows += spoil_rows(seed, rows) + sum_files(rows)[:20]
    inputs = [folder.add(part) for part in split_rows(seed, rows, 9)]
    report, data = compact(inputs)
    assert [check["name"] for check in report["checks"] if not check["passed"]] == []
    joined = folder.add_bytes(data, report["rows"])
    assert decode_usage(data).schema == USAGE_SCHEMA
    assert contents(decode_usage(data).to_pylist()) == contents(rows)
    plain = oracle.roll_up(folder.run(inputs, "run_plain"))
    assert oracle.roll_up(folder.run([joined], "run_joined")) == plain
    # A file that came late, of rows of which some were joined.
    late = folder.add(rows[:40])
    with_late = oracle.roll_up(folder.run([*inputs, late], "run_late"))
    assert oracle.roll_up(folder.run([joined, late], "run_joined_late")) == with_late


def test_damaged_and_incomplete_files_are_left_out(compact, folder):
    sound = [folder.add([ingress(1, 10), storage(0, 60, 6)]), folder.add([ingress(2, 20)])]
    altered, gone = folder.add([ingress(3, 30)]), folder.add([ingress(4, 40)])
    folder.path(altered["key"]).write_bytes(b"x" * altered["size_bytes"])
    folder.path(gone["key"]).unlink()
    incomplete = folder.add([ingress(5, 50), ingress(6, 60, principal=None)])
    report, data = compact([*sound, altered, gone, incomplete])
    assert set(report["joined"]) == {file["key"] for file in sound}
    assert {damage["reason"] for damage in report["damaged_inputs"]} == {
        "sha256",
        "missing",
        "incomplete",
    }
    assert pq.read_metadata(io.BytesIO(data)).num_rows == report["rows"] == 3


def test_each_run_has_a_folder_of_its_own(compact, folder):
    inputs = [folder.add([ingress(1, 1)]), folder.add([])]
    report, _ = compact(inputs)
    assert len(report["joined"]) == 2
    with pytest.raises(JobError, match="exists"):
        compact(inputs)
