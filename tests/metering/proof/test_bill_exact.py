"""The bill is exact, in the short form: one story of faults, and not a byte too many."""

from __future__ import annotations

import dataclasses
import os
import random
from collections import Counter
from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest

from console.base.common.conf import config
from console.base.common.tenancy import system_scope
from metering.choices import RunState
from metering.models import ProvisionalMinute, UsageRow
from metering.services.rollup import roll_up
from tests.metering.console.jobs import plain_job
from tests.metering.proof.counting_proxy import SERVICE, Counted, Seen
from tests.metering.proof.limits import SETTLING_MS, Spell
from tests.metering.proof.load import KEY, MEMBER
from tests.metering.proof.story import Plan, Story
from tests.metering.proof.unbilled import sort_unbilled
from tests.metering.proof.verdict import Comparison
from tests.metering.proof.versions import BLOCKS, SUMS, sums_beside_blocks
from tests.spark.jobs import rollup_in

SEED = int(os.environ.get("FRESHET_PROOF_SEED") or random.randrange(1 << 16))


@pytest.fixture
def story(tmp_path, settings):
    """Three tenants, faults, and files that went astray; the control plane reads the same folder.

    Some of the files are late.
    """
    said: list[str] = []
    plan = Plan(
        SEED,
        load_s=10.0,
        quiet_s=0.0,
        broker_kills=3,
        agent_kills=2,
        limits=1,
        versions=(BLOCKS, SUMS, BLOCKS),
    )
    story = Story(tmp_path / "story", plan, said.append)
    usage = dataclasses.replace(
        config().usage,
        location=str(story.usage.root),
        rollups=str(tmp_path / "rollups"),
        spark_master="local[2]",
    )
    settings.FRESHET = dataclasses.replace(config(), usage=usage)
    story.use()
    story.disturb()
    return story


def rolled_up(story, job):
    """Rolls every day of a story up; gives the runs' states."""
    runs = [roll_up(day=date.fromisoformat(day), early=True, job=job) for day in story.days()]
    return {run.state for run in runs}


def sums(rows):
    """Billed quantities by (cluster, meter, topic, principal)."""
    quantities: Counter[tuple[str, str, str, str]] = Counter()
    with system_scope():
        for row in rows():
            quantities[row.cluster_id, row.meter, row.topic_id, row.principal] += int(row.quantity)
    return quantities


def published():
    """What invoices are made of."""
    return sums(lambda: UsageRow.objects.filter(granularity="day", billed=True).current())


def not_billed():
    """What is published and in no invoice."""
    return sums(lambda: UsageRow.objects.filter(granularity="day", billed=False).current())


def minutes():
    """What the console, budgets and estimates see."""
    return sums(lambda: ProvisionalMinute.objects.filter(billed=True))


@pytest.mark.timeout(600)
@pytest.mark.django_db
def test_what_is_published_is_what_was_used(story, spark):
    story.usage.hold_back(0.3)
    assert RunState.PUBLISHED in rolled_up(story, plain_job)
    early = [story.judge(tenant, published()) for tenant in story.cell.tenants]
    assert [verdict.over for verdict in early] == [0, 0, 0], SEED

    story.usage.deliver()
    rolled_up(story, rollup_in(spark))
    billed = published()
    # Once more, in plain Python: the same rows, so nothing new.
    assert rolled_up(story, plain_job) == {RunState.UNCHANGED}, SEED
    assert published() == billed, SEED
    check_minutes(story, billed)
    outcome = story.outcome(billed, not_billed())
    for verdict in outcome.verdicts:
        check(verdict)
    assert [time.over for time in outcome.times] == [0, 0, 0], SEED
    assert outcome.unbilled.others.total() == 0, (SEED, outcome.unbilled)
    # Nothing was wrong with the other two, and each was there to be left out.
    assert outcome.unbilled.internal, SEED
    assert outcome.unbilled.service, SEED
    check_limits(story)
    # An upgrade and a way back, in which agents made rows of both versions. Of one lane file they
    # do so only where the upgrade comes within it.
    versions = outcome.facts["versions"]
    assert versions["lane_files_by_blocks"], (SEED, versions)
    assert versions["lane_files_summed"], (SEED, versions)


