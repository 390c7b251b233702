"""Rotation, with two users that have the same rights for a while, and expiry of credentials."""

from datetime import timedelta

import pytest
from confluent_kafka import KafkaException, Producer

from brokers.errors import UnavailableError, UnknownOutcomeError
from console.base.common.clock import now
from console.base.common.models import AuditEntry
from provisioning.administration.services import credential_expiry
from provisioning.models import Credential
from provisioning.reconciling import service as reconciling
from tests.console import cases
from tests.provisioning.control.world import access_of, failing, lost, running_broker


@pytest.fixture
def made(api, credentials):
    """A credential of a producer, with one ACL beside those of its role."""
    made = api().post(credentials, {"name": "app", "role": "producer"}).json()
    acl = {"principal": made["principal"], "resource_type": "TOPIC", "resource_name": "extra"}
    api().post(credentials.replace("credentials", "acls"), {**acl, "operation": "READ"})
    return made


def users(store):
    return {user.user for user in store.list_users()}


def grants(store, principal):
    return {
        (acl.resource_type, acl.resource_name, acl.operation)
        for acl in store.list_acls()
        if acl.principal == principal
    }


def let_expire(credential_id):
    """Sets a credential's expiry to a moment that is over."""
    rows = Credential.objects.filter(pk=credential_id)
    assert rows.update(expires_at=now() - timedelta(seconds=1)) == 1


@pytest.mark.usefixtures("in_tenant")
def test_both_have_the_same_rights_until_the_older_ends(api, credentials, store, made):
    rights = grants(store, made["principal"])
    rotated = api().post(f"{credentials}/{made['id']}:rotate", {"overlap_s": 3600})
    assert rotated.status_code == 201
    new = rotated.json()
    assert rotated["Location"].endswith(f"{credentials}/{new['id']}")
    assert (new["name"], new["role"], new["replaces"]) == ("app", "producer", made["id"])
    assert new["password"] != made["password"]
    assert users(store) == {made["username"], new["username"]}
    assert grants(store, new["principal"]) == rights
    assert ("TOPIC", "extra", "READ") in rights
    older = api().get(f"{credentials}/{made['id']}").json()
    assert older["replaced_by"] == new["id"]
    assert older["expires_at"] is not None
    assert api().get(f"{credentials}/{new['id']}").json()["expires_at"] is None
    assert credential_expiry.expire_credentials() == 0
    let_expire(made["id"])
    assert credential_expiry.expire_credentials() == 1
    assert users(store) == {new["username"]}
    # All its ACLs go with it, because its successor has copies of them.
    assert grants(store, made["principal"]) == set()
    assert grants(store, new["principal"]) == rights
    cases.assert_problem(api().get(f"{credentials}/{made['id']}"), 404, "not_found")
    assert api().get(f"{credentials}/{new['id']}").json()["replaces"] is None
    entry = AuditEntry.objects.get(action="credential.expire")
    assert (entry.actor_kind, entry.target_id) == ("system", made["id"])
    assert api().post(f"{credentials}/{new['id']}:rotate").status_code == 201


@pytest.mark.usefixtures("in_tenant")
def test_no_more_than_two_authenticate(api, credentials, made):
    new = api().post(f"{credentials}/{made['id']}:rotate").json()
    document = cases.assert_problem(
        api().post(f"{credentials}/{made['id']}:rotate"), 409, "credential_replaced"
    )
    assert new["id"] in document["detail"]
    document = cases.assert_problem(
        api().post(f"{credentials}/{new['id']}:rotate"), 409, "rotation_in_progress"
    )
    assert document["credential_id"] == made["id"]
    assert api().delete(f"{credentials}/{made['id']}").status_code == 204
    assert api().post(f"{credentials}/{new['id']}:rotate").status_code == 201


def test_a_rotation_takes_no_room_and_the_name_along(api, credentials, made, settings):
    limits = settings.FRESHET.limits
    before = limits.credentials
    object.__setattr__(limits, "credentials", 1)
    try:
        assert api().post(f"{credentials}/{made['id']}:rotate").status_code == 201
        cases.assert_problem(api().post(credentials, {"name": "b", "role": "none"}), 403)
    finally:
        object.__setattr__(limits, "credentials", before)
    cases.assert_problem(api().post(credentials, {"name": "app", "role": "none"}), 409)
    older = f"{credentials}/{made['id']}"
    cases.assert_problem(api().patch(older, {"name": "x"}), 409, "credential_replaced")
    cases.assert_problem(api().patch(older, {"expires_at": None}), 409, "credential_replaced")
    assert api().patch(older, {"expires_at": "2099-01-01T00:00:00Z"}).status_code == 200


