"""The dearest topics and principals of a month, found by their ranks."""

import random
from datetime import date

import pytest
from django.db import connection

from console.base.common.tenancy import organization_scope
from metering.choices import PART_METERS, PartKind
from metering.models import MonthPart
from metering.services.choosing import chosen_parts
from metering.services.month_usage import greatest_parts

MONTH = date(2026, 11, 1)
LIMIT = 5
# Of one base unit of each meter, in dollars, about.
PRICES = dict(zip(PART_METERS, (4e-11, 4e-11, 1.3e-15, 8e-6), strict=True))
CLUSTERS = [f"cl_{name}" for name in "abcdefghijkl"]
MANY = 300


def quantities(rng, spread):
    """Quantities of each meter that cost up to some dollars; a part may have none of a meter."""
    return {
        meter: int(rng.choice((0, 1, 1)) * rng.random() ** spread / price)
        for meter, price in PRICES.items()
    }


def free(*meters):
    """What a unit costs where these meters are within what is free."""
    return {meter: 0.0 if meter in meters else price for meter, price in PRICES.items()}


def alike(_):
    return PRICES


def free_storage(_):
    return free("storage_byte_minutes", "partition_minutes")


def one_pays(cluster_id):
    return PRICES if cluster_id == CLUSTERS[3] else free(*PART_METERS)


def far_apart(cluster_id):
    return {meter: price * 10.0 ** CLUSTERS.index(cluster_id) for meter, price in PRICES.items()}


def nothing(_):
    return free(*PART_METERS)


def dearest(parts, weights, kind):
    """The names of the dearest parts that cost anything, by looking at all of them."""
    costs = {
        (part.cluster_id, part.name): sum(
            float(getattr(part, meter)) * weights[part.cluster_id, meter] for meter in PART_METERS
        )
        for part in parts
        if part.kind == kind
    }
    ranked = sorted((key for key in costs if costs[key]), key=lambda key: (-costs[key], key))
    return set(ranked[:LIMIT])


@pytest.mark.parametrize("clusters", [1, len(CLUSTERS)])
@pytest.mark.parametrize("spread", [1, 9])
@pytest.mark.parametrize("cost_in", [alike, free_storage, one_pays, far_apart, nothing])
def test_the_dearest_parts_are_those_that_a_look_at_all_finds(tenant, cost_in, spread, clusters):
    rng = random.Random(f"{cost_in.__name__} {spread} {clusters}")
    chosen_parts.forget()
    names = CLUSTERS[-clusters:] if clusters > 1 else CLUSTERS[3:4]
    with organization_scope(tenant.id):
        parts = MonthPart.objects.bulk_create(
            MonthPart(
                organization_id=tenant.id,
                cluster_id=cluster_id,
                month=MONTH,
                kind=kind,
                name=f"{number:032x}",
                **quantities(rng, spread),
            )
            for cluster_id in names
            for kind, count in ((PartKind.TOPIC, MANY // clusters), (PartKind.PRINCIPAL, 3))
            for number in range(count)
        )
        weights = {
            (cluster_id, meter): cost
            for cluster_id in names
            for meter, cost in cost_in(cluster_id).items()
        }
        greatest = greatest_parts(tenant.id, MONTH, weights, limit=LIMIT)
    for kind, by_meter in (("topic", greatest.by_topic), ("principal", greatest.by_principal)):
        shown = {(cluster, name) for (cluster, _), of in by_meter.items() for name in of}
        assert shown == dearest(parts, weights, kind)


def test_a_part_keeps_its_rank_while_it_grows_by_little(tenant):
    """So that most updates of the meter touch no index."""
    gib = 2**30
    with organization_scope(tenant.id):
        part = MonthPart.objects.create(
            organization_id=tenant.id,
            cluster_id="cl_a",
            month=MONTH,
            kind=PartKind.TOPIC,
            name="t",
            ingress_bytes=1000 * gib,
        )
        ranks = set()
        for minute in range(100):
            MonthPart.objects.filter(cluster_id="cl_a").update(
                ingress_bytes=1000 * gib + minute * gib // 10
            )
            part.refresh_from_db(fields=["rank"])
            ranks.add(part.rank)
        assert len(ranks) <= 2
        MonthPart.objects.update(ingress_bytes=0)
        part.refresh_from_db(fields=["rank"])
        assert part.rank == 0
        # The most that a quantity can be.
        MonthPart.objects.update(ingress_bytes=10**38 - 1, storage_byte_minutes=10**38 - 1)
        with connection.cursor() as cursor:
            cursor.execute("SELECT rank FROM metering_monthpart")
            ((most,),) = cursor.fetchall()
    assert 3_000 < most < 2**15
