"""Sums over lane files and rows of their blocks, in any order: what is shown is never too much."""

from dataclasses import replace

import pytest

from metering.agent.rows import stamp_rows, sum_files
from metering.events.manifests import LaneFile
from metering.events.records import USAGE_SCHEMA
from metering.periods import MINUTE_MS
from metering.services.ingest import ingest_usage
from tests.metering.console.conftest import NOON
from tests.metering.console.test_ingest import MINUTE, T, blocks, emit, minutes

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]


def emit_sums(agent, *files):
    """A file with the sums of lane files of ten blocks each, a block a minute."""
    first, last = files[0] * 10, files[-1] * 10 + 9
    entry = agent.entry(T + first * MINUTE_MS, T + (last + 1) * MINUTE_MS, sequences=(first, last))
    (lane,) = entry.lanes
    sums = tuple(
        LaneFile(file=file, first_sequence=10 * file, last_sequence=10 * file + 9) for file in files
    )
    entry = replace(entry, lanes=(replace(lane, files=sums),))
    at_ms = T + (last + 1) * MINUTE_MS
    rows = agent.rows(blocks(*range(first, last + 1)), (), at_ms)
    summed = sum_files(rows.drop_columns(["emitted_at_ms"]))
    return agent.put(at_ms, stamp_rows([summed], at_ms).cast(USAGE_SCHEMA), [entry])


def usage(count):
    """A byte in each of the first minutes."""
    return {("ingress_bytes", minute): 1 for minute in range(count)}


def test_sums_become_minutes_once(agent, store, clock):
    emit_sums(agent, 0, 1)
    emit_sums(agent.twin("agent-2"), 1, 2)
    clock.now = NOON + 40 * MINUTE
    ingest_usage(store=store)
    assert minutes() == usage(30)


def test_a_file_of_which_some_blocks_count_adds_nothing(agent, store, clock):
    emit(agent, 0, 12)
    emit_sums(agent.twin("agent-2"), 0, 1, 2)
    clock.now = NOON + 40 * MINUTE
    ingest_usage(store=store)
    # Of the second file blocks 13 to 19 are missing until the roll-up.
    assert minutes() == usage(13) | {("ingress_bytes", minute): 1 for minute in range(20, 30)}


def test_blocks_of_a_file_that_counts_add_nothing(agent, store, clock):
    emit_sums(agent, 0, 1)
    emit(agent.twin("agent-2"), 5, 25, at=NOON + 27 * MINUTE)
    clock.now = NOON + 40 * MINUTE
    ingest_usage(store=store)
    assert minutes() == usage(26)
