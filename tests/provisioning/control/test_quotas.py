"""Quotas over REST: stored as Kafka's tools see them, and applied by a running broker."""

import pytest
from confluent_kafka import Producer

from brokers.errors import UnavailableError
from brokers.metadata_records import QuotaEntity
from console.base.common.conf import config
from tests.console import cases
from tests.provisioning.control.world import access_of, failing, lost, running_broker


@pytest.fixture
def quotas(cluster_id):
    return f"/clusters/{cluster_id}/quotas"


def put(client, path, body, **more):
    return client.request("PUT", path, body, **more)


def stored(store):
    return {quota.entity: dict(quota.values) for quota in store.quotas()}


def test_a_quota_is_set_shown_replaced_and_removed(api, quotas, store):
    body = {"user": "alice", "produce_bytes_per_second": 1024, "connections": 3}
    made = put(api(), quotas, body)
    assert made.status_code == 200, made.content
    shown = made.json()
    assert shown == {
        "id": shown["id"],
        "user": "alice",
        "client_id": None,
        "ip": None,
        "produce_bytes_per_second": 1024.0,
        "fetch_bytes_per_second": None,
        "request_percentage": None,
        "connections": 3,
        "connections_per_second": None,
    }
    entity = QuotaEntity(user="alice")
    assert stored(store) == {entity: {"producer_byte_rate": 1024.0, "max_connections": 3.0}}
    assert api().get(quotas).json()["items"] == [shown]
    assert api().get(f"{quotas}/{shown['id']}").json() == shown
    other = put(api(), quotas, {"user": "alice", "fetch_bytes_per_second": 5}).json()
    assert other["id"] == shown["id"]
    assert stored(store) == {entity: {"consumer_byte_rate": 5.0}}
    assert api().delete(f"{quotas}/{shown['id']}").status_code == 204
    assert stored(store) == {}
    cases.assert_problem(api().get(f"{quotas}/{shown['id']}"), 404, "not_found")
    cases.assert_problem(api().delete(f"{quotas}/{shown['id']}"), 404, "not_found")


def test_each_change_of_a_quota_has_its_old_and_new_values(api, quotas):
    shown = put(api(), quotas, {"user": "alice", "connections": 3}).json()
    put(api(), quotas, {"user": "alice", "connections": 4, "fetch_bytes_per_second": 5})
    api().delete(f"{quotas}/{shown['id']}")
    entries = [
        entry
        for action in ("quota.set", "quota.remove")
        for entry in reversed(api().get("/audit-log", query={"action": action}).json()["items"])
    ]
    assert {entry["detail"]["entity"]["user"] for entry in entries} == {"alice"}
    assert [entry["detail"]["values"] for entry in entries] == [
        {"connections": {"from": None, "to": 3}},
        {
            "connections": {"from": 3, "to": 4},
            "fetch_bytes_per_second": {"from": None, "to": 5},
        },
        {
            "connections": {"from": 4, "to": None},
            "fetch_bytes_per_second": {"from": 5, "to": None},
        },
    ]


def test_each_entity_is_one_of_its_own(api, quotas, store):
    """A default differs from an absent part, and a user with a client id from either alone."""
    bodies = [
        {"user": "a", "produce_bytes_per_second": 1},
        {"user": "", "produce_bytes_per_second": 1},
        {"client_id": "a", "produce_bytes_per_second": 1},
        {"client_id": "", "request_percentage": 50},
        {"user": "a", "client_id": "a", "produce_bytes_per_second": 1},
        {"ip": "10.0.0.1", "connections_per_second": 2},
        {"ip": "", "connections_per_second": 2},
    ]
    ids = {put(api(), quotas, body).json()["id"] for body in bodies}
    assert len(ids) == len(bodies) == len(stored(store))
    assert len(api().get(quotas).json()["items"]) == len(bodies)
    assert api().delete(quotas, query={"user": ""}).status_code == 204
    assert QuotaEntity(user="") not in stored(store)
    cases.assert_problem(api().delete(quotas, query={"user": ""}), 404, "not_found")
    cases.assert_problem(api().delete(quotas), 422, "validation_failed")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"produce_bytes_per_second": 1}, "/user"),
        ({"user": "a"}, "/produce_bytes_per_second"),
        ({"user": "a", "ip": "10.0.0.1", "connections_per_second": 1}, "/ip"),
        ({"ip": "10.0.0.1", "produce_bytes_per_second": 1}, "/produce_bytes_per_second"),
        ({"user": "a", "connections_per_second": 1}, "/connections_per_second"),
        ({"client_id": "a", "connections": 1}, "/connections"),
        ({"user": "a", "client_id": "b", "connections": 1}, "/connections"),
        ({"user": "a", "produce_bytes_per_second": 0}, "/produce_bytes_per_second"),
        ({"user": "a", "connections": "many"}, "/connections"),
        ({"ip": "not an address", "connections_per_second": 1}, "/ip"),
    ],
)
def test_what_cannot_be_is_pointed_to(api, quotas, store, body, pointer):
    document = cases.assert_problem(put(api(), quotas, body), 422, "validation_failed")
    assert document["errors"][0]["pointer"] == pointer
    assert stored(store) == {}


