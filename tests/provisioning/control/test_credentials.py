"""Credentials: the password is shown once, the ACLs of the role come and go with the credential."""

import json
import uuid

import pytest

from brokers.errors import UnavailableError, UnknownOutcomeError
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from provisioning.models import Credential
from provisioning.reconciling import service as reconciling
from tests.console import cases
from tests.provisioning.control.world import failing, lost


class TestCredentials(
    cases.ListCases, cases.CreateCases, cases.RetrieveCases, cases.UpdateCases, cases.DestroyCases
):
    path = "/clusters/<cluster_id>/credentials"
    update_body = {"name": "renamed", "expires_at": "2099-12-31T23:59:59Z"}

    @pytest.fixture
    def collection(self, credentials):
        return credentials

    def body(self):
        return {"name": f"app {uuid.uuid4().hex[:8]}", "role": "producer"}


def users(store):
    return sorted({user.user for user in store.list_users()})


def test_validate_only_leaves_no_user(api, credentials, store):
    body = {"name": "app", "role": "producer"}
    response = api().post(credentials, body, query={"validate_only": "true"})
    assert (response.status_code, response.json()) == (200, {"valid": True})
    assert users(store) == []
    assert store.list_acls() == []
    assert api().get(credentials).json()["items"] == []
    api().post(credentials, body)
    response = api().post(credentials, body, query={"validate_only": "true"})
    cases.assert_problem(response, 409, "name_taken")


def grants(store, principal):
    return {
        (acl.resource_type, acl.resource_name, acl.operation)
        for acl in store.list_acls()
        if acl.principal == principal
    }


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        (
            "full",
            {
                ("TOPIC", "*", "ALL"),
                ("GROUP", "*", "ALL"),
                ("TRANSACTIONAL_ID", "*", "ALL"),
                ("CLUSTER", "kafka-cluster", "CREATE"),
                ("CLUSTER", "kafka-cluster", "DESCRIBE"),
                ("CLUSTER", "kafka-cluster", "DESCRIBE_CONFIGS"),
                ("CLUSTER", "kafka-cluster", "IDEMPOTENT_WRITE"),
            },
        ),
        (
            "producer",
            {
                ("TOPIC", "*", "WRITE"),
                ("TRANSACTIONAL_ID", "*", "WRITE"),
                ("CLUSTER", "kafka-cluster", "IDEMPOTENT_WRITE"),
            },
        ),
        ("consumer", {("TOPIC", "*", "READ"), ("GROUP", "*", "READ")}),
        ("none", set()),
    ],
)
def test_a_role_is_its_acls_and_goes_with_them(api, credentials, store, role, expected):
    made = api().post(credentials, {"name": "app", "role": role}).json()
    assert made["mechanism"] == "SCRAM-SHA-512"
    assert made["username"] == made["id"]
    assert grants(store, made["principal"]) == expected
    assert users(store) == [made["username"]]
    other = {"principal": made["principal"], "resource_type": "TOPIC", "resource_name": "x"}
    api().post(credentials.replace("credentials", "acls"), {**other, "operation": "READ"})
    assert api().delete(f"{credentials}/{made['id']}").status_code == 204
    assert users(store) == []
    # An ACL that was added beside the role stays.
    assert grants(store, made["principal"]) == {("TOPIC", "x", "READ")}


BOTH = ["SCRAM-SHA-256", "SCRAM-SHA-512"]


def test_a_credential_shows_which_mechanisms_its_password_works_with(api, credentials, store):
    made = api().post(credentials, {"name": "app", "role": "none"}).json()
    path, password = f"{credentials}/{made['id']}", made["password"]
    assert made["mechanisms"] == api().get(path).json()["mechanisms"] == BOTH
    # As it was made before the service stored both.
    store.remove_user(made["username"])
    store.set_user(made["username"], password, BOTH[:1])
    assert api().get(path).json()["mechanisms"] == BOTH[:1]
    assert [item["mechanisms"] for item in api().get(credentials).json()["items"]] == [BOTH[:1]]
    assert api().patch(path, {"name": "renamed"}).json()["mechanisms"] == BOTH[:1]
    assert api().post(f"{path}:rotate", {}).json()["mechanisms"] == BOTH
    shown = {item["id"]: item["mechanisms"] for item in api().get(credentials).json()["items"]}
    assert sorted(shown.values()) == [BOTH[:1], BOTH]


def test_where_the_cell_does_not_answer_it_is_not_known_which(api, credentials):
    made = api().post(credentials, {"name": "app", "role": "none"}).json()
    with failing("list_users", UnavailableError("away")):
        shown = api().get(f"{credentials}/{made['id']}").json()
    assert (shown["name"], shown["mechanisms"]) == ("app", None)


