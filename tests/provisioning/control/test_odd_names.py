"""Names that a tenant's clients choose and nobody can read: refused, or harmless everywhere."""

import dataclasses
from contextlib import closing
from typing import Any

import pytest

from brokers.metadata import ClusterStore
from brokers.metadata_records import ProtocolChange
from brokers.secrets import read_cell_secret, super_password
from console.base.common.conf import config
from console.base.common.tenancy import organization_scope
from console.base.runtime.texts import CUT, REPLACEMENT, bounded_json, storable_name
from console.programs.cli.client import segment
from provisioning.administration.services.protocol_changes import entry_of
from provisioning.kafka import SUPER_USER
from provisioning.reconciling import service as reconciling
from tests.protocol import connection as protocol
from tests.protocol.codec import Codec
from tests.protocol.schemas import error_names, load_schemas
from tests.protocol.world import ITERATIONS, SCRAM_SHA_256, Account, Place, World, acl
from tests.provisioning.control.world import put_sample, running_broker

ODD = ["a\0b", "a\u202eb", "a\uffff", "a\nb", "a\x7f"]
# A path of REST has no NUL: such a group is listed, and known by its name to Kafka's clients alone.
IN_A_PATH = ODD[1:]
# No longer text has room behind the 16 bits of its length.
LONG = "x" * (32_767)
UNACCEPTABLE_CREDENTIAL, INVALID_REQUEST, POLICY_VIOLATION, INVALID_TOPIC = 93, 42, 44, 17
T0_MS = 1_700_000_000_000
PASSWORD = "a-password-of-hers"


@pytest.fixture
def world(cluster_id, monkeypatch):
    """The cluster's broker, asked by a client with an odd name that may do everything."""
    monkeypatch.setattr(protocol, "CLIENT_ID", "client\0\u202e")
    password = super_password(read_cell_secret(config().cell.secret), cluster_id)
    root = Account(SUPER_USER, password)
    with running_broker(cluster_id) as broker:
        place = Place(broker.bootstrap, Codec(load_schemas(), error_names()), root, root)
        with closing(World(place)) as made:
            yield made


def codes(answer, entries):
    return {entry["ErrorCode"] for entry in answer[entries]}


@pytest.mark.parametrize("kind", ["users", "acls", "quotas", "topics"])
def test_brokers_refuse_odd_names_of_what_the_service_lists(world, store, kind):
    names = [*ODD, LONG]
    if kind == "users":
        salted = {"Salt": b"0123456789abcdef", "SaltedPassword": b"s" * 32}
        hashed = {"Mechanism": SCRAM_SHA_256, "Iterations": ITERATIONS, **salted}
        body = {"Upsertions": [{"Name": name, **hashed} for name in names]}
        answer = world.ask("AlterUserScramCredentials", body)
        assert codes(answer, "Results") == {UNACCEPTABLE_CREDENTIAL}
        assert {user.user for user in store.list_users()} == {SUPER_USER}
    elif kind == "acls":
        creations = [acl(name) for name in names]
        creations += [{**acl("t"), "Principal": f"User:{name}"} for name in names]
        answer = world.ask("CreateAcls", {"Creations": creations})
        assert codes(answer, "Results") == {INVALID_REQUEST, POLICY_VIOLATION}
        assert store.list_acls() == []
    elif kind == "quotas":
        values = {"Ops": [{"Key": "producer_byte_rate", "Value": 1.0}]}
        entities = [(part, name) for name in names for part in ("user", "client-id")]
        entries = [
            {"Entity": [{"EntityType": part, "EntityName": name}], **values}
            for part, name in entities
        ]
        answer = world.ask("AlterClientQuotas", {"Entries": entries})
        assert codes(answer, "Entries") == {INVALID_REQUEST}
        assert store.quotas() == []
    else:
        topics = [{"Name": name, "NumPartitions": 1, "ReplicationFactor": 1} for name in names]
        answer = world.ask("CreateTopics", {"Topics": topics, "timeoutMs": 30_000})
        assert codes(answer, "Topics") == {INVALID_TOPIC}
        assert store.topics() == []


