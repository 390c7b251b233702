"""Users that clients made over the Kafka protocol: credentials as any other."""

from datetime import UTC, datetime

import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from provisioning.administration.services.credential_expiry import expire_credentials
from provisioning.administration.services.credential_repair import free_name
from provisioning.administration.services.credential_use import note_credential_uses
from provisioning.reconciling import service as reconciling
from tests.console import cases
from tests.console import conftest as console
from tests.provisioning.control.clients import client_settings
from tests.provisioning.control.world import running_broker

later = console.later
LIMIT_S = 30
PASSWORD = b"a-password-of-hers"
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def listed(api, credentials):
    """The credentials by user name, as REST lists them after a sweep."""

    def read():
        # The first one reads what clients changed, the second one has nothing to wait for.
        reconciling.sweep_clusters()
        reconciling.sweep_clusters()
        return {item["username"]: item for item in api().get(credentials).json()["items"]}

    return read


def alter(admin, *changes):
    for outcome in admin.alter_user_scram_credentials(list(changes)).values():
        outcome.result(LIMIT_S)


def upsertion(user, mechanism=ScramMechanism.SCRAM_SHA_512):
    return UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), PASSWORD)


def test_a_client_makes_a_user_that_rest_lists_and_deletes(
    api, credentials, cluster_id, store, listed
):
    with running_broker(cluster_id):
        settings = client_settings(api, cluster_id)
        # No role has rights on the cluster itself.
        rights = {
            "principal": f"User:{settings['sasl.username']}",
            "resource_type": "CLUSTER",
            "resource_name": "kafka-cluster",
            "operation": "ALTER",
        }
        assert api().post(f"/clusters/{cluster_id}/acls", rights).status_code == 201
        admin = AdminClient(settings)
        alter(admin, upsertion("alice"), upsertion("bob", ScramMechanism.SCRAM_SHA_256))
        shown = listed()
        alice, bob = shown["alice"], shown["bob"]
        fields = ("name", "username", "principal", "role", "mechanism", "expires_at")
        assert [alice[field] for field in fields] == [
            *("alice", "alice", "User:alice", "none", "SCRAM-SHA-512", None)
        ]
        assert bob["mechanism"] == "SCRAM-SHA-256"
        assert listed() == shown, "each has one row"
        assert api().delete(f"{credentials}/{alice['id']}").status_code == 204
        assert "alice" not in {user.user for user in store.list_users()}
        # What a client removes itself is gone from the list, too.
        alter(admin, UserScramCredentialDeletion("bob", ScramMechanism.SCRAM_SHA_256))
        assert set(listed()) == set(shown) - {"alice", "bob"}
        # Another user of the same name is another credential.
        alter(admin, upsertion("alice"))
        assert listed()["alice"]["id"] != alice["id"]


def test_a_clients_user_expires_and_is_renamed_as_any_credential(
    api, credentials, store, listed, later
):
    store.set_user("alice", PASSWORD.decode())
    path = f"{credentials}/{listed()['alice']['id']}"
    body = {"name": "Alice's laptop", "expires_at": "2099-12-31T23:59:59Z"}
    assert api().patch(path, body).status_code == 200
    assert listed()["alice"]["name"] == "Alice's laptop"
    later(days=80 * 365)
    assert expire_credentials() == 1
    assert store.list_users() == []
    cases.assert_problem(api().get(path), 404)


def test_a_clients_user_says_when_it_was_last_used(api, credentials, cluster_id, store, listed):
    store.set_user("alice", PASSWORD.decode())
    made = listed()["alice"]
    used = {(cluster_id, "User:alice"): NOON, (cluster_id, f"User:{made['id']}"): NOON}
    assert note_credential_uses(used=used) == 1
    shown = api().get(f"{credentials}/{made['id']}").json()
    assert shown["last_used_at"] == "2026-11-20T12:00:00Z"


def test_a_clients_user_is_rotated_to_one_of_the_service(api, credentials, store, listed):
    store.set_user("alice", PASSWORD.decode())
    made = listed()["alice"]
    rotated = api().post(f"{credentials}/{made['id']}:rotate", {"overlap_s": 3600}).json()
    assert rotated["username"] == rotated["id"]
    assert {user.user for user in store.list_users()} == {"alice", rotated["username"]}
    shown = listed()
    assert shown["alice"]["replaced_by"] == rotated["id"]


def test_the_services_own_user_is_none_of_the_tenants(store, listed):
    store.set_user("__freshet", PASSWORD.decode())
    assert listed() == {}
    assert [user.user for user in store.list_users()] == ["__freshet"]


def test_a_name_that_is_taken_gets_a_number(api, credentials, store, listed):
    assert api().post(credentials, {"name": "alice", "role": "none"}).status_code == 201
    store.set_user("alice", PASSWORD.decode())
    assert listed()["alice"]["name"] == "alice (2)"
    assert free_name("a" * 255, {"a" * 100}) == "a" * 96 + " (2)"
    assert free_name("x", {"x", "x (2)"}) == "x (3)"