def check_minutes(story, billed):
    """Minutes are what is billed, but for sums of which they have a part already."""
    shown, doubtful = minutes(), sums_beside_blocks(story.usage.files())
    short = {whose: size - shown[whose] for whose, size in billed.items()}
    assert shown.keys() <= billed.keys(), SEED
    wrong = {
        whose: (size, doubtful[whose])
        for whose, size in short.items()
        if not 0 <= size <= doubtful[whose]
    }
    assert not wrong, (SEED, wrong)


def check_limits(story):
    """Budgets acted on all three, each in another way first, and nothing slipped past them."""
    limits = story.facts["limits"]
    assert [limit["kinds"] for limit in limits] == [["refuse"], ["throttle"], ["refuse"]]
    assert [limit["slipped_bytes"] for limit in limits] == [0, 0, 0], (SEED, limits)
    assert limits[0]["records_refused"], (SEED, limits)
    assert limits[1]["throttled_ms"], (SEED, limits)
    assert limits[2]["records_refused"], (SEED, limits)


def check(verdict):
    """Ingress to the byte; egress too but for the last moments of brokers that were killed."""
    tenant = f"seed {SEED}, {verdict.tenant.cluster_id}: {verdict.details()}"
    assert verdict.proxy_errors == (), tenant
    assert verdict.acked_beyond_log == 0, tenant
    assert verdict.ingress.truth, tenant
    assert verdict.egress.truth, tenant
    assert verdict.ingress.billed == verdict.ingress.truth, tenant
    assert verdict.egress.over == 0, tenant
    assert verdict.egress.unforgivable == 0, tenant
    assert verdict.service_egress.wrong == 0, tenant
    # What went through the service for others is among it.
    assert KEY in principals(verdict.ingress.billed), tenant
    assert MEMBER in principals(verdict.egress.billed), tenant
    if not verdict.tenant.strikes:
        assert verdict.egress.billed == verdict.egress.truth, tenant


def principals(billed):
    return {principal for _, principal in billed}


def test_a_comparison_knows_over_from_short():
    alice, bob = ("0f", "User:alice"), ("0f", "User:bob")
    exact = Comparison({alice: 5}, {alice: 5})
    assert (exact.over, exact.short, exact.wrong) == (0, 0, 0)
    # What one principal is billed too much does not make good what another is billed too little.
    swapped = Comparison({alice: 6, bob: 4}, {alice: 5, bob: 5}, {bob: 1})
    assert (swapped.over, swapped.short, swapped.unforgivable, swapped.wrong) == (1, 1, 0, 1)
    unknown = Comparison({("aa", "User:alice"): 7}, {alice: 5}, {alice: 3})
    assert (unknown.over, unknown.unforgivable, unknown.wrong) == (7, 2, 9)


def test_what_nobody_pays_for_is_sorted_by_why():
    tenant: Any = SimpleNamespace(
        cluster_id="cl_a", topics={"__consumer_offsets": "0a", "orders": "0b"}
    )
    rows = {
        ("cl_a", "ingress_bytes", "0a", "User:alice"): 1,
        ("cl_a", "egress_bytes", "0b", SERVICE): 2,
        ("cl_a", "egress_bytes", "0b", "User:alice"): 4,
        # The same topic's id in another cluster says nothing of it.
        ("cl_b", "ingress_bytes", "0a", "User:alice"): 8,
        ("cl_a", "broker_seconds", "", ""): 16,
    }
    unbilled = sort_unbilled(rows, [tenant])
    assert unbilled.internal == {("ingress_bytes", "User:alice"): 1}
    assert unbilled.service == {("egress_bytes", SERVICE): 2}
    assert unbilled.others.total() == 12


def test_a_spell_counts_what_its_kind_refuses_and_nothing_else():
    since, alice = SETTLING_MS, "User:alice"
    seen = Seen(
        handed=[Counted("orders", 0, alice, 1, since), Counted("orders", 0, SERVICE, 2, since)],
        acked=[Counted("orders", 0, alice, 4, at) for at in (since - 1, since, since + 1)],
    )
    tenant: Any = SimpleNamespace(seen=seen)
    assert Spell("refuse", 0).slipped(tenant) == 1 + 4 + 4
    assert Spell("refuse", 0, since + 1).slipped(tenant) == 1 + 4
    assert Spell("refuse_produce", 0).slipped(tenant) == 4 + 4
    assert Spell("throttle", 0).slipped(tenant) == 0
