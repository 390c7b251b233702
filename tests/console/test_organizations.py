"""The organization of the caller, and the account status that billing gives it."""

import pytest

from console.base.accounts import services
from console.base.accounts.choices import AccountStatus
from console.base.accounts.models import Organization
from console.base.accounts.signals import account_status_changed, produce_suspension_changed
from console.base.common.actor import Role
from console.base.common.clock import now
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from tests.console.cases import assert_problem

CURRENT = "/organizations/current"


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


def test_a_produce_suspension_is_signalled_once_audited_and_shown(api, tenant):
    signals = []

    def note(organization_id, **_):
        signals.append(organization_id)

    produce_suspension_changed.connect(note)
    try:
        for reason, expected in [("Stop.", True), ("Stop.", False), (None, True), (None, False)]:
            changed = services.set_produce_suspension(organization_id=tenant.id, reason=reason)
            assert changed is expected
            assert api().get(CURRENT).json()["produce_suspended_reason"] == reason
    finally:
        produce_suspension_changed.disconnect(note)
    assert signals == [tenant.id, tenant.id]
    with organization_scope(tenant.id):
        entries = AuditEntry.objects.filter(action="organization.set_produce_suspension")
        details = list(entries.order_by("created_at").values_list("detail", flat=True))
    assert details == [
        {"reason": {"from": None, "to": "Stop."}},
        {"reason": {"from": "Stop.", "to": None}},
    ]
    assert api().get(CURRENT)["ETag"] == '"1"'


def test_a_reason_says_something(tenant):
    with pytest.raises(ValueError, match="needs a reason"):
        services.set_produce_suspension(organization_id=tenant.id, reason=" ")


def test_a_reason_that_is_too_long_is_cut_off(api, tenant):
    services.set_produce_suspension(organization_id=tenant.id, reason="x" * 1_000)
    assert api().get(CURRENT).json()["produce_suspended_reason"] == "x" * 500


@pytest.mark.parametrize(
    ("verified", "local", "reachable"),
    [(False, False, False), (False, True, True), (True, False, True)],
)
def test_who_is_not_verified_has_no_public_endpoint_but_on_one_machine(verified, local, reachable):
    organization = Organization(name="x", verified_at=now() if verified else None)
    assert organization.may_be_reached(local=local) is reachable