def test_a_password_is_shown_once_and_stored_by_nobody(api, credentials, tenant):
    response = api().post(credentials, {"name": "app", "role": "full"})
    password = response.json()["password"]
    assert len(password) >= 32
    path = f"{credentials}/{response.json()['id']}"
    assert password not in api().get(path).content.decode()
    assert password not in api().get(credentials).content.decode()
    with organization_scope(tenant.id):
        rows = [*Credential.objects.values(), *AuditEntry.objects.values()]
    assert password not in json.dumps(rows, default=str)


def test_a_caller_may_choose_the_password(api, credentials, store):
    chosen = "kept-in-a-vault/of+our~own"
    body = {"name": "app", "role": "producer", "password": chosen}
    made = api().post(credentials, body).json()
    assert made["password"] == chosen
    assert users(store) == [made["username"]]
    assert chosen not in api().get(f"{credentials}/{made['id']}").content.decode()


@pytest.mark.parametrize("chosen", ["fifteen-letters", "spaces are in it", "un-très-long-mot"])
def test_a_chosen_password_is_long_and_of_visible_ascii(api, credentials, store, chosen):
    body = {"name": "app", "role": "producer", "password": chosen}
    problem = cases.assert_problem(api().post(credentials, body), 422, "validation_failed")
    assert [error["pointer"] for error in problem["errors"]] == ["/password"]
    assert users(store) == []


def test_names_are_unique_in_a_cluster(api, credentials):
    made = api().post(credentials, {"name": "app", "role": "none"}).json()
    cases.assert_problem(api().post(credentials, {"name": "app", "role": "none"}), 409)
    api().delete(f"{credentials}/{made['id']}")
    assert api().post(credentials, {"name": "app", "role": "none"}).status_code == 201


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_another_mechanism_can_be_chosen_and_both_can_be_used(api, credentials, store, mechanism):
    body = {"name": "old", "role": "none", "mechanism": mechanism}
    made = api().post(credentials, body).json()
    assert made["mechanism"] == mechanism
    both = ["SCRAM-SHA-256", "SCRAM-SHA-512"]
    assert sorted(user.mechanism for user in store.list_users()) == both
    rotated = api().post(f"{credentials}/{made['id']}:rotate").json()
    newer = [user.mechanism for user in store.list_users() if user.user == rotated["username"]]
    assert sorted(newer) == both


def test_the_limit_is_shown(api, credentials, settings):
    limits = settings.FRESHET.limits
    before = limits.credentials
    object.__setattr__(limits, "credentials", 1)
    try:
        api().post(credentials, {"name": "a", "role": "none"})
        document = cases.assert_problem(api().post(credentials, {"name": "b", "role": "none"}), 403)
    finally:
        object.__setattr__(limits, "credentials", before)
    assert document["quota"] == {"name": "credentials", "limit": 1, "used": 1}


@pytest.mark.parametrize("call", ["add_acls", "set_user"])
def test_one_lost_answer_is_repeated(api, credentials, store, call):
    with failing(call, lost(UnknownOutcomeError("lost"))):
        made = api().post(credentials, {"name": "app", "role": "producer"})
    assert made.status_code == 201
    assert users(store) == [made.json()["username"]]
    assert len(grants(store, made.json()["principal"])) == 3


@pytest.mark.parametrize("call", ["add_acls", "set_user"])
def test_what_stays_unknown_leaves_nothing_in_the_end(api, credentials, store, tenant, call):
    """No row is left, and nobody has the password; the sweep removes what the store has."""
    unknown = lost(UnknownOutcomeError("lost"))
    with failing(call, unknown, unknown):
        response = api().post(credentials, {"name": "app", "role": "producer"})
    cases.assert_problem(response, 503, "outcome_unknown")
    assert api().get(credentials).json()["items"] == []
    if call == "set_user":
        assert len(users(store)) == 1
        reconciling.sweep_clusters()
        assert store.list_acls() == []
    assert users(store) == []


@pytest.mark.parametrize("call", ["remove_user", "remove_acls"])
def test_a_removal_that_is_not_confirmed_goes_on_by_itself(api, credentials, store, call):
    made = api().post(credentials, {"name": "app", "role": "producer"}).json()
    away = UnavailableError("away")
    with failing(call, away, away):
        response = api().delete(f"{credentials}/{made['id']}")
    cases.assert_problem(response, 503, "outcome_unknown")
    assert api().get(credentials).json()["items"] == []
    cases.assert_problem(api().get(f"{credentials}/{made['id']}"), 404, "not_found")
    reconciling.sweep_clusters()
    assert users(store) == []
    assert store.list_acls() == []


def test_the_sweep_leaves_what_is_not_a_leftover(api, credentials, store):
    made = api().post(credentials, {"name": "app", "role": "full"}).json()
    store.set_user("alice", "by the Kafka protocol")
    reconciling.sweep_clusters()
    assert sorted(users(store)) == sorted(["alice", made["username"]])
    assert len(grants(store, made["principal"])) == 7
