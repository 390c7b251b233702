"""Under all faults of agents and files nothing is billed twice, and no shortfall is hidden."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given, settings
from hypothesis import strategies as st

from metering.events.coverage import MARGIN_MS, completeness
from metering.events.keys import manifest_key
from metering.events.records import Meter
from metering.events.times import DAY_MS, HOUR_MS, day_of, floor_to, hours_of
from tests.metering.properties.bill import billed
from tests.metering.properties.model import (
    CLUSTER,
    SKEW_MS,
    START_MS,
    Cluster,
    Quantities,
    duplicate_file,
)
from tests.spark.oracle import roll_up

AGENTS = 3

uses = st.tuples(
    st.just("use"),
    st.sampled_from([Meter.INGRESS_BYTES, Meter.EGRESS_BYTES]),
    st.sampled_from(["User:a", "User:b"]),
    st.integers(1, 1 << 40),
    st.integers(-SKEW_MS, SKEW_MS),
)
waits = st.tuples(st.just("wait"), st.integers(1, HOUR_MS // 2))
starts = st.tuples(st.just("start"))
emissions = st.tuples(
    st.just("emit"),
    st.integers(0, AGENTS - 1),
    st.sampled_from([3, 3, 3, 2, 1, 0]),
    st.sampled_from([None, None, 0, 1, 2]),
)
restarts = st.tuples(st.just("restart_agent"), st.integers(0, AGENTS - 1))
stories = st.lists(
    st.one_of(uses, uses, waits, waits, emissions, emissions, starts, restarts), min_size=10
)
FAULTS = ("lose both", "lose data", "lose manifest", "damage data", "damage manifest")


def played(story):
    """A cluster after a story, whose last broker ended and was read to its end."""
    cluster = Cluster(AGENTS)
    for name, *arguments in story:
        getattr(cluster, name)(*arguments)
    cluster.lanes[-1].ended = True
    cluster.wait(2 * SKEW_MS)
    cluster.emit(0)
    # One more speaks, so that the hours before are known to be over.
    cluster.wait(HOUR_MS + MARGIN_MS)
    cluster.emit(0)
    return cluster


def judge(cluster, store, manifests):
    """Compares a bill with the truth; returns the hours that are judged complete."""
    truth = cluster.truth()
    bill = billed(store, manifests)
    over = {key: quantity for key, quantity in bill.items() if quantity > truth[key]}
    assert not over, "billed above the truth"
    last = max([cluster.now_ms, *(hour for _, _, hour in truth)])
    hours = completeness(manifests, cluster_id=CLUSTER, since_ms=START_MS, until_ms=last + 1)
    complete = {hour.hour_ms for hour in hours if hour.complete}
    short = {hour for (meter, who, hour), n in truth.items() if bill[meter, who, hour] < n}
    assert not short & complete, "a shortfall is hidden"
    return complete


@given(stories)
@example([("wait", 1), ("emit", 0, 3, None), ("start",), ("emit", 0, 3, None), ("wait", 1)])
def test_without_losses_all_is_billed_once_and_complete(story):
    cluster = played(story)
    manifests = cluster.store.manifests()
    complete = judge(cluster, cluster.store, manifests)
    assert complete >= set(hours_of(START_MS, floor_to(cluster.now_ms, HOUR_MS) - HOUR_MS))
    bill = billed(cluster.store, manifests)
    ended = floor_to(cluster.now_ms, HOUR_MS)
    truth = cluster.truth()
    assert {k: n for k, n in bill.items() if k[2] < ended} == {
        k: n for k, n in truth.items() if k[2] < ended
    }


@settings(max_examples=150)
@given(stories, st.data())
def test_no_fault_bills_above_the_truth_or_hides_a_shortfall(story, data):
    cluster = played(story)
    store = cluster.store.copy()
    whole = store.manifests()
    for manifest in whole:
        if data.draw(st.booleans(), label="again"):
            duplicate_file(store, manifest, cluster.now_ms + data.draw(st.integers(0, HOUR_MS)))
    faults = st.dictionaries(st.sampled_from(whole).map(lambda m: m.key), st.sampled_from(FAULTS))
    for key, fault in data.draw(faults, label="faults").items():
        what, which = fault.split()
        targets = {"data": [key], "manifest": [manifest_key(key)]}
        for target in targets.get(which, [key, manifest_key(key)]):
            getattr(store, what)(target)
    left = data.draw(st.permutations(store.manifests()), label="order")
    judge(cluster, store, left)


@given(stories, st.data())
def test_late_files_make_good_what_lacked(story, data):
    cluster = played(story)
    manifests = cluster.store.manifests()
    late = data.draw(st.sets(st.sampled_from(range(len(manifests)))), label="late")
    judge(cluster, cluster.store, [m for n, m in enumerate(manifests) if n not in late])
    before = billed(cluster.store, manifests)
    order = data.draw(st.permutations(manifests), label="order")
    assert billed(cluster.store, order) == before
    assert judge(cluster, cluster.store, order) == judge(cluster, cluster.store, manifests)


@settings(max_examples=25)
@given(stories, st.data())
def test_the_oracle_of_the_roll_up_bills_the_same(story, data):
    cluster = played(story)
    manifests = cluster.store.manifests()
    left = data.draw(st.lists(st.sampled_from(manifests), unique_by=lambda m: m.key), label="left")
    expected = billed(cluster.store, left)
    with TemporaryDirectory() as folder:
        assert by_oracle(cluster.store, left, Path(folder)) == +expected


def by_oracle(store, manifests, folder):
    """The same by the roll-up's oracle, day by day, from files in a folder."""
    for manifest in manifests:
        path = folder / manifest.key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(store.get(manifest.key))
    inputs = [
        {name: getattr(manifest, name) for name in ("key", "size_bytes", "sha256", "rows")}
        for manifest in manifests
    ]
    windows = [m for m in manifests if m.rows]
    first = min((m.window_start_ms for m in windows), default=0)
    last = max((m.window_end_ms for m in windows), default=0)
    sums: Quantities = Counter()
    for day_ms in range(floor_to(first, DAY_MS), last, DAY_MS):
        run = {"day": day_of(day_ms).isoformat(), "usage_root": str(folder), "inputs": inputs}
        manifest = folder / "run.json"
        manifest.write_text(json.dumps(run))
        for row in roll_up(manifest).hours:
            sums[row["meter"], row["principal"] or None, row["window_start_ms"]] += row["quantity"]
    return sums
