"""Metrics for customers: their values, that Prometheus can read them, and that nothing is woken."""

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from brokers.errors import UnavailableError
from brokers.metadata import CellStore
from brokers.metadata_records import BrokerStatus
from provisioning.administration.services.metrics import lag_by_topic
from provisioning.cells import cluster_store
from tests.console.cases import assert_problem
from tests.provisioning.control.world import failing, put_sample, put_status

SAMPLED_MS = 1_700_000_000_500


def partition(topic, number, lag, seconds):
    return {
        "topic": topic,
        "partition": number,
        "committed": 1,
        "end": 2,
        "lag": lag,
        "lag_seconds": seconds,
    }


GROUP = {
    "group": "billing",
    "state": "Stable",
    "members": [{}, {}],
    "partitions": [partition("orders", 0, 5, 1.5), partition("orders", 1, 7, 0.5)],
}


@pytest.fixture
def sampled(api, cluster_id):
    """The id of a cluster that has a topic and a sample of the keeper."""
    body = {"name": "orders", "partitions": 3}
    assert api().post(f"/clusters/{cluster_id}/topics", body).status_code == 201
    content = {
        "groups": [GROUP],
        # The second topic was deleted meanwhile; the third is internal.
        "topics": {"orders": [1000, 2000, 10], "gone": [1, 1, 1], "__consumer_offsets": [9, 9, 9]},
    }
    put_sample(cluster_id, SAMPLED_MS, content)
    return cluster_id


def values_of(response):
    """(name, *labels) → value, as Prometheus reads an answer."""
    assert response.status_code == 200, response.content
    assert response["Content-Type"].startswith("application/openmetrics-text")
    families = text_string_to_metric_families(response.content.decode())
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def named(values, name, **labels):
    """The only value of a metric with these labels."""
    (only,) = [
        value
        for (metric, *pairs), value in values.items()
        if metric == name and set(labels.items()) <= set(pairs)
    ]
    return only


def test_metrics_say_what_the_keeper_saw(api, sampled):
    values = values_of(api().get(f"/clusters/{sampled}/metrics"))
    assert named(values, "freshet_topic_partitions", topic="orders") == 3
    assert named(values, "freshet_topic_received_bytes_total", topic="orders") == 1000
    assert named(values, "freshet_topic_sent_bytes_total", topic="orders") == 2000
    assert named(values, "freshet_topic_received_records_total", topic="orders") == 10
    assert named(values, "freshet_group_members", group="billing") == 2
    assert named(values, "freshet_group_lag_records", group="billing", topic="orders") == 12
    assert named(values, "freshet_group_lag_seconds", group="billing", topic="orders") == 1.5
    assert named(values, "freshet_cluster_sampled_timestamp_seconds") == SAMPLED_MS / 1000
    assert named(values, "freshet_cluster_up") == 0
    assert {dict(pairs)["cluster_id"] for _, *pairs in values} == {sampled}
    topics = {dict(pairs).get("topic") for _, *pairs in values}
    assert topics == {None, "orders"}


def test_metrics_of_a_cluster_that_runs(api, sampled):
    broker = BrokerStatus(slot=0, link="", kafka="127.0.0.1:1", metrics="")
    put_status(sampled, "running", connections=4, brokers=(broker,))
    values = values_of(api().get(f"/clusters/{sampled}/metrics"))
    assert named(values, "freshet_cluster_up") == 1
    assert named(values, "freshet_cluster_brokers") == 1
    assert named(values, "freshet_cluster_connections") == 4


def test_metrics_name_the_damaged_batches_that_brokers_know_of(api, sampled, report_damage):
    # The second one is of a topic that had the name before, the third of one that is gone.
    report_damage(
        (sampled, "orders", 2, 94),
        (sampled, "orders", 1, 5),
        (sampled, "gone", 0, 1),
        ("cl_another", "orders", 2, 7),
        topics=[cluster_store(sampled).topic("orders").id, "A" * 22],
    )
    values = values_of(api().get("/metrics"))
    name = "freshet_topic_damaged_first_offset"
    assert named(values, name, topic="orders", partition="2", cluster_id=sampled) == 94
    assert {dict(pairs)["cluster_id"] for _, *pairs in values} == {sampled}
    assert [metric for metric, *_ in values].count(name) == 1
    report_damage()
    values = values_of(api().get(f"/clusters/{sampled}/metrics"))
    assert name not in {metric for metric, *_ in values}


def test_all_clusters_in_one_scrape(api, sampled, make_cluster):
    other = make_cluster()
    values = values_of(api().get("/metrics"))
    assert {dict(pairs)["cluster_id"] for _, *pairs in values} == {sampled, other}
    assert named(values, "freshet_topic_partitions", cluster_id=sampled) == 3


def test_another_organization_sees_nothing_of_it(api, other_tenant, sampled):
    outsider = api(other_tenant.key)
    assert values_of(outsider.get("/metrics")) == {}
    assert_problem(outsider.get(f"/clusters/{sampled}/metrics"), 404, "not_found")


def test_a_scrape_wakes_nobody(api, cell, sampled):
    values_of(api().get("/metrics"))
    values_of(api().get(f"/clusters/{sampled}/metrics"))
    assert cell.wake(sampled) is None


def test_a_cell_that_does_not_answer_is_not_up(api, sampled):
    with failing("status", UnavailableError("away"), owner=CellStore):
        values = values_of(api().get(f"/clusters/{sampled}/metrics"))
    assert [name for name, *_ in values] == ["freshet_cluster_up"]
    assert named(values, "freshet_cluster_up") == 0


def test_a_cluster_without_a_sample_has_metrics(api, cluster_id):
    values = values_of(api().get(f"/clusters/{cluster_id}/metrics"))
    assert named(values, "freshet_cluster_up") == 0
    assert not [name for name, *_ in values if name.startswith("freshet_group")]


def test_prometheus_asks_for_text_alone(api, sampled):
    headers = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"}
    assert api().get(f"/clusters/{sampled}/metrics", headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("partitions", "lags"),
    [
        ([], []),
        ([partition("a", 0, None, None)], [("a", None, None)]),
        # A partition whose lag is unknown does not hide that of another.
        ([partition("a", 0, 3, None), partition("a", 1, None, 2.0)], [("a", 3, 2.0)]),
        ([partition("b", 0, 1, 1.0), partition("a", 0, 2, 0.0)], [("a", 2, 0.0), ("b", 1, 1.0)]),
    ],
)
def test_lag_is_by_topic(partitions, lags):
    assert lag_by_topic(partitions) == lags
