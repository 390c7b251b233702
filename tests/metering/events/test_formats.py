"""Rows, keys, manifests and slots say the same after being written and read."""

import dataclasses
import json
from datetime import date

import pyarrow as pa
import pytest

from metering.events.errors import UsageFormatError
from metering.events.keys import data_key, manifest_key, parse_key, slot_key
from metering.events.manifests import (
    ClusterEntry,
    LaneEntry,
    StorageEntry,
    UsageManifest,
    encode_manifest,
    matches_manifest,
    parse_manifest,
)
from metering.events.records import (
    AGREEING,
    COLUMNS,
    LANE_IDENTITY,
    USAGE_SCHEMA,
    decode_usage,
    encode_usage,
)
from metering.events.slots import Slot, SlotRow, encode_slot, parse_slot

ROW = {
    "schema_version": 1,
    "cell": "local",
    "cluster_id": "lkc-1",
    "organization_id": "org_1",
    "incarnation": 3,
    "lane_file": 0,
    "block": 17,
    "topic_id": "0" * 31 + "1",
    "partition": None,
    "principal": "User:alice",
    "meter": "egress_bytes",
    "window_start_ms": 1_800_000_000_000,
    "window_end_ms": 1_800_000_060_000,
    "quantity": 2**40,
    "cumulative": 2**50,
    "billed": True,
    "emitted_at_ms": 1_800_000_070_000,
}
MANIFEST = UsageManifest(
    cell="local",
    key=data_key("local", 1_800_000_070_000, "ab" * 32),
    size_bytes=3,
    sha256="ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    rows=1,
    window_start_ms=1_800_000_000_000,
    window_end_ms=1_800_000_060_000,
    emitted_at_ms=1_800_000_070_000,
    agent="agent 1",
    clusters=(
        ClusterEntry(
            cluster_id="lkc-1",
            organization_id="org_1",
            since_ms=None,
            as_of_ms=1_800_000_070_000,
            lanes=(
                LaneEntry(
                    incarnation=3,
                    started_at_ms=1_800_000_000_001,
                    ended=False,
                    first_sequence=0,
                    last_sequence=-1,
                    since_ms=1_800_000_000_001,
                    until_ms=1_800_000_000_001,
                ),
            ),
            storage=StorageEntry(since_ms=0, until_ms=60_000),
        ),
        ClusterEntry(
            cluster_id="lkc-2", organization_id="org_1", since_ms=5, as_of_ms=6, closed=True
        ),
    ),
    topics={"lkc-1/00": "orders"},
)
SLOT = Slot(
    cell="local",
    cluster_id="lkc-1",
    window_start_ms=3_600_000,
    window_end_ms=3_720_000,
    rows=(
        SlotRow(meter="broker_seconds", incarnation=3, quantity=120, billed=False),
        SlotRow(meter="storage_byte_minutes", topic_id="00", partition=0, quantity=9, billed=True),
    ),
)


def test_rows_survive_with_dictionary_columns():
    plain = pa.Table.from_pylist([ROW] * 3, schema=USAGE_SCHEMA)
    at = COLUMNS.index("principal")
    packed = plain.set_column(at, "principal", plain["principal"].dictionary_encode())
    assert decode_usage(encode_usage(packed)).equals(plain)
    assert decode_usage(encode_usage(plain)).schema == USAGE_SCHEMA


def test_other_columns_are_refused():
    table = pa.Table.from_pylist([ROW], schema=USAGE_SCHEMA)
    with pytest.raises(UsageFormatError, match="columns"):
        encode_usage(table.drop_columns(["billed"]))
    with pytest.raises(UsageFormatError, match="not a usage file"):
        decode_usage(b"PAR1 and no more")


def test_each_column_is_identity_or_agrees_or_is_volatile():
    assert {*LANE_IDENTITY, *AGREEING, "emitted_at_ms"} == set(COLUMNS)


def test_keys_say_what_they_are_of():
    key = data_key("eu-1", 1_800_000_070_000, "ab" * 32)
    assert key == f"v1/cell=eu-1/day=2027-01-15/1800000070000-{'ab' * 8}.parquet"
    parsed = parse_key(manifest_key(key))
    assert parsed is not None
    assert (parsed.cell, parsed.day, parsed.is_manifest) == ("eu-1", date(2027, 1, 15), True)
    assert parse_key(slot_key("eu-1", "lkc-1", 0)) is None
    with pytest.raises(UsageFormatError):
        data_key("../x", 0, "ab" * 32)


def test_a_manifest_survives():
    assert parse_manifest(encode_manifest(MANIFEST)) == MANIFEST
    assert matches_manifest(MANIFEST, b"abc")
    assert not matches_manifest(MANIFEST, b"abd")
    assert not matches_manifest(MANIFEST, b"ab")


@pytest.mark.parametrize(
    "harm",
    [
        lambda plain: plain.pop("clusters"),
        lambda plain: plain.update(version=2),
        lambda plain: plain.update(rows=-1),
        lambda plain: plain.update(rows="1"),
        lambda plain: plain.update(rows=True),
        lambda plain: plain["clusters"][0]["lanes"][0].update(ended=1),
        lambda plain: plain["clusters"][0].update(storage={"since_ms": 1}),
        lambda plain: plain.update(topics=[]),
    ],
)
def test_a_harmed_manifest_is_refused(harm):
    plain = json.loads(encode_manifest(MANIFEST))
    harm(plain)
    with pytest.raises(UsageFormatError):
        parse_manifest(json.dumps(plain).encode())


def test_a_torn_manifest_is_refused():
    with pytest.raises(UsageFormatError):
        parse_manifest(encode_manifest(MANIFEST)[:-1])


def test_a_slot_survives_in_any_order_of_rows():
    data = encode_slot(SLOT)
    assert parse_slot(data) == SLOT
    assert encode_slot(dataclasses.replace(SLOT, rows=SLOT.rows[::-1])) == data


@pytest.mark.parametrize(
    ("start_ms", "end_ms"),
    [(0, 0), (0, 59_999), (1, 60_000), (3_540_000, 3_660_000), (60_000, 0)],
)
def test_a_slot_is_of_whole_minutes_in_one_hour(start_ms, end_ms):
    with pytest.raises(UsageFormatError, match="minutes"):
        encode_slot(dataclasses.replace(SLOT, window_start_ms=start_ms, window_end_ms=end_ms))


def test_a_harmed_slot_is_refused():
    with pytest.raises(UsageFormatError, match="damaged"):
        parse_slot(encode_slot(SLOT).replace(b",9,", b",8,"))
    with pytest.raises(UsageFormatError):
        parse_slot(b"{}")
