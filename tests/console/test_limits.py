"""Published limits: all of them are listed, with how much is used, and can be requested higher."""

import dataclasses
import itertools
from datetime import timedelta
from pathlib import Path

import pytest

from console.base.common.actor import Actor, ActorKind, Role
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from console.base.limits import reference, services
from console.base.limits.errors import LimitNotRaisable, LimitRequestAnswered
from console.base.limits.models import LimitGrant, LimitRequest
from console.base.limits.registry import BY_NAME, LIMITS
from console.base.limits.services import values
from console.base.limits.signals import limit_granted
from console.settings.sections import Limits
from tests.console import cases
from tests.console.cases import assert_problem

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "limits.md"
NEW_REQUEST = {"limit": "api_keys", "wanted": 500, "reason": "One for each build."}


def request_limit(api, **changes):
    response = api().post("/limit-requests", {**NEW_REQUEST, **changes})
    assert response.status_code == 201, response.content
    return response.json()


def answer_request(tenant, request_id, act, **options):
    """Answers a request as staff do; `act` is `grant_limit` or `refuse_limit`."""
    with organization_scope(tenant.id):
        request = LimitRequest.objects.get(pk=request_id)
        actor = Actor(ActorKind.STAFF, "usr_staff", tenant.id, Role.VIEWER)
        return act(actor=actor, request=request, **options)


def shown_limit(api, name, **query):
    items = api().get("/limits", query=query).json()["items"]
    return next(item for item in items if item["name"] == name)


class TestLimitRequests(cases.ListCases, cases.RetrieveCases, cases.CreateCases):
    path = "/limit-requests"

    def body(self):
        # There may be one open request for a limit, so each body names another one.
        return {**NEW_REQUEST, "limit": next(NAMES), "wanted": 10**6}

    @pytest.fixture
    def item(self, api):
        return request_limit(api)


RAISABLE = [limit.name for limit in LIMITS if limit.raisable and limit.name != "api_keys"]
NAMES = itertools.cycle(RAISABLE)


def test_every_limit_of_the_settings_is_published():
    assert {field.name for field in dataclasses.fields(Limits)} == set(BY_NAME)
    assert all(limit.effect.endswith(".") for limit in LIMITS)


def test_the_page_is_what_the_registry_says():
    write = "python -m console.base.limits.reference > docs/reference/limits.md"
    assert PAGE.read_text() == reference.limits_reference(), f"write it anew: {write}"


def test_limits_say_what_is_used(api, tenant):
    keys = len(tenant.keys)
    assert shown_limit(api, "api_keys") == {
        "name": "api_keys",
        "scope": "organization",
        "limit": config().limits.api_keys,
        "used": keys,
        "unit": "keys",
        "effect": BY_NAME["api_keys"].effect,
        "raisable": True,
    }
    assert api().post("/api-keys", {"name": "one more"}).status_code == 201
    assert shown_limit(api, "api_keys")["used"] == keys + 1
    assert shown_limit(api, "clusters")["used"] == 0
    # A limit of clusters has no use without a cluster, and one of addresses never has.
    assert shown_limit(api, "topics")["used"] is None
    assert shown_limit(api, "signups_per_address")["used"] is None


@pytest.mark.parametrize("cluster_id", ["cl_" + "a" * 20, "topics"])
def test_limits_of_a_cluster_that_is_not_there_are_refused(api, cluster_id):
    response = api().get("/limits", query={"cluster_id": cluster_id})
    document = assert_problem(response, 422, "validation_failed")
    assert document["errors"][0]["pointer"] == "?cluster_id"


def test_a_granted_limit_holds(api, tenant):
    limits = config().limits
    request = request_limit(api, wanted=limits.api_keys + 1)
    assert (request["state"], request["cluster_id"]) == ("open", None)
    answer_request(tenant, request["id"], services.grant_limit, answer="Gladly.")
    answered = api().get(f"/limit-requests/{request['id']}").json()
    assert (answered["state"], answered["answer"]) == ("granted", "Gladly.")
    assert answered["granted"] == limits.api_keys + 1
    assert shown_limit(api, "api_keys")["limit"] == limits.api_keys + 1


def test_a_granted_limit_is_enforced_in_place_of_the_default(api, tenant):
    request = request_limit(api)
    # Staff may grant less than was requested.
    answer_request(tenant, request["id"], services.grant_limit, value=len(tenant.keys) + 1)
    assert api().post("/api-keys", {"name": "the last"}).status_code == 201
    document = assert_problem(api().post("/api-keys", {"name": "too many"}), 403, "limit_reached")
    used = len(tenant.keys) + 1
    assert document["quota"] == {"name": "api_keys", "limit": used, "used": used}


def test_a_grant_is_one_organizations(api, tenant, other_tenant):
    answer_request(tenant, request_limit(api)["id"], services.grant_limit)
    default = config().limits.api_keys
    other = next(
        item
        for item in api(other_tenant.key).get("/limits").json()["items"]
        if item["name"] == "api_keys"
    )
    assert other["limit"] == default


def test_a_later_grant_replaces_the_first(api, tenant):
    answer_request(tenant, request_limit(api)["id"], services.grant_limit)
    answer_request(tenant, request_limit(api, wanted=900)["id"], services.grant_limit)
    assert shown_limit(api, "api_keys")["limit"] == 900