def test_an_overlap_is_no_longer_than_what_is_left(api, credentials):
    soon = (now() + timedelta(minutes=5)).isoformat()
    made = api().post(credentials, {"name": "a", "role": "none", "expires_at": soon}).json()
    api().post(f"{credentials}/{made['id']}:rotate", {"overlap_s": 86_400})
    assert api().get(f"{credentials}/{made['id']}").json()["expires_at"] == made["expires_at"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"overlap_s": -1}, "/overlap_s"),
        ({"overlap_s": 10**9}, "/overlap_s"),
        ({"password": "short"}, "/password"),
        ({"expires_at": "2001-01-01T00:00:00Z"}, "/expires_at"),
    ],
)
def test_what_cannot_be_is_pointed_to(api, credentials, made, store, body, pointer):
    document = cases.assert_problem(api().post(f"{credentials}/{made['id']}:rotate", body), 422)
    assert document["errors"][0]["pointer"] == pointer
    assert users(store) == {made["username"]}


def test_validate_only_rotates_nothing(api, credentials, made, store):
    query = {"validate_only": "true"}
    response = api().post(f"{credentials}/{made['id']}:rotate", query=query)
    assert (response.status_code, response.json()) == (200, {"valid": True})
    assert users(store) == {made["username"]}
    assert len(api().get(credentials).json()["items"]) == 1
    assert api().get(f"{credentials}/{made['id']}").json()["expires_at"] is None


def test_a_chosen_password_is_the_new_ones(api, credentials, made):
    body = {"password": "taken-from-a-vault"}
    rotated = api().post(f"{credentials}/{made['id']}:rotate", body)
    assert rotated.json()["password"] == "taken-from-a-vault"


@pytest.mark.parametrize("call", ["add_acls", "set_user"])
def test_a_rotation_that_stays_unknown_leaves_the_older_as_it_was(
    api, credentials, made, store, call
):
    rights = grants(store, made["principal"])
    unknown = lost(UnknownOutcomeError("lost"))
    with failing(call, unknown, unknown):
        response = api().post(f"{credentials}/{made['id']}:rotate")
    cases.assert_problem(response, 503, "outcome_unknown")
    (shown,) = api().get(credentials).json()["items"]
    assert (shown["id"], shown["replaced_by"], shown["expires_at"]) == (made["id"], None, None)
    reconciling.sweep_clusters()
    assert users(store) == {made["username"]}
    assert grants(store, made["principal"]) == rights


@pytest.mark.usefixtures("in_tenant")
def test_one_that_expires_ends_with_its_role(api, credentials, store):
    body = {"name": "a", "role": "consumer", "expires_at": "2099-01-01T00:00:00Z"}
    made = api().post(credentials, body).json()
    let_expire(made["id"])
    assert credential_expiry.expire_credentials() == 1
    assert (users(store), grants(store, made["principal"])) == (set(), set())
    assert api().get(credentials).json()["items"] == []
    past = {**body, "expires_at": "2001-01-01T00:00:00Z"}
    document = cases.assert_problem(api().post(credentials, past), 422)
    assert document["errors"][0]["pointer"] == "/expires_at"


@pytest.mark.usefixtures("in_tenant")
@pytest.mark.parametrize("call", ["remove_user", "remove_acls"])
def test_an_expiry_that_is_not_confirmed_goes_on_by_itself(api, credentials, made, store, call):
    api().post(f"{credentials}/{made['id']}:rotate")
    let_expire(made["id"])
    away = UnavailableError("away")
    with failing(call, away, away):
        credential_expiry.expire_credentials()
    cases.assert_problem(api().get(f"{credentials}/{made['id']}"), 404, "not_found")
    reconciling.sweep_clusters()
    assert made["username"] not in users(store)
    assert grants(store, made["principal"]) == set()


@pytest.mark.usefixtures("in_tenant")
def test_the_olders_connections_end_and_the_newers_go_on(api, credentials, cluster_id):
    """Two clients that stay connected through the overlap and behind it."""
    with running_broker(cluster_id):
        path = f"/clusters/{cluster_id}/topics"
        assert api().post(path, {"name": "t", "partitions": 1}).status_code == 201
        made = api().post(credentials, {"name": "app", "role": "producer"}).json()
        bootstrap = access_of(cluster_id).connection.bootstrap
        older = producer_of(bootstrap, made)
        assert produce_error(older) is None
        new = api().post(f"{credentials}/{made['id']}:rotate").json()
        assert new["status"]["conditions"][0]["reason"] == "Effective"
        newer = producer_of(bootstrap, new)
        assert (produce_error(older), produce_error(newer)) == (None, None)
        let_expire(made["id"])
        assert credential_expiry.expire_credentials() == 1
        while produce_error(older) is None:
            pass
        assert produce_error(newer) is None


def producer_of(bootstrap, credential):
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": credential["username"],
            "sasl.password": credential["password"],
            "message.timeout.ms": 5_000,
            "log_level": 0,
        }
    )


def produce_error(producer):
    """The error of producing a record; None where it was accepted."""
    reported = []
    try:
        producer.produce("t", b"x", on_delivery=lambda error, _: reported.append(error))
        producer.flush(20)
    except KafkaException as error:
        return error
    return reported[0] if reported else "no answer"
