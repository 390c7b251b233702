"""`GET /usage/stored`: how many bytes topics hold now."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.base.common.tenancy import organization_scope, system_scope
from metering.models import ClusterCoverage
from metering.periods import DAY, HOUR, MINUTE_MS, to_ms
from metering.services.ingest import ingest_usage
from metering.services.stored import stored_now
from tests.metering.console.conftest import NOON
from tests.metering.console.files import Window
from tests.metering.console.world import TOPIC_ID, Used, use_minute

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]
CL = "cl_aaaaaaaaaaaaaaaaaaaa"
OTHER_CL = "cl_bbbbbbbbbbbbbbbbbbbb"
OTHER_TOPIC = "f" * 32
MINUTE = timedelta(minutes=1)
STORAGE = "storage_byte_minutes"


def metered(organization_id, cluster_id, until, **fields):
    """Has the storage of a cluster metered for an hour up to a time."""
    with system_scope():
        ClusterCoverage.objects.create(
            cluster_id=cluster_id,
            organization_id=organization_id,
            storage_ms=f"{{[{to_ms(until - HOUR)},{to_ms(until)})}}",
            as_of_ms=to_ms(until),
            **fields,
        )


def hold(tenant, quantity, minute, *, cluster_id=CL, **fields):
    use_minute(Used(tenant.id, cluster_id, STORAGE, quantity, principal="", **fields), minute)


@pytest.fixture
def stored(tenant):
    """Two topics in one cluster, and one in another that was metered an hour before."""
    metered(tenant.id, CL, NOON)
    hold(tenant, 2**60 + 1, NOON - MINUTE)
    hold(tenant, 30, NOON - MINUTE, topic_id=OTHER_TOPIC)
    hold(tenant, 10**6, NOON - 2 * MINUTE)
    hold(tenant, 7, NOON - MINUTE, topic_id="e" * 32, billed=False)
    use_minute(Used(tenant.id, CL, "ingress_bytes", 999), NOON - MINUTE)
    metered(tenant.id, OTHER_CL, NOON - HOUR)
    hold(tenant, 500, NOON - HOUR - MINUTE, cluster_id=OTHER_CL)


def shown(response):
    assert response.status_code == 200, response.content
    return response.json()


def test_the_newest_metered_minute_counts(api, stored):
    assert shown(api().get("/usage/stored")) == {
        "bytes": str(2**60 + 531),
        "at": "2026-11-20T10:59:00Z",
        "clusters": [
            {"cluster_id": CL, "bytes": str(2**60 + 31), "at": "2026-11-20T11:59:00Z"},
            {"cluster_id": OTHER_CL, "bytes": "500", "at": "2026-11-20T10:59:00Z"},
        ],
    }


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"cluster_id": CL}, str(2**60 + 31)),
        ({"cluster_id": CL, "topic_id": OTHER_TOPIC}, "30"),
        ({"topic_id": TOPIC_ID}, str(2**60 + 501)),
        ({"cluster_id": OTHER_CL, "topic_id": OTHER_TOPIC}, "0"),
        ({"cluster_id": "cl_cccccccccccccccccccc"}, "0"),
    ],
)
def test_one_cluster_or_topic(api, stored, query, expected):
    assert shown(api().get("/usage/stored", query=query))["bytes"] == expected


def test_nothing_is_held_where_a_metered_minute_has_no_row(api, tenant):
    metered(tenant.id, CL, NOON)
    hold(tenant, 5, NOON - 2 * MINUTE)
    assert shown(api().get("/usage/stored")) == {
        "bytes": "0",
        "at": "2026-11-20T11:59:00Z",
        "clusters": [{"cluster_id": CL, "bytes": "0", "at": "2026-11-20T11:59:00Z"}],
    }


def test_what_is_gone_or_not_known_is_left_out(api, tenant, other_tenant):
    metered(tenant.id, CL, NOON, closed_at_ms=to_ms(NOON))
    hold(tenant, 5, NOON - MINUTE)
    metered(tenant.id, OTHER_CL, NOON - 9 * DAY)
    with system_scope():
        ClusterCoverage.objects.create(
            cluster_id="cl_dddddddddddddddddddd",
            organization_id=tenant.id,
            storage_ms="{}",
            as_of_ms=to_ms(NOON),
        )
    metered(other_tenant.id, "cl_cccccccccccccccccccc", NOON)
    hold(other_tenant, 8, NOON - MINUTE, cluster_id="cl_cccccccccccccccccccc")
    assert shown(api().get("/usage/stored")) == {"bytes": "0", "at": None, "clusters": []}
    assert shown(api(other_tenant.key).get("/usage/stored"))["bytes"] == "8"


def test_a_file_that_is_taken_in_says_what_is_held(api, tenant, agent, store):
    agent.organization_id, agent.cluster_id = tenant.id, CL
    t = to_ms(NOON - 5 * MINUTE)
    window = (t, t + 2 * MINUTE_MS)
    agent.emit(NOON, agent.entry(window[1], window[1], storage=window), [], [Window(*window, 84)])
    ingest_usage(store=store)
    assert shown(api().get("/usage/stored"))["clusters"] == [
        {"cluster_id": CL, "bytes": "42", "at": "2026-11-20T11:56:00Z"}
    ]


@pytest.mark.usefixtures("stored")
def test_only_the_minutes_of_one_minute_are_read(tenant):
    """The index finds them by the cluster and the minute, whatever row security has to pass."""
    with CaptureQueriesContext(connection) as captured, organization_scope(tenant.id):
        assert len(stored_now(tenant.id)) == 2
    (statement,) = [query["sql"] for query in captured if "WITH metered" in query["sql"]]
    with organization_scope(tenant.id), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {statement}")
        plan = [line.strip() for (line,) in cursor.fetchall()]
    (condition,) = {line for line in plan if line.startswith("Index Cond:")}
    assert "(minute = metered.minute)" in condition