def test_a_refused_request_changes_nothing(api, tenant):
    request = request_limit(api)
    answer_request(tenant, request["id"], services.refuse_limit, answer="Not yet.")
    answered = api().get(f"/limit-requests/{request['id']}").json()
    assert (answered["state"], answered["answer"]) == ("refused", "Not yet.")
    assert answered["granted"] is None
    assert shown_limit(api, "api_keys")["limit"] == config().limits.api_keys


def test_a_request_is_answered_once(api, tenant):
    request = request_limit(api)
    answer_request(tenant, request["id"], services.refuse_limit, answer="No.")
    with pytest.raises(LimitRequestAnswered):
        answer_request(tenant, request["id"], services.grant_limit)


def test_an_answer_is_in_the_organizations_audit_log(api, tenant):
    request = request_limit(api)
    answer_request(tenant, request["id"], services.grant_limit)
    with organization_scope(tenant.id):
        entry = AuditEntry.objects.get(action="limit_request.grant")
    assert (entry.actor_kind, entry.target_id) == ("staff", request["id"])
    (item,) = api().get("/audit-log", query={"action": "limit_request.grant"}).json()["items"]
    # Customers do not see which member of staff it was.
    assert (item["actor"]["name"], item["source"]) == ("Freshet staff", "system")


@pytest.mark.parametrize(
    ("changes", "status", "code", "pointer"),
    [
        ({"limit": "moons"}, 422, "validation_failed", "/limit"),
        ({"limit": "signups_per_address"}, 422, "limit_not_raisable", "/limit"),
        ({"limit": "brokers"}, 422, "limit_not_raisable", "/limit"),
        ({"wanted": 1}, 422, "limit_not_higher", "/wanted"),
        ({"wanted": 0}, 422, "validation_failed", "/wanted"),
        ({"wanted": 2**40}, 422, "validation_failed", "/wanted"),
        ({"cluster_id": "cl_" + "a" * 20}, 422, "validation_failed", "/cluster_id"),
        (
            {"cluster_id": "cl_" + "a" * 20, "limit": "topics", "wanted": 10**6},
            422,
            "validation_failed",
            "/cluster_id",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(api, changes, status, code, pointer):
    response = api().post("/limit-requests", {**NEW_REQUEST, **changes})
    document = assert_problem(response, status, code)
    assert document["errors"][0]["pointer"] == pointer


def test_more_than_the_service_can_do_is_neither_granted_nor_holds(api, tenant):
    fields = {"organization_id": tenant.id, "limit": "brokers"}
    with organization_scope(tenant.id):
        # An earlier release accepted and granted such requests.
        request = LimitRequest.objects.create(**fields, wanted=50, reason="Zones.")
        LimitGrant.objects.create(**fields, value=50, request=request, granted_at=now())
    for options in ({}, {"value": 17}):
        with pytest.raises(LimitNotRaisable, match="at most 16 brokers") as refused:
            answer_request(tenant, request.pk, services.grant_limit, **options)
        assert refused.value.errors[0].pointer == "/value"
    brokers = shown_limit(api, "brokers")
    assert (brokers["limit"], brokers["raisable"]) == (16, False)
    document = assert_problem(
        api().post("/limit-requests", {**NEW_REQUEST, "limit": "brokers", "wanted": 17}), 422
    )
    assert "at most 16 brokers" in document["detail"]
    answer_request(tenant, request.pk, services.refuse_limit, answer="No.")


def test_a_limit_is_asked_for_once_at_a_time(api, tenant):
    first = request_limit(api)
    document = assert_problem(api().post("/limit-requests", NEW_REQUEST), 409, "limit_request_open")
    assert document["limit_request_id"] == first["id"]
    request_limit(api, limit="clusters")
    answer_request(tenant, first["id"], services.refuse_limit, answer="No.")
    request_limit(api)


def test_a_granted_rate_is_noticed(api, tenant, monkeypatch):
    assert api().get("/limits")["RateLimit-Policy"].startswith('"organization";q=1000;')
    answer_request(
        tenant,
        request_limit(api, limit="api_requests_per_second", wanted=200)["id"],
        services.grant_limit,
    )
    later = now() + values.KEPT
    monkeypatch.setattr("django.utils.timezone.now", lambda: later)
    assert api().get("/limits")["RateLimit-Policy"].startswith('"organization";q=2000;')


def test_a_rate_is_not_read_with_each_request(api, tenant, monkeypatch):
    api().get("/limits")
    monkeypatch.setattr(values, "limits_of", lambda names, **_: dict.fromkeys(names, 0))
    assert api().get("/limits").status_code == 200
    later = now() + values.KEPT + timedelta(seconds=1)
    monkeypatch.setattr("django.utils.timezone.now", lambda: later)
    assert api().get("/limits").status_code == 429


def test_a_grant_is_signalled(api, tenant):
    signals = []

    def note(organization_id, cluster_id, name, **_):
        signals.append((organization_id, cluster_id, name))

    limit_granted.connect(note)
    try:
        answer_request(tenant, request_limit(api)["id"], services.grant_limit)
    finally:
        limit_granted.disconnect(note)
    assert signals == [(tenant.id, "", "api_keys")]
