"""What users of other consoles complain of, against the whole service: each has the right value.

`tests/complaints.toml` lists all of these complaints with the tests that hold them. Here are those
that need a real log: records of real clients in several partitions, read by REST, and exports.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import logging
import os
import struct
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

import confluent_kafka
import pytest

from tests.service.api import Api
from tests.service.program import Program
from tests.service.traffic import librdkafka_settings

# The service starts, and clients wait for it, on a machine that may be slow.
pytestmark = pytest.mark.timeout(600)
FILLED, ODD = "filled", "odd"
PARTITIONS, RECORDS = 6, 600
T0_MS = 1_700_000_000_000
STEP_MS = 1000
BEYOND = 2**53 + 1
# Every so many-th record is one that a search looks for; their partitions differ.
RARE_EVERY = 35
RARE = list(range(0, RECORDS, RARE_EVERY))
FLUSH_S = 120


@dataclass(frozen=True)
class Tenant:
    """An organization with a cluster, and an API key."""

    api: Api
    cluster_id: str
    api_key: str
    address: str

    def pages(self, topic, **query):
        """The pages of a topic's records, to the last one."""
        cursor = None
        while True:
            answer = self.api.http.get(
                f"/clusters/{self.cluster_id}/topics/{topic}/messages",
                params={"wake": True, **query} | ({"cursor": cursor} if cursor else {}),
            )
            assert answer.is_success, answer.text
            page = answer.json()
            yield page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def numbers(self, topic=FILLED, **query):
        """The numbers of the records that all pages have, in their order."""
        return [number_of(item) for page in self.pages(topic, **query) for item in page]


