"""The roll-up against golden days, and against the oracle on random ones. Tolerance is 0."""

import io
import random
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metering.events.records import USAGE_SCHEMA
from spark_usage.errors import JobError
from spark_usage.jobs import rollup, runner
from tests.spark import oracle
from tests.spark.usage_files import (
    DAY_MS,
    DAY_START_MS,
    HOUR_MS,
    MINUTE_MS,
    egress,
    ingress,
    random_rows,
    split_rows,
    spoil_rows,
    storage,
    sum_files,
)

LAST_MINUTE_MS = DAY_START_MS + DAY_MS - MINUTE_MS


def assert_as_oracle(result, expected):
    report = result.report
    assert result.hours == expected.hours
    assert result.days == expected.days
    assert [without_reason(row) for row in result.quarantine] == expected.quarantine
    assert {damage["key"] for damage in report["damaged_inputs"]} == expected.damaged
    assert report["rows_read"] == expected.rows_read
    assert report["rows_distinct"] == expected.rows_distinct
    assert report["duplicates"] == expected.duplicates
    assert report["superseded"] == expected.superseded
    assert report["conflicts"] == expected.conflicts
    assert report["control_totals"] == expected.control_totals
    assert report["content_sha256"] == expected.content_sha256
    assert (report["hours"], report["days"]) == (len(expected.hours), len(expected.days))


def without_reason(row):
    assert row["reason"] == "conflict"
    return {name: value for name, value in row.items() if name != "reason"}


def brief(rows):
    """The columns of each row that the golden days compare."""
    return [
        (
            row["meter"],
            row["principal"],
            (row["window_start_ms"] - DAY_START_MS) // HOUR_MS,
            row["quantity"],
            row["billed"],
            row["source_rows"],
        )
        for row in rows
    ]


def test_a_day_of_every_meter(roll_up, folder):
    hour = DAY_START_MS + 5 * HOUR_MS
    rows = [
        ingress(1, 100),
        ingress(1, 10, partition=1),
        ingress(2, 7, window_start_ms=hour),
        ingress(3, 5, principal="User:__freshet", billed=False),
        egress(4, 40, 40),
        egress(5, 2, 42, window_start_ms=LAST_MINUTE_MS),
        storage(0, 60, 6000),
        storage(60, 30, 3000),
        storage(0, 60, 60, meter="partition_minutes", partition=None),
        storage(0, 1, 30, meter="broker_seconds", topic_id="", partition=None, incarnation=1,
                billed=False),
    ]  # fmt: skip
    result = roll_up([folder.add(rows)])
    assert brief(result.hours) == [
        ("broker_seconds", "", 0, 30, False, 1),
        ("partition_minutes", "", 0, 60, True, 1),
        ("storage_byte_minutes", "", 0, 6000, True, 1),
        ("storage_byte_minutes", "", 1, 3000, True, 1),
        ("ingress_bytes", "User:__freshet", 0, 5, False, 1),
        ("egress_bytes", "User:app", 0, 40, True, 1),
        ("egress_bytes", "User:app", 23, 2, True, 1),
        ("ingress_bytes", "User:app", 0, 110, True, 2),
        ("ingress_bytes", "User:app", 5, 7, True, 1),
    ]
    assert brief(result.days) == [
        ("broker_seconds", "", 0, 30, False, 1),
        ("partition_minutes", "", 0, 60, True, 1),
        ("storage_byte_minutes", "", 0, 9000, True, 2),
        ("ingress_bytes", "User:__freshet", 0, 5, False, 1),
        ("egress_bytes", "User:app", 0, 42, True, 2),
        ("ingress_bytes", "User:app", 0, 117, True, 3),
    ]
    assert result.report["control_totals"] == {
        "broker_seconds": "30",
        "egress_bytes": "42",
        "ingress_bytes": "122",
        "partition_minutes": "60",
        "storage_byte_minutes": "9000",
    }
    assert result.failed_checks == []


