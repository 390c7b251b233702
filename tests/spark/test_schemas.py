"""What Spark reads is what `metering.events` says a usage file holds."""

import pyarrow as pa
import pytest
from pyspark.sql.types import BooleanType, IntegerType, LongType, StringType

from metering.events import records
from spark_usage import schemas
from spark_usage.errors import JobError
from spark_usage.run_manifest import parse_run
from tests.spark.usage_files import DAY

TYPES = {
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.string(): StringType(),
    pa.bool_(): BooleanType(),
}


def test_usage_schema_is_that_of_the_wire_contract():
    assert [(field.name, field.dataType, field.nullable) for field in schemas.USAGE_SCHEMA] == [
        (field.name, TYPES[field.type], field.nullable) for field in records.USAGE_SCHEMA
    ]
    versions = schemas.BLOCKS_VERSION, schemas.FILES_VERSION
    assert versions == records.RECORD_VERSIONS


def test_identity_and_agreement_are_those_of_the_wire_contract():
    assert set(schemas.IDENTITY) == set(records.LANE_IDENTITY)
    assert schemas.AGREEING == records.AGREEING
    assert set(schemas.LANE_METERS) == set(records.LANE_METERS)
    assert set(schemas.TIME_METERS) == set(records.TIME_METERS)
    assert set(schemas.METERS) == set(records.Meter)


RUN = (
    '{"version": 1, "run_id": "r", "day": "2026-03-29", "usage_root": "/u", "inputs": ['
    '{"key": "v1/a.parquet", "size_bytes": 1, "sha256": "%s", "rows": 1}]}'
) % ("0" * 64)


def test_a_run_manifest_is_read():
    run = parse_run(RUN.encode(), run_id="r", day=DAY)
    assert run.path(run.inputs[0]) == "/u/v1/a.parquet"
    assert run.day_start_ms == 1_774_742_400_000


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"version": 1', '"version": 2'),
        ('"run_id": "r"', '"run_id": "other"'),
        ("2026-03-29", "2026-03-30"),
        ("2026-03-29", "today"),
        ("v1/a.parquet", "../a.parquet"),
        ("v1/a.parquet", "/etc/a.parquet"),
        ('"size_bytes": 1', '"size_bytes": -1'),
        ('"rows": 1', '"rows": "1"'),
        ("0" * 64, "0" * 63),
        ('"inputs": [', '"inputs": 0, "others": ['),
        ("{", ""),
    ],
)
def test_a_run_manifest_of_another_kind_is_refused(old, new):
    with pytest.raises(JobError):
        parse_run(RUN.replace(old, new, 1).encode(), run_id="r", day=DAY)


def test_a_key_that_is_named_twice_is_refused():
    entry = RUN[RUN.index('{"key"') : RUN.rindex("]")]
    with pytest.raises(JobError, match="twice"):
        parse_run(RUN.replace(entry, f"{entry}, {entry}").encode(), run_id="r", day=DAY)