def test_validate_only_sets_nothing(api, quotas, store):
    body = {"user": "a", "connections": 1}
    assert put(api(), quotas, body, query={"validate_only": "true"}).status_code == 200
    assert stored(store) == {}


def test_a_lost_answer_is_repeated(api, quotas, store):
    body = {"user": "a", "connections": 1}
    with failing("set_quota", lost(UnavailableError("away"))):
        assert put(api(), quotas, body).status_code == 200
    away = UnavailableError("away")
    with failing("remove_quota", away, away):
        cases.assert_problem(api().delete(quotas, query={"user": "a"}), 503, "unavailable")
    assert len(stored(store)) == 1


def test_a_rotation_takes_quotas_along_and_an_end_removes_them(api, quotas, store):
    credentials = quotas.replace("quotas", "credentials")
    made = api().post(credentials, {"name": "app", "role": "producer"}).json()
    put(api(), quotas, {"user": made["username"], "produce_bytes_per_second": 7})
    new = api().post(f"{credentials}/{made['id']}:rotate").json()
    assert stored(store)[QuotaEntity(user=new["username"])] == {"producer_byte_rate": 7.0}
    assert api().delete(f"{credentials}/{made['id']}").status_code == 204
    assert set(stored(store)) == {QuotaEntity(user=new["username"])}
    assert api().delete(f"{credentials}/{new['id']}").status_code == 204
    assert stored(store) == {}


def test_a_broker_that_runs_keeps_to_it(api, quotas, cluster_id):
    """The broker says in its answers for how long it throttles the client."""
    with running_broker(cluster_id):
        path = f"/clusters/{cluster_id}"
        api().post(f"{path}/topics", {"name": "t", "partitions": 1})
        made = api().post(f"{path}/credentials", {"name": "app", "role": "producer"}).json()
        put(api(), quotas, {"user": made["username"], "produce_bytes_per_second": 1024})
        held_ms = []
        producer = Producer(
            {
                "bootstrap.servers": access_of(cluster_id).connection.bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": made["username"],
                "sasl.password": made["password"],
                "throttle_cb": lambda event: held_ms.append(event.throttle_time),
            }
        )
        while not held_ms:
            producer.produce("t", b"x" * 4096)
            producer.poll(0.05)
        assert max(held_ms) > 0
        producer.purge()
        producer.flush(30)


@pytest.fixture
def one_quota():
    """Lets only one entity have quotas, in this process."""
    limits = config().limits
    before = limits.quotas
    object.__setattr__(limits, "quotas", 1)
    yield
    object.__setattr__(limits, "quotas", before)


@pytest.mark.usefixtures("one_quota")
def test_quotas_are_a_limit_like_the_others(api, quotas, cluster_id):
    body = {"user": "alice", "produce_bytes_per_second": 1024}
    assert put(api(), quotas, body).status_code == 200
    document = cases.assert_problem(put(api(), quotas, {**body, "user": "bob"}), 403)
    assert document["quota"] == {"name": "quotas", "limit": 1, "used": 1}
    # Another value for an entity that has quotas does not count.
    assert put(api(), quotas, {**body, "produce_bytes_per_second": 5}).status_code == 200
    listed = api().get("/limits", query={"cluster_id": cluster_id}).json()["items"]
    (shown,) = [limit for limit in listed if limit["name"] == "quotas"]
    assert (shown["limit"], shown["used"], shown["scope"]) == (1, 1, "cluster")
