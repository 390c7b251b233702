"""A month with usage rows of both versions: its invoice follows from its pack, to the cent."""

import csv
import dataclasses
import hashlib
import io
import json
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from billing.catalog import GIB
from console.base.common.conf import config
from metering.agent.rows import stamp_rows, sum_files
from metering.events.manifests import LaneFile
from metering.events.records import USAGE_SCHEMA, decode_usage
from metering.events.store import FolderUsageStore
from metering.models import UsageRow
from metering.periods import MINUTE_MS, from_ms, to_ms
from metering.services.rollup import roll_up
from metering.services.tracing import trace_row
from tests.billing import world
from tests.billing.test_evidence import pack_of, recompute, unpacked
from tests.console.scopes import as_request_of
from tests.metering.console.files import Agent, Block
from tests.metering.console.jobs import plain_job

CLUSTER = "cl_aaaaaaaaaaaaaaaaaaaa"
# A quantity that no cent divides.
SIZE = 7 * GIB // 10 + 12_345
T = to_ms(datetime(2026, 9, 14, 23, 30, tzinfo=UTC))
DAYS = [datetime(2026, 9, day, tzinfo=UTC).date() for day in (14, 15)]
INGRESS, EGRESS = "ingress_bytes", "egress_bytes"


@pytest.fixture
def store(tmp_path, settings):
    """The usage store of the control plane."""
    store = FolderUsageStore(tmp_path / "usage")
    usage = dataclasses.replace(
        config().usage, location=str(store.root), rollups=str(tmp_path / "rollups")
    )
    settings.FRESHET = dataclasses.replace(config(), usage=usage)
    return store


def block(sequence):
    """Every third one is of what was read. A block a minute, ten in a lane file."""
    meter = EGRESS if sequence % 3 == 2 else INGRESS
    return Block(sequence, T + sequence * MINUTE_MS, (SIZE + sequence,), meter)


def with_counters(rows):
    """The rows with the counter of what was read, as brokers write it beside them."""
    plain = rows.to_pylist()
    for row in plain:
        if row["meter"] == EGRESS:
            read = range(2, row["block"] + 1, 3)
            row |= {"partition": None, "cumulative": sum(SIZE + number for number in read)}
    return pa.Table.from_pylist(plain, schema=USAGE_SCHEMA)


def rows_of(agent, first, last, at_ms):
    return with_counters(agent.rows([block(n) for n in range(first, last + 1)], (), at_ms))


def put_blocks(agent, first, last):
    """A usage file of version 1."""
    since, until = T + first * MINUTE_MS, T + (last + 1) * MINUTE_MS
    entry = agent.entry(since, until, sequences=(first, last))
    return agent.put(until, rows_of(agent, first, last, until), [entry])


def put_sums(agent, first_file, last_file):
    """A usage file of version 2."""
    first, last = first_file * 10, last_file * 10 + 9
    since, until = T + first * MINUTE_MS, T + (last + 1) * MINUTE_MS
    files = [
        LaneFile(file=n, first_sequence=10 * n, last_sequence=10 * n + 9)
        for n in range(first_file, last_file + 1)
    ]
    entry = agent.entry(since, until, sequences=(first, last))
    entry = replace(entry, lanes=(replace(entry.lanes[0], files=tuple(files)),))
    summed = sum_files(rows_of(agent, first, last, until).drop_columns(["emitted_at_ms"]))
    return agent.put(until, stamp_rows([summed], until).cast(USAGE_SCHEMA), [entry])


@pytest.fixture
def manifests(tenant, clock, store):
    """An hour and a half about midnight: an upgrade within a lane file, a way back, an upgrade."""
    world.sign_up(tenant.organization)
    world.make_cluster(tenant.id, CLUSTER, "orders")
    agent = Agent(store, config().cell.id, tenant.id, CLUSTER, started_at_ms=T)
    upgraded = agent.twin("agent-2")
    manifests = [
        put_blocks(agent, 0, 14),
        # Of the second file five blocks are there already, in rows of their own.
        put_sums(upgraded, 1, 3),
        put_blocks(agent, 40, 59),
        put_sums(upgraded, 6, 8),
        # The other agent was still at work: a file that is summed up has all of its blocks too.
        put_blocks(agent, 60, 69),
    ]
    for day in DAYS:
        roll_up(day=day, job=plain_job)
    return manifests


@pytest.fixture
def invoice(tenant, manifests):
    world.issue_invoices(close_early="only two of the days have usage")
    (invoice,) = world.invoices_of(tenant.id)
    return invoice


def used(meter, day=None):
    """What was used, by hand."""
    blocks = [block(sequence) for sequence in range(90)]
    return sum(
        sum(one.quantities)
        for one in blocks
        if one.meter == meter and day in {None, from_ms(one.written_at_ms).date()}
    )


def test_an_invoice_of_both_versions_follows_from_its_pack(invoice, manifests, store, tmp_path):
    lines = {line.meter: int(line.quantity) for line in invoice.lines.all() if line.quantity}
    assert lines == {meter: used(meter) for meter in (INGRESS, EGRESS)}
    files = unpacked(pack_of(invoice))
    result = recompute(tmp_path, files)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"Total {invoice.total_minor / 100:.2f} USD." in result.stdout
    assert invoice.total_minor > 0
    rows = list(csv.DictReader(io.StringIO(files["usage_rows.csv"].decode())))
    assert {(row["meter"], row["window_start"][:10]): int(row["quantity"]) for row in rows} == {
        (meter, str(day)): used(meter, day) for meter in (INGRESS, EGRESS) for day in DAYS
    }
    # The pack names every usage file by its digest, and their rows are of both versions.
    named = {file["key"]: file["sha256"] for file in json.loads(files["usage_files.json"])}
    assert named == {manifest.key: manifest.sha256 for manifest in manifests}
    versions = set()
    for key, digest in named.items():
        data = store.get(key)
        assert hashlib.sha256(data).hexdigest() == digest
        versions.update(decode_usage(data)["schema_version"].to_pylist())
    assert versions == {1, 2}


def test_a_row_leads_to_the_lane_files_that_were_summed_up(invoice, manifests):
    with as_request_of(invoice.organization_id):
        rows = UsageRow.objects.filter(granularity="day", meter=INGRESS).order_by("window_start")
        traced = [{file.file.key: file.lanes for file in trace_row(row)} for row in rows]
    lane_files = [
        {
            key: [summed.file for lane in lanes for summed in lane.files]
            for key, lanes in day.items()
        }
        for day in traced
    ]
    keys = [manifest.key for manifest in manifests]
    # The first day ends with the 30th block.
    assert lane_files == [
        {keys[0]: [], keys[1]: [1, 2, 3]},
        {keys[1]: [1, 2, 3], keys[2]: [], keys[3]: [6, 7, 8], keys[4]: []},
    ]
