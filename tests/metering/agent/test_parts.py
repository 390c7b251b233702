"""Settings, progress and what else is small."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokers.settings.errors import SettingsError
from brokers.settings.writing import settings_toml
from metering.agent.metrics import Metrics
from metering.agent.progress import (
    ClusterProgress,
    LaneProgress,
    ProgressFolder,
    encode_progress,
    merge_progress,
    parse_progress,
)
from metering.agent.recovery import progress_of
from metering.agent.rules import Rule, RuleHistory
from metering.agent.settings import load_settings, parse_settings
from metering.agent.slots import BrokerLife, broker_rows, window_end
from metering.events.errors import UsageFormatError
from metering.events.manifests import ClusterEntry, LaneEntry
from metering.events.times import HOUR_MS, MINUTE_MS
from tests.metrics_page import documented, reported_metrics

TOML = """
[cell]
id = "local"
metadata = "m"
dfs = "d"
bucket = "b"
[usage]
location = "u"
progress = "p"
"""
FULL = ClusterProgress(
    organization_id="org_1",
    as_of_ms=9,
    storage_until_ms=HOUR_MS,
    lanes={3: LaneProgress(started_at_ms=1, sequence=7, file=2, until_ms=8, alive_ms=8)},
    over=frozenset({1, 2, 5}),
    rules={"t": RuleHistory(Rule(1, None), Rule(None, 2), 3)},
)


def test_settings_survive_and_have_defaults():
    read = parse_settings(TOML)
    assert read.agent.period_ms == 15_000
    assert read.cell.dfs.is_absolute()
    assert read.usage.location == str(Path("u").absolute())
    assert parse_settings(settings_toml(read)) == read


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("[agent]\nperiod_ms = 0", "agent.period_ms is 0"),
        ("[agent]\nperiod_ms = '1'", "agent.period_ms is '1', want a whole number of 1 or more"),
        ("[agent]\nwindow_minutes = 7", "a whole part of 60"),
        ("[agent]\nagents = 2\nagent_index = 2", "want 0 to 1"),
        ("[agent]\nlog_level = 'loud'", "agent.log_level"),
        ("[agent]\nx = 1", "unknown setting agent.x"),
        ("[x]", "unknown setting x"),
        ("agent = 1", "agent is 1, want a section"),
        ("[agent", "Expected"),
    ],
)
def test_settings_that_make_no_sense_are_named(tmp_path, line, complaint):
    file = tmp_path / "agent.toml"
    file.write_text(f"{line}\n{TOML}" if line == "agent = 1" else f"{TOML}\n{line}\n")
    with pytest.raises(SettingsError) as raised:
        load_settings(file)
    assert complaint in str(raised.value)
    assert str(file) in str(raised.value)


def test_what_must_be_set_is_named():
    with pytest.raises(SettingsError, match=r"usage\.progress must be set"):
        parse_settings(TOML.replace('progress = "p"', ""))


def test_progress_survives():
    assert parse_progress(encode_progress(FULL)) == FULL
    assert parse_progress(encode_progress(ClusterProgress())) == ClusterProgress()
    with pytest.raises(UsageFormatError):
        parse_progress(b"{}")
    with pytest.raises(UsageFormatError):
        parse_progress(encode_progress(FULL).replace(b'"version":1', b'"version":2'))


lanes = st.dictionaries(
    st.integers(1, 4),
    st.builds(
        LaneProgress,
        started_at_ms=st.just(0),
        sequence=st.integers(0, 3),
        file=st.just(0),
        until_ms=st.integers(0, 3),
        alive_ms=st.just(0),
        ended=st.booleans(),
    ),
)
progresses = st.builds(
    ClusterProgress,
    organization_id=st.just("org_1"),
    as_of_ms=st.none() | st.integers(0, 3),
    storage_until_ms=st.none() | st.integers(0, 3),
    closed=st.booleans(),
    lanes=lanes,
    over=st.frozensets(st.integers(1, 4)),
)


@given(progresses, progresses)
def test_progress_never_goes_back(one, other):
    both = merge_progress(one, other)
    assert both == merge_progress(other, one)
    assert merge_progress(both, one) == both
    assert (both.as_of_ms or 0) >= (one.as_of_ms or 0)
    assert (both.storage_until_ms or 0) >= (one.storage_until_ms or 0)
    assert both.over >= one.over
    for incarnation, lane in one.lanes.items():
        if incarnation not in both.over:
            assert both.lanes[incarnation].sequence >= lane.sequence


def test_agents_that_save_together_lose_nothing(tmp_path):
    folder = ProgressFolder(tmp_path / "progress")

    def save(number):
        lane = LaneProgress(started_at_ms=0, sequence=number, until_ms=0, alive_ms=0)
        return folder.save("c.1", ClusterProgress(as_of_ms=number, lanes={number % 4: lane}))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(save, range(40)))
    loaded = folder.load("c.1")
    assert loaded is not None
    assert loaded.as_of_ms == 39
    assert {n: lane.sequence for n, lane in loaded.lanes.items()} == {0: 36, 1: 37, 2: 38, 3: 39}
    assert folder.clusters() == ["c.1"]


def test_a_record_that_cannot_be_read_is_replaced(tmp_path):
    folder = ProgressFolder(tmp_path)
    (tmp_path / "c.json").write_bytes(b"torn")
    with pytest.raises(UsageFormatError):
        folder.load("c")
    assert folder.save("c", FULL) == FULL
    assert folder.load("c") == FULL
    assert folder.load("other") is None


def lane_entry(first, last, *, ended=False):
    return LaneEntry(
        incarnation=1,
        started_at_ms=0,
        ended=ended,
        first_sequence=first,
        last_sequence=last,
        since_ms=first,
        until_ms=last,
    )


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_progress_is_made_anew_up_to_the_first_gap(order):
    spoken = [
        ClusterEntry(
            cluster_id="c", organization_id="o", since_ms=since, as_of_ms=as_of, lanes=(lane,)
        )
        for since, as_of, lane in [
            (None, 5, lane_entry(1, 4)),
            (5, 9, lane_entry(5, 8)),
            (11, 20, lane_entry(12, 20, ended=True)),
        ]
    ]
    made = progress_of([spoken[place] for place in order])
    assert made.as_of_ms == 9
    assert (made.lanes[1].sequence, made.lanes[1].ended) == (8, False)


def test_windows_end_with_their_hour_or_at_a_step():
    assert window_end(0, 4 * MINUTE_MS, 5 * MINUTE_MS) is None
    assert window_end(0, 14 * MINUTE_MS, 5 * MINUTE_MS) == 10 * MINUTE_MS
    assert window_end(7 * MINUTE_MS, 14 * MINUTE_MS, 5 * MINUTE_MS) == 10 * MINUTE_MS
    assert window_end(50 * MINUTE_MS, 5 * HOUR_MS, 5 * MINUTE_MS) == HOUR_MS
    assert window_end(10 * MINUTE_MS, HOUR_MS - 1, HOUR_MS) is None


def test_brokers_count_for_whole_seconds_within_a_window():
    lives = [BrokerLife(1, 1500, 4499), BrokerLife(2, 0, 10**9), BrokerLife(3, 70_000, 80_000)]
    rows = {row.incarnation: row.quantity for row in broker_rows((0, MINUTE_MS), lives)}
    assert rows == {1: 2, 2: 60}


def test_a_lane_is_kept_at_the_further_place_whoever_saves_last():
    far = replace(FULL, lanes={3: replace(FULL.lanes[3], sequence=9)})
    assert merge_progress(far, FULL) == merge_progress(FULL, far) == far


def test_of_rules_those_of_the_last_look_are_kept():
    rule = Rule(retention_ms=1)
    looked = replace(FULL, as_of_ms=HOUR_MS, rules={"t": RuleHistory(rule, rule)})
    assert merge_progress(FULL, looked) == merge_progress(looked, FULL) == looked


def test_the_page_lists_an_agents_metrics():
    assert reported_metrics(Metrics("cell").render()) == documented("Metering agent")
