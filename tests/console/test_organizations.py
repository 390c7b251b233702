"""The organization of the caller, and the account status that billing gives it."""

import pytest

from console.base.accounts import services
from console.base.accounts.choices import (
    AccountStatus,
    TrafficLimitKind,
    TrafficLimitSource,
)
from console.base.accounts.models import Organization
from console.base.accounts.signals import account_status_changed, traffic_limit_changed
from console.base.common.actor import Role
from console.base.common.clock import now
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from tests.console.cases import assert_problem

CURRENT = "/organizations/current"
REFUSE, THROTTLE = TrafficLimitKind.REFUSE, TrafficLimitKind.THROTTLE


def test_a_key_shows_its_own_organization(api, tenant, other_tenant):
    for owner in (tenant, other_tenant):
        response = api(owner.key).get(CURRENT)
        assert response.json()["id"] == owner.id
        assert response["ETag"] == '"1"'


def test_an_administrator_renames_it(api, tenant):
    response = api(tenant.keys[Role.ADMIN]).patch(CURRENT, {"name": "Acme & Sons"})
    assert response.status_code == 200
    assert (response.json()["name"], response.json()["generation"]) == ("Acme & Sons", 2)
    assert response["ETag"] == '"2"'
    assert api().get(CURRENT).json() == response.json()


def test_the_same_name_is_no_change(api):
    response = api().patch(CURRENT, {"name": "Acme"})
    assert response.json()["generation"] == 1
    assert api().patch(CURRENT, {}).json()["generation"] == 1


def test_of_two_changes_of_one_generation_the_second_is_refused(api):
    headers = {"If-Match": api().get(CURRENT)["ETag"]}
    assert api().patch(CURRENT, {"name": "One"}, headers=headers).status_code == 200
    document = assert_problem(
        api().patch(CURRENT, {"name": "Two"}, headers=headers), 412, "precondition_failed"
    )
    assert document["etag"] == '"2"'
    assert api().patch(CURRENT, {"name": "Two"}, headers={"If-Match": "*"}).status_code == 200


@pytest.mark.parametrize("role", [Role.DEVELOPER, Role.BILLING, Role.VIEWER])
def test_others_do_not_rename_it(api, tenant, role):
    assert_problem(api(tenant.keys[role]).patch(CURRENT, {"name": "x"}), 403, "permission_denied")


def test_a_change_of_account_status_is_signalled_once_and_audited(tenant):
    signals = []

    def note(organization_id, account_status, **_):
        signals.append((organization_id, account_status))

    account_status_changed.connect(note)
    try:
        for expected in (True, False):
            changed = services.set_account_status(
                organization_id=tenant.id, status=AccountStatus.SUSPENDED, reason="unpaid"
            )
            assert changed is expected
    finally:
        account_status_changed.disconnect(note)
    assert signals == [(tenant.id, AccountStatus.SUSPENDED)]
    with organization_scope(tenant.id):
        assert not Organization.objects.get().may_be_reached(local=True)
        entry = AuditEntry.objects.get(action="organization.set_standing")
    assert entry.detail == {
        "standing": {"from": "active", "to": "suspended"},
        "reason": "unpaid",
    }


def limit(tenant, kind, reason="Stop.", source=TrafficLimitSource.BUDGET, rate=None):
    """Sets a traffic limit; returns whether it is another one than before."""
    return services.set_traffic_limit(
        organization_id=tenant.id, source=source, kind=kind, reason=reason, bytes_per_s=rate
    )


def test_a_traffic_limit_is_signalled_once_audited_and_shown(api, tenant):
    signals = []

    def note(organization_id, **_):
        signals.append(organization_id)

    traffic_limit_changed.connect(note)
    try:
        for kind, expected in [(REFUSE, True), (REFUSE, False), (None, True), (None, False)]:
            assert limit(tenant, kind) is expected
            shown = api().get(CURRENT).json()
            assert shown["produce_suspended_reason"] == (kind and "Stop.")
            in_force = {"kind": "refuse", "reason": "Stop.", "bytes_per_s": None}
            assert shown["traffic_limit"] == (kind and in_force)
    finally:
        traffic_limit_changed.disconnect(note)
    assert signals == [tenant.id, tenant.id]
    with organization_scope(tenant.id):
        entries = AuditEntry.objects.filter(action="organization.set_traffic_limit")
        details = list(entries.order_by("created_at").values_list("detail", flat=True))
    stored = {"kind": "refuse", "reason": "Stop."}
    assert details == [
        {"source": "budget", "limit": {"from": None, "to": stored}},
        {"source": "budget", "limit": {"from": stored, "to": None}},
    ]
    assert api().get(CURRENT)["ETag"] == '"1"'


def test_of_several_limits_the_strictest_holds(api, tenant):
    def held():
        shown = api().get(CURRENT).json()["traffic_limit"]
        return shown and (shown["kind"], shown["reason"], shown["bytes_per_s"])

    budget, unpaid, allowance = (TrafficLimitSource(x) for x in ("budget", "unpaid", "allowance"))
    limit(tenant, THROTTLE, "slow", budget, 2_000)
    assert held() == ("throttle", "slow", 2_000)
    limit(tenant, THROTTLE, "slower", allowance, 1_000)
    assert held() == ("throttle", "slower", 1_000)
    limit(tenant, TrafficLimitKind.REFUSE_PRODUCE, "no produce", budget)
    assert held() == ("refuse_produce", "no produce", None)
    limit(tenant, REFUSE, "spent", budget)
    limit(tenant, REFUSE, "unpaid", unpaid)
    assert held() == ("refuse", "unpaid", None)
    for source, expected in [
        (unpaid, ("refuse", "spent", None)),
        (budget, ("throttle", "slower", 1_000)),
        (allowance, None),
    ]:
        limit(tenant, None, source=source)
        assert held() == expected
    assert api().get(CURRENT).json()["produce_suspended_reason"] is None


def test_a_limit_that_is_hidden_by_a_stricter_one_is_not_signalled(tenant):
    limit(tenant, REFUSE, "unpaid", TrafficLimitSource.UNPAID)
    signals = []

    def note(**_):
        signals.append(1)

    traffic_limit_changed.connect(note)
    try:
        assert limit(tenant, THROTTLE, rate=1_000)
        assert limit(tenant, None)
    finally:
        traffic_limit_changed.disconnect(note)
    assert signals == []


@pytest.mark.parametrize(
    ("kind", "reason", "rate", "message"),
    [
        ("refuse", " ", None, "needs a reason"),
        ("throttle", "x", None, "has a rate"),
        ("throttle", "x", 0, "has a rate"),
        ("refuse", "x", 1, "has a rate"),
    ],
)
def test_a_limit_says_what_it_does_and_why(tenant, kind, reason, rate, message):
    with pytest.raises(ValueError, match=message):
        limit(tenant, TrafficLimitKind(kind), reason, rate=rate)


def test_a_reason_that_is_too_long_is_cut_off(api, tenant):
    limit(tenant, REFUSE, "x" * 1_000)
    assert api().get(CURRENT).json()["produce_suspended_reason"] == "x" * 500


@pytest.mark.parametrize(
    ("verified", "local", "reachable"),
    [(False, False, False), (False, True, True), (True, False, True)],
)
def test_who_is_not_verified_has_no_public_endpoint_but_on_one_machine(verified, local, reachable):
    organization = Organization(name="x", verified_at=now() if verified else None)
    assert organization.may_be_reached(local=local) is reachable
