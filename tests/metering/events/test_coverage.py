"""Hours are complete when nothing of them can be missing, and only then."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metering.events.coverage import MARGIN_MS, Coverage, completeness, join_entries
from metering.events.manifests import (
    ClusterEntry,
    LaneEntry,
    StorageEntry,
    UsageManifest,
    encode_manifest,
    parse_manifest,
)
from metering.events.times import HOUR_MS, MINUTE_MS

H = 1_800_000_000_000 - 1_800_000_000_000 % HOUR_MS
STEP = 20 * MINUTE_MS


def manifest(*entries):
    return UsageManifest(
        cell="local",
        key="k",
        size_bytes=0,
        sha256="",
        rows=0,
        window_start_ms=0,
        window_end_ms=0,
        emitted_at_ms=0,
        agent="a",
        clusters=entries,
    )


def entry(since_ms, as_of_ms, *lanes, storage=None, closed=False):
    return ClusterEntry(
        cluster_id="c",
        organization_id="o",
        since_ms=since_ms,
        as_of_ms=as_of_ms,
        lanes=lanes,
        storage=storage and StorageEntry(since_ms=storage[0], until_ms=storage[1]),
        closed=closed,
    )


def lane(sequences, times, *, incarnation=1, started=H, ended=False):
    return LaneEntry(
        incarnation=incarnation,
        started_at_ms=started,
        ended=ended,
        first_sequence=sequences[0],
        last_sequence=sequences[1],
        since_ms=times[0],
        until_ms=times[1],
    )


def history():
    """Three hours in steps of 20 minutes. Lane 1 lives until the second hour, lane 2 in it alone,
    lane 3 from then on. The first manifest is from before the first hour."""
    manifests = [manifest(entry(None, H - 1, storage=(H, H)))]
    for step in range(10):
        since, until = H - 1 + step * STEP, H - 1 + (step + 1) * STEP
        first = step * 10
        lanes = []
        if step < 4:
            lanes.append(lane((first, first + 9), (max(since, H), until), ended=step == 3))
        if step == 4:
            start = since + 5
            lanes.append(lane((0, 3), (start, until), incarnation=2, started=start, ended=True))
        if step >= 5:
            start = H + 5 * STEP
            lanes.append(
                lane((first, first + 9), (max(since, start), until), incarnation=3, started=start)
                if step > 5
                else lane((0, 59), (start, until), incarnation=3, started=start)
            )
        storage = (H + step * STEP, H + (step + 1) * STEP)
        manifests.append(manifest(entry(since, until, *lanes, storage=storage)))
    return manifests


def complete(manifests, hours=4):
    judged = completeness(manifests, cluster_id="c", since_ms=H, until_ms=H + hours * HOUR_MS)
    assert [hour.hour_ms for hour in judged] == [H + n * HOUR_MS for n in range(hours)]
    assert all(bool(hour.reason) is not hour.complete for hour in judged)
    return [hour.complete for hour in judged]


def test_what_is_whole_is_complete_up_to_its_end():
    assert complete(history()) == [True, True, True, False]


@given(st.permutations(range(11)), st.lists(st.integers(0, 10), max_size=5))
def test_order_and_repeats_do_not_matter(order, repeated):
    whole = history()
    assert complete([whole[n] for n in [*order, *repeated]]) == [True, True, True, False]


@pytest.mark.parametrize("lost", range(11))
def test_a_lost_manifest_makes_its_hours_incomplete(lost):
    whole = history()
    judged = complete(whole[:lost] + whole[lost + 1 :])
    if lost == 0:
        # The first manifest says that there was nothing before.
        assert judged == [False, True, True, False]
        return
    start = H - 1 + (lost - 1) * STEP
    touched = {
        hour
        for hour in range(4)
        if start - MARGIN_MS < H + (hour + 1) * HOUR_MS
        and start + STEP + MARGIN_MS > H + hour * HOUR_MS
    }
    assert judged == [hour not in touched and hour < 3 for hour in range(4)]


@given(st.sets(st.integers(0, 10)))
def test_no_hour_is_complete_of_which_something_is_lost(lost):
    judged = complete([manifest for n, manifest in enumerate(history()) if n not in lost])
    for n in lost - {0}:
        hour = (n - 1) * STEP // HOUR_MS
        assert not judged[hour]


def test_an_hour_waits_for_the_margin():
    def speaks(as_of_ms):
        return [manifest(entry(None, as_of_ms, lane((0, 5), (H, H + HOUR_MS))))]

    assert complete(speaks(H + HOUR_MS + MARGIN_MS), 1) == [True]
    assert complete(speaks(H + HOUR_MS + MARGIN_MS - 1), 1) == [False]


def test_a_lane_that_nobody_could_read_is_a_hole():
    unread = lane((0, -1), (H + 5, H + 5), incarnation=2, started=H + 5)
    later = H + 2 * HOUR_MS
    assert complete([manifest(entry(None, later, unread))], 1) == [False]
    read = lane((0, 7), (H + 5, later), incarnation=2, started=H + 5)
    assert complete([manifest(entry(None, later, unread), entry(later, later + 1, read))], 1) == [
        True
    ]


def test_a_lane_without_its_first_blocks_is_a_hole_of_its_first_hour():
    later = H + 3 * HOUR_MS
    rest = lane((40, 50), (H + HOUR_MS + 2 * MARGIN_MS, later))
    assert complete([manifest(entry(None, later, rest))], 2) == [False, False]
    rest = lane((40, 50), (H + HOUR_MS - 2 * MARGIN_MS, later))
    assert complete([manifest(entry(None, later, rest))], 2) == [False, True]


@pytest.mark.parametrize("later", range(20))
def test_a_quiet_lane_is_covered_in_whatever_order_its_entries_are_kept(later):
    times = [H, H + 1 + later, H + HOUR_MS + later, H + 2 * HOUR_MS]
    quiet = [lane((0, -1), span) for span in itertools.pairwise(times)]
    said = [
        entry(since, until, coverage)
        for since, until, coverage in zip([None, *times[1:]], times[1:], quiet, strict=False)
    ]
    assert complete([manifest(*said)], 1) == [True]


def test_two_agents_that_say_the_same_are_one():
    first = entry(None, H + 1, lane((0, 3), (H, H + 1)))
    ahead = entry(H + 1, H + 2 * HOUR_MS, lane((4, 90), (H + 1, H + 2 * HOUR_MS)))
    behind = entry(H + 1, H + HOUR_MS, lane((4, 50), (H + 1, H + HOUR_MS)))
    assert complete([manifest(first, behind, ahead)], 1) == [True]
    # Who goes on from the one that was further leaves no hole with the other.
    last = entry(
        H + 2 * HOUR_MS, H + 3 * HOUR_MS, lane((91, 99), (H + 2 * HOUR_MS, H + 3 * HOUR_MS))
    )
    assert complete([manifest(first, behind, ahead, last)], 2) == [True, True]


def test_time_that_is_not_measured_is_a_hole():
    later = H + 4 * HOUR_MS
    measured = [entry(None, later, storage=(H, H + HOUR_MS))]
    assert complete([manifest(*measured)], 2) == [True, False]
    measured.append(entry(later, later + 1, storage=(H + HOUR_MS + MINUTE_MS, later)))
    assert complete([manifest(*measured)], 3) == [True, False, True]


def test_a_cluster_that_is_gone_stays_complete():
    gone = entry(None, H + MINUTE_MS, storage=(H, H + MINUTE_MS), closed=True)
    assert complete([manifest(gone)], 4) == [True] * 4


def test_of_an_unknown_cluster_nothing_is_complete():
    assert complete([], 2) == [False, False]
    coverage = Coverage()
    coverage.add(history()[0])
    assert coverage.clusters() == ["c"]


def _random_entries(draw):
    """Entries of a cluster as agents write them: lanes come and end, two agents may write at the
    same time, a time may lack, entries may be lost or come twice."""
    entries, since, lanes = [], None, {}
    sequences: dict[int, int] = {}
    at = H
    for number in range(draw(st.integers(1, 25))):
        if draw(st.integers(0, 5)) == 0:
            lanes[number + 1] = at + draw(st.integers(-90_000, 0))
        until = at + draw(st.sampled_from([MINUTE_MS, STEP, 3 * STEP]))
        listed = []
        for incarnation, start in list(lanes.items()):
            low = sequences.get(incarnation, 0) + 1
            high = low + draw(st.integers(-1, 3))
            ended = draw(st.integers(0, 9)) == 0
            times = (max(at, start), until + draw(st.sampled_from([0, 0, 0, 500, -500])))
            listed.append(
                lane((low, high), times, incarnation=incarnation, started=start, ended=ended)
            )
            sequences[incarnation] = high
            if ended:
                del lanes[incarnation]
        storage = (at, until) if draw(st.integers(0, 19)) else None
        closed = draw(st.integers(0, 29)) == 0
        entries.append(entry(since, until, *listed, storage=storage, closed=closed))
        if draw(st.integers(0, 9)) == 0:
            entries.append(entry(since, until + 1, *listed, storage=storage))
        since = at = until
    kept = [one for one in entries if draw(st.integers(0, 14))]
    return draw(st.permutations(kept + kept[: draw(st.integers(0, 3))]))


@given(st.data())
def test_joined_entries_say_the_same(data):
    entries = _random_entries(data.draw)
    joined = join_entries(entries)
    assert len(joined) <= len(set(entries))
    plain, short = Coverage(), Coverage()
    for one in entries:
        plain.add_entry(one)
    for one in joined:
        short.add_entry(one)
    period = {"since_ms": H - HOUR_MS, "until_ms": H + 30 * HOUR_MS}
    assert short.hours("c", **period) == plain.hours("c", **period)
    # And again, as where replacements of several days are looked at together.
    assert join_entries([*joined, *joined]) == join_entries(joined)
    assert parse_manifest(encode_manifest(manifest(*joined))) == manifest(*joined)


def test_a_month_of_a_lane_is_a_few_entries():
    entries = [entry(None, H, lane((0, 0), (H - MINUTE_MS, H)), storage=(H - MINUTE_MS, H))]
    for number in range(30 * 24 * 60):
        since = H + number * MINUTE_MS
        covered = lane((number + 1, number + 1), (since, since + MINUTE_MS))
        entries.append(entry(since, since + MINUTE_MS, covered, storage=(since, since + MINUTE_MS)))
    assert len(join_entries(entries)) == 2