def test_output_has_the_schema_of_the_contract(roll_up, folder):
    roll_up([folder.add([ingress(1, 100)])])
    for table in ("hours", "days"):
        (path,) = [
            path
            for path in (folder.root / "run_id=run_1" / table).glob("*.parquet")
            if pq.ParquetFile(io.BytesIO(path.read_bytes())).metadata.num_rows
        ]
        schema = pq.read_schema(io.BytesIO(path.read_bytes()))
        assert schema.names == list(oracle.OUTPUT)
        assert schema.field("quantity").type == pa.decimal128(38, 0)
        assert schema.field("source_rows").type == pa.int64()
        assert schema.field("billed").type == pa.bool_()


def test_hours_lie_in_small_groups_by_owner_cluster_and_time(roll_up, folder, monkeypatch):
    monkeypatch.setattr(rollup, "ROWS_A_GROUP", 10)
    chance = random.Random(7)
    rows = [
        ingress(
            number,
            1,
            organization_id=f"org_{number % 3}",
            cluster_id=f"cl_{number % 9}",
            window_start_ms=DAY_START_MS + number // 9 * HOUR_MS,
        )
        for number in range(9 * 24)
    ]
    chance.shuffle(rows)
    roll_up([folder.add(rows)])
    groups = []
    for path in sorted((folder.root / "run_id=run_1" / "hours").glob("*.parquet")):
        parquet = pq.ParquetFile(io.BytesIO(path.read_bytes()))
        for number in range(parquet.num_row_groups):
            places = parquet.read_row_group(number).select(list(rollup.HOURS_ORDER[:3]))
            groups.append([tuple(row.values()) for row in places.to_pylist()])
            of_cluster = parquet.metadata.row_group(number).column(1).statistics
            assert of_cluster.has_min_max
    assert max(map(len, groups)) == 10
    places = [place for group in groups for place in group]
    assert len(places) == 9 * 24
    assert places == sorted(places)


def test_a_row_counts_once_however_often_it_is_written(roll_up, folder):
    row = ingress(1, 100)
    inputs = [
        folder.add([row, row]),
        folder.add([row | {"emitted_at_ms": row["emitted_at_ms"] + 1}]),
        folder.add([row, ingress(2, 1)], emitted_at_ms=DAY_START_MS + 2 * DAY_MS),
    ]
    report = roll_up(inputs).report
    assert report["control_totals"] == {"ingress_bytes": "101"}
    assert (report["rows_read"], report["rows_distinct"], report["duplicates"]) == (5, 2, 3)


def test_only_the_day_counts_to_the_millisecond(roll_up, folder):
    rows = [
        ingress(1, 1, window_start_ms=DAY_START_MS - MINUTE_MS),
        ingress(2, 10, window_start_ms=DAY_START_MS),
        ingress(3, 100, window_start_ms=LAST_MINUTE_MS),
        ingress(4, 1000, window_start_ms=LAST_MINUTE_MS + MINUTE_MS),
    ]
    report = roll_up([folder.add(rows, emitted_at_ms=DAY_START_MS + 3 * DAY_MS)]).report
    assert report["control_totals"] == {"ingress_bytes": "110"}
    assert report["rows_distinct"] == 4


def test_contradicting_rows_are_set_aside_whole(roll_up, folder):
    first, second = ingress(1, 100), ingress(1, 101)
    result = roll_up([folder.add([first, ingress(2, 1)]), folder.add([second])])
    assert result.report["control_totals"] == {"ingress_bytes": "1"}
    assert result.report["conflicts"] == 1
    assert [without_reason(row) for row in result.quarantine] == [first, second]
    assert result.failed_checks == []


def test_rows_that_contradict_each_other_in_the_day_are_a_conflict(roll_up, folder):
    """A filter on the day before deduplication would leave one of them, and bill it."""
    first = ingress(1, 100)
    second = ingress(1, 100, window_start_ms=DAY_START_MS - MINUTE_MS)
    result = roll_up([folder.add([first]), folder.add([second])])
    assert result.hours == []
    assert len(result.quarantine) == 2


def test_time_rows_of_one_place_differ_by_their_window(roll_up, folder):
    result = roll_up([folder.add([storage(0, 1, 10), storage(1, 1, 10), storage(1, 1, 10)])])
    assert result.report["control_totals"] == {"storage_byte_minutes": "20"}