def number_of(item):
    """The number of a record of the filled topic. Its place is compared with it."""
    number = json.loads(item["value"]["text"])["n"]
    assert (item["partition"], item["offset"]) == (number % PARTITIONS, str(number // PARTITIONS))
    assert item["timestamp_ms"] == str(T0_MS + number * STEP_MS)
    return number


@pytest.fixture(scope="module")
def tenant(service):
    """A tenant with a topic of numbered records, and one of odd records."""
    api = Api.sign_up(service.address)
    api_key = api.http.headers["Authorization"].removeprefix("Bearer ")
    cluster_id = api.create_cluster("complaints")
    for name, partitions in ((FILLED, PARTITIONS), (ODD, 1)):
        # The records are old, and shall stay.
        configs = {"retention.ms": "-1"}
        body = {"name": name, "partitions": partitions, "configs": configs}
        api.call("POST", f"/clusters/{cluster_id}/topics", body)
    outcomes = []
    settings = librdkafka_settings(api.connect(cluster_id))
    producer = confluent_kafka.Producer(settings, logger=logging.getLogger("producer"))

    def produce(topic, **fields):
        producer.produce(topic, on_delivery=lambda error, _: outcomes.append(error), **fields)

    for number in range(RECORDS):
        state = "rare" if number in RARE else "common"
        value = f'{{"n": {number}, "id": {BEYOND + number}, "state": "{state}"}}'
        produce(
            FILLED,
            value=value,
            key=f"key-{number}",
            partition=number % PARTITIONS,
            timestamp=T0_MS + number * STEP_MS,
        )
    for key, content, headers in ODD_RECORDS:
        produce(ODD, key=key, value=content, headers=headers, partition=0)
    assert producer.flush(FLUSH_S) == 0
    assert outcomes == [None] * (RECORDS + len(ODD_RECORDS))
    yield Tenant(api, cluster_id, api_key, service.address)
    api.leave()


@pytest.mark.parametrize("start", ["oldest", "newest"])
@pytest.mark.parametrize("limit", [5, 500])
def test_a_search_finds_each_record_of_all_partitions_once_and_in_order(tenant, start, limit):
    assert {number % PARTITIONS for number in RARE} == set(range(PARTITIONS))
    query = {"from": start, "limit": limit, "filter": 'value.state = "rare"'}
    assert tenant.numbers(**query) == sorted(RARE, reverse=start == "newest")


@pytest.mark.parametrize("start", ["oldest", "newest"])
def test_a_search_whose_pages_read_little_misses_nothing(tenant, start):
    query = {"from": start, "scan_bytes_max": 4096, "filter": 'value.state = "rare"'}
    pages = [[number_of(item) for item in page] for page in tenant.pages(FILLED, **query)]
    assert len(pages) > PARTITIONS
    assert sorted(number for page in pages for number in page) == RARE
    assert all(page == sorted(page, reverse=start == "newest") for page in pages)


def test_a_search_for_an_integer_beyond_2_53_finds_it_and_not_its_neighbours(tenant):
    for number in (0, 1, 2, 599):
        query = {"from": "oldest", "filter": f"value.id = {BEYOND + number}"}
        (item,) = [item for page in tenant.pages(FILLED, **query) for item in page]
        assert number_of(item) == number
        assert f'"id": {BEYOND + number}' in item["value"]["text"]


@pytest.mark.parametrize("number", [0, 1, 299, 599])
def test_a_time_leads_to_the_first_record_of_it_in_every_partition(tenant, number):
    at_ms = T0_MS + number * STEP_MS
    after = list(range(number, RECORDS))
    assert tenant.numbers(**{"from": "timestamp", "timestamp": at_ms, "limit": 500}) == after
    # One millisecond decides.
    assert tenant.numbers(**{"from": "timestamp", "timestamp": at_ms - 1, "limit": 500}) == after
    later = tenant.numbers(**{"from": "timestamp", "timestamp": at_ms + 1, "limit": 500})
    assert later == after[1:]
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at_ms)
    for zone in (UTC, timezone(timedelta(hours=5, minutes=45)), timezone(-timedelta(hours=9))):
        query = {"from": "timestamp", "timestamp": moment.astimezone(zone).isoformat()}
        (first, *_) = next(tenant.pages(FILLED, **query))
        assert number_of(first) == number


Headers = list[tuple[str, bytes | None]]
LARGE = os.urandom(900_000)
LONG_KEY = b"k" * 100_000
AVRO = b"\x00" + struct.pack(">I", 17) + b"\x02\x80\xff"
REPEATED: Headers = [("a", b"1"), ("a", None), ("a", b""), ("b", b"\xff\x00")]
# Key, value and headers.
ODD_RECORDS: tuple[tuple[bytes | None, bytes | None, Headers], ...] = (
    (b"deleted", None, []),
    (None, b"", []),
    (LONG_KEY, b"of a long key", []),
    (struct.pack(">q", BEYOND), AVRO, REPEATED),
    (b"large", LARGE, []),
)


def shown(content):
    """What REST shows of bytes at first: all of what is short, and how long it is."""
    if content is None:
        return None
    part = content[:65_536]
    return {"bytes": part, "size": len(content), "truncated": len(part) < len(content)}


def read(content):
    """The same of an answer."""
    if content is None:
        return None
    return {
        "bytes": base64.b64decode(content["base64"]),
        "size": content["size"],
        "truncated": content["truncated"],
    }


def test_tombstones_empty_values_long_keys_and_headers_are_what_clients_wrote(tenant):
    items = [item for page in tenant.pages(ODD, **{"from": "oldest"}) for item in page]
    assert len(items) == len(ODD_RECORDS)
    for item, (key, value, headers) in zip(items, ODD_RECORDS, strict=True):
        assert (read(item["key"]), read(item["value"])) == (shown(key), shown(value))
        written = [(header["key"], read(header["value"])) for header in item["headers"]]
        assert written == [(name, shown(content)) for name, content in headers]


@pytest.mark.parametrize("offset", [2, 4])
def test_a_long_key_and_a_large_value_are_read_whole(tenant, offset):
    alone = {"from": "offset", "offset": offset, "partition": 0, "limit": 1, "whole": True}
    ((item,), *_) = tenant.pages(ODD, **alone)
    key, value, _ = ODD_RECORDS[offset]
    whole = {"truncated": False}
    assert read(item["key"]) == shown(key) | whole | {"bytes": key}
    assert read(item["value"]) == shown(value) | whole | {"bytes": value}


def test_an_export_of_records_has_each_once_with_every_digit(tenant, tmp_path):
    program = Program(tenant.address, tmp_path)
    program.environment |= {"FRESHET_API_KEY": tenant.api_key, "FRESHET_CLUSTER": "complaints"}
    lines = program("consume", FILLED, "-b", "-o", "json", "--wake").splitlines()
    items = [json.loads(line) for line in lines]
    assert [number_of(item) for item in items] == list(range(RECORDS))
    ids = [json.loads(item["value"]["text"])["id"] for item in items]
    assert ids == [BEYOND + number for number in range(RECORDS)]
    assert len(program("consume", FILLED, "-b", "--wake").splitlines()) == RECORDS


def test_an_export_of_the_audit_log_has_all_its_entries_in_either_form(tenant):
    listed, cursor = [], None
    while True:
        query = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = tenant.api.http.get("/audit-log", params=query).json()
        listed += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    ids = [entry["id"] for entry in reversed(listed)]
    assert len(ids) == len(set(ids)) > 3
    texts = {
        form: tenant.api.http.get("/audit-log/export", params={"format": form}).text
        for form in ("jsonl", "csv")
    }
    # An export is itself an entry, so that the second one has the first.
    by_line = [json.loads(line)["id"] for line in texts["jsonl"].splitlines()]
    by_row = [row["id"] for row in csv.DictReader(io.StringIO(texts["csv"]))]
    assert by_line[: len(ids)] == ids
    assert by_row[: len(by_line)] == by_line
