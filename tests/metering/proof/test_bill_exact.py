"""The bill is exact, in the short form: one story of faults, and not a byte too many."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

from console.common.tenancy import system_scope
from metering.events.store import FolderUsageStore
from metering.models import ProvisionalMinute
from metering.services.ingest import ingest_usage
from tests.metering.proof.story import Plan, Story
from tests.metering.proof.verdict import Comparison

SEED = int(os.environ.get("FRESHET_PROOF_SEED") or random.randrange(1 << 16))


def minutes_of(usage):
    """What the control plane adds up from the same files, by whom; files as they come."""
    while ingest_usage(store=FolderUsageStore(usage.root)).left:
        pass
    sums: Counter[tuple[str, str, str, str]] = Counter()
    with system_scope():
        for row in ProvisionalMinute.objects.filter(billed=True):
            sums[row.cluster_id, row.meter, row.topic_id, row.principal] += int(row.quantity)
    return sums


@pytest.mark.timeout(600)
@pytest.mark.django_db
def test_what_is_billed_is_what_was_used(tmp_path):
    said: list[str] = []
    plan = Plan(SEED, load_s=8.0, quiet_s=0.0, broker_kills=3, agent_kills=3)
    story = Story(tmp_path / "story", plan, said.append)
    story.use()
    story.disturb()
    billed = story.roll(kill=False, late=False)
    outcome = story.outcome(billed)

    for verdict in outcome.verdicts:
        tenant = f"seed {SEED}, {verdict.tenant.cluster_id}: {verdict.details()}"
        assert verdict.proxy_errors == (), tenant
        assert verdict.acked_beyond_log == 0, tenant
        assert verdict.ingress.truth, tenant
        assert verdict.egress.truth, tenant
        # Ingress to the byte; egress too but for the last moments of brokers that were killed.
        assert verdict.ingress.billed == verdict.ingress.truth, tenant
        assert verdict.egress.over == 0, tenant
        assert verdict.egress.unforgivable == 0, tenant
        if not verdict.tenant.kills_ms:
            assert verdict.egress.billed == verdict.egress.truth, tenant
    assert minutes_of(story.usage) == billed, SEED
    assert [time.over for time in outcome.times] == [0, 0, 0], SEED
    assert outcome.facts["oracle_agrees"]
    assert outcome.facts["damaged_inputs"] == outcome.facts["files_torn"]
    assert all(run["conflicts"] == 0 for run in outcome.facts["spark"])
    assert all(run["rows_read"] > run["rows_distinct"] > 0 for run in outcome.facts["spark"])


def test_a_comparison_knows_over_from_short():
    alice, bob = ("0f", "User:alice"), ("0f", "User:bob")
    exact = Comparison({alice: 5}, {alice: 5})
    assert (exact.over, exact.short, exact.wrong) == (0, 0, 0)
    # What one principal is billed too much does not make good what another is billed too little.
    swapped = Comparison({alice: 6, bob: 4}, {alice: 5, bob: 5}, {bob: 1})
    assert (swapped.over, swapped.short, swapped.unforgivable, swapped.wrong) == (1, 1, 0, 1)
    unknown = Comparison({("aa", "User:alice"): 7}, {alice: 5}, {alice: 3})
    assert (unknown.over, unknown.unforgivable, unknown.wrong) == (7, 2, 9)
