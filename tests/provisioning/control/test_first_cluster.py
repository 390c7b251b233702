"""The first cluster of somebody who signs up in the console."""

from typing import Any

import pytest

from brokers.metadata_records import BrokerStatus
from provisioning import kafka
from provisioning.cells import cluster_store
from provisioning.clusters import sample_data
from provisioning.reconciling import samples
from provisioning.reconciling import service as reconciling
from tests.console.clients import ApiClient
from tests.provisioning.control.world import access_of, put_status, running_broker

BODY = {"email": "ada@acme.example", "password": "engines and looms", "organization_name": "Acme"}


@pytest.fixture
def newcomer():
    """Signs up in the console; gives a client with the first API key."""
    response = ApiClient().post("/signup", {**BODY, "session": True})
    assert response.status_code == 201, response.content
    return ApiClient(response.json()["api_key"]["secret"])


def only_cluster(client):
    (cluster,) = client.get("/clusters").json()["items"]
    return cluster


def records(cluster_id):
    page: Any = kafka.browse(access_of(cluster_id), sample_data.TOPIC, kafka.Browse("oldest"))
    return [record["value"]["text"].encode() for record in page.records]


def test_a_first_cluster_with_a_topic_and_records(newcomer):
    cluster = only_cluster(newcomer)
    assert (cluster["name"], cluster["deletion_protection"]) == ("first-cluster", False)
    assert reconciling.sweep_clusters() == 1
    (topic,) = newcomer.get(f"/clusters/{cluster['id']}/topics").json()["items"]
    assert topic["name"] == "hello-freshet"
    with running_broker(cluster["id"]):
        for _ in range(3):
            reconciling.sweep_clusters()
        assert records(cluster["id"]) == [value for _, value in sample_data.RECORDS]


def test_by_rest_there_is_none():
    response = ApiClient().post("/signup", BODY)
    client = ApiClient(response.json()["api_key"]["secret"])
    assert client.get("/clusters").json()["items"] == []


def test_records_that_were_cut_short_are_completed_and_none_twice(newcomer, monkeypatch):
    cluster_id = only_cluster(newcomer)["id"]
    reconciling.sweep_clusters()
    with running_broker(cluster_id):
        monkeypatch.setattr(samples, "RECORDS", sample_data.RECORDS[:1])
        samples.produce_samples(access_of(cluster_id))
        monkeypatch.undo()
        for _ in range(2):
            reconciling.sweep_clusters()
            samples.produce_samples(access_of(cluster_id))
        assert records(cluster_id) == [value for _, value in sample_data.RECORDS]


def test_brokers_that_cannot_be_reached_are_asked_again(newcomer):
    cluster_id = only_cluster(newcomer)["id"]
    reconciling.sweep_clusters()
    gone = BrokerStatus(slot=0, link="", kafka="127.0.0.1:9", metrics="")
    put_status(cluster_id, "running", brokers=(gone,))
    reconciling.sweep_clusters()
    assert newcomer.get(f"/clusters/{cluster_id}").json()["status"]["phase"] == "running"
    with running_broker(cluster_id):
        reconciling.sweep_clusters()
        assert len(records(cluster_id)) == 3


def test_a_topic_that_is_there_stays(newcomer):
    cluster_id = only_cluster(newcomer)["id"]
    newcomer.post(f"/clusters/{cluster_id}/topics", {"name": sample_data.TOPIC, "partitions": 4})
    reconciling.sweep_clusters()
    assert cluster_store(cluster_id).topic(sample_data.TOPIC).partitions == 4