def test_groups_and_clients_of_odd_names_stop_nothing(world, api, path, credentials):
    made = api().post(credentials, {"name": "app", "role": "full"}).json()
    app = Account(made["username"], made["password"])
    with closing(World(dataclasses.replace(world.place, root=app))) as of_tenant:
        topic = of_tenant.create_topic()
    groups = [*ODD, LONG]
    # As clients do it first: it creates the coordinator's topic.
    world.settle("FindCoordinator", {"CoordinatorKeys": groups}, 4)
    for group in groups:
        world.commit(group, topic, 0, 0)
    reconciling.sweep_clusters()
    entries = api().get("/audit-log", query={"action": "topic.create"}).json()["items"]
    assert entries[0]["detail"]["client_id"] == f"client{REPLACEMENT}\u202e"
    listed = api().get(f"{path}/groups", query={"limit": 100})
    assert {item["group"] for item in listed.json()["items"]} == set(groups)
    for group in IN_A_PATH:
        address = f"{path}/groups/{segment(group)}"
        assert api().get(address).json()["group"] == group
        moved = api().post(f"{address}/reset-offsets", {"to": "latest"})
        assert moved.status_code == 200, moved.content
        assert api().delete(address).status_code == 204
    for page in ("credentials", "acls", "topics", "quotas"):
        assert api().get(f"{path}/{page}").status_code == 200, page


def test_a_sample_of_odd_groups_is_taken_in_and_shown(api, path, cluster_id):
    seen = {"state": "Empty", "type": "classic", "protocol": "", "coordinator": 0, "members": [],
            "partitions": [], "lag": 0, "lag_seconds": 0.0}  # fmt: skip
    put_sample(cluster_id, T0_MS, {"groups": [{**seen, "group": name} for name in ODD]})
    listed = api().get(f"{path}/groups").json()["items"]
    assert {item["group"] for item in listed} == set(ODD)
    for name in IN_A_PATH:
        assert api().get(f"{path}/groups/{segment(name)}").json()["group"] == name


def test_a_user_whose_name_cannot_be_stored_stops_no_reconciliation(
    api, cluster_id, credentials, store, reconcile, monkeypatch, caplog
):
    """As a broker of release 0.1.0 left it, which refused no name."""
    for user in ("alice", "zoe"):
        store.set_user(user, PASSWORD)
    listed = store.list_users()
    (alice, _) = listed
    left = [dataclasses.replace(alice, user=name) for name in ("a\0b", "m\u202ez")]
    monkeypatch.setattr(ClusterStore, "list_users", lambda _: [*left, *listed])
    for _ in range(2):
        assert reconcile(cluster_id) is False
    shown = {item["username"]: item["name"] for item in api().get(credentials).json()["items"]}
    assert shown == {"alice": "alice", "zoe": "zoe", "m\u202ez": f"m{REPLACEMENT}z"}
    (record, *_) = [item for item in caplog.records if item.msg == "credentials.odd_names"]
    assert record.users == [storable_name("a\0b", 100)]


def test_a_change_by_odd_names_becomes_an_audit_entry(tenant):
    change = ProtocolChange(
        sequence=7,
        at_ms=T0_MS,
        principal="User:a\0b",
        client_id="c\0",
        address="203.0.113.9",
        action="user.set_password",
        target_type="user",
        target="a\0b",
        detail={"mech\0anism": "x\0"},
    )
    entry = entry_of(tenant.id, "cl_1", change)
    with organization_scope(tenant.id):
        entry.save()
        entry.refresh_from_db()
    assert (entry.actor_id, entry.target_id) == (f"User:a{REPLACEMENT}b", f"cl_1/a{REPLACEMENT}b")
    assert entry.detail["client_id"] == f"c{REPLACEMENT}"
    assert entry.detail[f"mech{REPLACEMENT}anism"] == f"x{REPLACEMENT}"


def test_names_that_cannot_be_stored_stay_different():
    odd = ["a\0b", f"a{REPLACEMENT}b", "a\ud800b", "x" * 300, "x" * 301]
    named = [storable_name(name, 249) for name in odd]
    assert len(set(named)) == len(odd)
    assert max(map(len, named)) <= 249
    assert storable_name("é" * 249, 249) == "é" * 249


def test_what_is_stored_of_json_is_bounded():
    odd = {"a\0": ["b\0", 1, None, {"c": "\udfff"}]}
    whole = {"text_chars_max": 100, "chars_max": 1_000}
    assert bounded_json(odd, **whole) == {
        f"a{REPLACEMENT}": [f"b{REPLACEMENT}", 1, None, {"c": REPLACEMENT}]
    }
    long: Any = bounded_json({"k" * 500: "v" * 500, "list": list(range(5_000))}, **whole)
    assert [len(text) for text in next(iter(long.items()))] == [100, 100]
    assert long["list"][-1] == CUT
    assert 200 < len(long["list"]) < 500
    assert bounded_json({"a": [{"b": True}], "c": 1.5}, **whole) == {"a": [{"b": True}], "c": 1.5}