def test_sums_are_exact_beyond_64_bits(roll_up, folder):
    rows = [ingress(block, (1 << 63) - 1 - block) for block in range(100)]
    result = roll_up([folder.add(rows)])
    assert [row["quantity"] for row in result.days] == [100 * ((1 << 63) - 1) - 4950]
    assert Decimal(result.report["control_totals"]["ingress_bytes"]) > 1 << 69


def test_a_day_without_usage_has_tables_without_rows(roll_up):
    result = roll_up([])
    assert (result.hours, result.days, result.quarantine) == ([], [], [])
    assert result.report["control_totals"] == {}
    assert result.report["content_sha256"] == oracle.content_sha256({"hours": [], "days": []})
    assert result.failed_checks == []


def parquet(table):
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def damaged_files(folder):
    """Inputs that must be left out, by the reason."""
    sound = pa.Table.from_pylist([ingress(1, 100)], schema=USAGE_SCHEMA)
    texts = sound["quantity"].cast(pa.string())
    text = sound.set_column(sound.schema.get_field_index("quantity"), "quantity", texts)
    # The only row of its meter: a sum of nothing but nulls is null.
    minutes = storage(0, 1, 1, meter="partition_minutes", partition=None)
    without_quantity = pa.Table.from_pylist([minutes], schema=USAGE_SCHEMA).drop(["quantity"])
    missing = folder.add([ingress(11, 1)])
    folder.path(missing["key"]).unlink()
    cut = folder.add([ingress(12, 1)])
    folder.path(cut["key"]).write_bytes(folder.path(cut["key"]).read_bytes()[:-1])
    altered = folder.add([ingress(13, 1)])
    data = bytearray(folder.path(altered["key"]).read_bytes())
    data[len(data) // 2] ^= 1
    folder.path(altered["key"]).write_bytes(data)
    return [
        ("missing", missing),
        ("size", cut),
        ("sha256", altered),
        ("unreadable", folder.add_bytes(b"not Parquet, but as the manifest says", 1)),
        ("unreadable", folder.add_bytes(parquet(text), 1)),
        ("rows", folder.add([ingress(14, 1)]) | {"rows": 2}),
        ("incomplete", folder.add_bytes(parquet(sound.drop(["principal"])), 1)),
        ("incomplete", folder.add_bytes(parquet(without_quantity), 1)),
        ("incomplete", folder.add([ingress(15, 1, schema_version=2)])),
        ("incomplete", folder.add([ingress(15, 1, schema_version=3)])),
        ("incomplete", folder.add([ingress(15, 1) | {"block": None}])),
        ("incomplete", folder.add([storage(0, 1, 1, lane_file=1)])),
        ("incomplete", folder.add([storage(0, 1, 1, block=1)])),
    ]


def test_damaged_files_are_named_and_left_out(roll_up, folder):
    damaged = damaged_files(folder)
    sound = [folder.add([ingress(block, 1)]) for block in range(100, 103)]
    report = roll_up([*(file for _, file in damaged), *sound]).report
    reasons = {(damage["key"], damage["reason"]) for damage in report["damaged_inputs"]}
    assert reasons == {(file["key"], reason) for reason, file in damaged}
    assert report["control_totals"] == {"ingress_bytes": "3"}


def test_rows_that_cannot_be_fail_their_checks(roll_up, folder):
    rows = [ingress(1, -1), ingress(2, 1, meter="new_meter"), storage(59, 2, 1)]
    result = roll_up([folder.add(rows)])
    assert result.failed_checks == [
        "no_negative_quantities",
        "known_meters",
        "windows_within_an_hour",
    ]


@pytest.mark.parametrize("seed", [1, 2])
def test_random_days_are_as_the_oracle_says(roll_up, folder, seed):
    rows = random_rows(seed)
    rows += spoil_rows(seed, rows)
    inputs = [
        folder.add(file, DAY_START_MS + n) for n, file in enumerate(split_rows(seed, rows, 7))
    ]
    inputs.append(folder.add_bytes(b"damaged", 1))
    result = roll_up(inputs)
    expected = oracle.roll_up(folder.run(inputs))
    assert expected.conflicts
    assert expected.duplicates
    assert_as_oracle(result, expected)
    assert result.failed_checks == []


def test_a_lane_file_is_billed_by_its_sums_alone(roll_up, folder):
    blocks = [ingress(block, 10 + block) for block in range(20)]
    inputs = [folder.add(blocks[:7]), folder.add(sum_files(blocks)[:1])]
    result = roll_up(inputs)
    # Blocks 0 to 9 are the first file's, and of the second nothing was read yet.
    assert result.report["control_totals"] == {"ingress_bytes": str(sum(range(10, 20)))}
    assert result.report["superseded"] == 7
    assert_as_oracle(result, oracle.roll_up(folder.run(inputs)))
    assert result.failed_checks == []


@pytest.mark.parametrize("seed", [3, 4])
def test_random_days_of_mixed_versions_are_as_the_oracle_says(roll_up, folder, seed):
    rows = random_rows(seed)
    files = sum_files(rows)
    draw = random.Random(seed)
    some = [row for row in files if draw.random() < 0.5]
    rows += spoil_rows(seed, [*rows, *some]) + some
    inputs = [
        folder.add(file, DAY_START_MS + n) for n, file in enumerate(split_rows(seed, rows, 7))
    ]
    result = roll_up(inputs)
    expected = oracle.roll_up(folder.run(inputs))
    assert expected.superseded
    assert expected.conflicts
    assert_as_oracle(result, expected)
    assert result.failed_checks == []


def test_order_files_and_partitions_do_not_matter(spark, roll_up, folder, monkeypatch):
    rows = random_rows(9)
    rows += spoil_rows(9, rows)
    first = roll_up([folder.add(rows)], "whole")
    again = roll_up([folder.add(rows)], "again")
    files = [folder.add(file, DAY_START_MS + n) for n, file in enumerate(split_rows(5, rows, 7))]
    spark.conf.set("spark.sql.files.maxPartitionBytes", "20000")
    monkeypatch.setattr(runner, "ROWS_PER_PARTITION", len(rows) // 5)
    try:
        pieces = roll_up(files, "pieces")
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    for other in (again, pieces):
        assert other.report["content_sha256"] == first.report["content_sha256"]
        assert (other.hours, other.days) == (first.hours, first.days)
        assert other.quarantine == first.quarantine


def test_different_tables_have_different_hashes(roll_up, folder):
    one = roll_up([folder.add([ingress(1, 1), ingress(2, 2, topic_id="b" * 32)])], "one")
    other = roll_up([folder.add([ingress(1, 2), ingress(2, 1, topic_id="b" * 32)])], "other")
    assert one.report["control_totals"] == other.report["control_totals"]
    assert one.report["content_sha256"] != other.report["content_sha256"]


def test_an_output_folder_that_exists_is_refused(roll_up, folder):
    roll_up([])
    before = sorted(folder.root.rglob("*"))
    with pytest.raises(JobError, match="exists"):
        roll_up([])
    assert sorted(folder.root.rglob("*")) == before


CONTRADICTIONS: list[dict[str, int | bool]] = [
    {"quantity": 6},
    {"billed": False},
    {"window_start_ms": DAY_START_MS - MINUTE_MS, "window_end_ms": DAY_START_MS},
    {"window_end_ms": DAY_START_MS + 2 * MINUTE_MS},
    # Ingress has no counter, so one copy has none and the other one has.
    {"cumulative": 5},
]


@pytest.mark.parametrize("owners", [1, 2], ids=["one owner", "two owners"])
def test_whatever_copies_disagree_in_none_of_them_counts(roll_up, folder, owners):
    """Copies that differ only in their owner are found in another way than all others."""
    rows = [ingress(block, 5) for block in range(len(CONTRADICTIONS))]
    copies = [row | change for row, change in zip(rows, CONTRADICTIONS, strict=True)]
    if owners == 2:
        rows.append(ingress(200, 9))
        copies.append(rows[-1] | {"organization_id": "org_2"})
    expected = len(rows)
    rows += [ingress(100, 7), ingress(101, 1)]
    copies.append(ingress(100, 7))
    result = roll_up([folder.add(rows), folder.add(copies)])
    assert_as_oracle(result, oracle.roll_up(folder.root / "run_1.json"))
    assert result.report["conflicts"] == expected
    assert [row["quantity"] for row in result.days] == [8]
    assert result.failed_checks == []
