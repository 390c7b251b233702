"""What staff see and answer, and that nobody else may."""

from datetime import date

import pyotp
import pytest
from django.core.management import CommandError, call_command

from billing.choices import MissingKind
from billing.models import InvoiceMonth
from billing.services.missing import note_missing
from brokers.errors import UnavailableError
from brokers.metadata import CellStore
from console.base.accounts.models import User, UserSession
from console.base.common.clock import now
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope, system_scope
from console.base.limits import services as limits
from console.incidents.models import Incident
from tests.console.browsers import Browser, signed_in, staff_browser
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient
from tests.console.factories import AGAIN
from tests.console.test_second_factors import enrol
from tests.console.walk.limits import a_request
from tests.console.walk.provisioning import make_cluster
from tests.provisioning.control.world import failing

LISTS = [
    *("cells", "clusters", "break-glass", "operations", "incidents", "limit-requests"),
    *("invoice-months", "missing-invoices", "receivables", "payments"),
]


@pytest.fixture
def staff(db):
    """The browser of a member of staff, who belongs to no organization."""
    return staff_browser()


def items(staff, name, **query):
    response = staff.get(f"/staff/{name}", query=query)
    assert response.status_code == 200, response.content
    return response.json()["items"]


@pytest.mark.parametrize("name", LISTS)
def test_nobody_else_is_let_in(name, tenant):
    assert_problem(ApiClient(tenant.key).get(f"/staff/{name}"), 401, "not_authenticated")
    assert_problem(ApiClient().get(f"/staff/{name}"), 401, "not_authenticated")
    member = Browser()
    assert member.sign_in(tenant.owner).status_code == 200
    assert_problem(member.get(f"/staff/{name}"), 403, "permission_denied")


def test_nobody_else_answers(tenant):
    request_id = a_request(tenant)["id"]
    member = Browser()
    assert member.sign_in(tenant.owner).status_code == 200
    for verb, body in (("grant", {}), ("refuse", {"answer": "no"})):
        address = f"/staff/limit-requests/{request_id}:{verb}"
        assert_problem(member.post(address, body), 403, "permission_denied")
        assert_problem(ApiClient(tenant.key).post(address, body), 401, "not_authenticated")


def test_the_session_says_who_is_staff(staff, tenant):
    assert staff.get("/session").json()["user"]["is_staff"] is True
    member = Browser()
    assert member.sign_in(tenant.owner).json()["user"]["is_staff"] is False


def test_whoever_is_staff_no_more_is_out_at_once(staff):
    assert items(staff, "incidents") == []
    User.objects.update(is_staff=False)
    assert_problem(staff.get("/staff/incidents"), 403, "permission_denied")


def test_staff_without_a_second_factor_learn_what_to_do(staff):
    UserSession.objects.update(second_factor=False)
    document = assert_problem(staff.get("/staff/incidents"), 403, "second_factor_required")
    assert document["title"] == "Staff need a second factor"
    assert "/session/totp" in document["detail"]
    secret = staff.post("/session/totp", AGAIN).json()["secret"]
    code = pyotp.TOTP(secret).at(now())
    assert staff.post("/session/totp/confirm", {"code": code}).status_code == 200
    assert items(staff, "incidents") == []


def test_staff_needs_the_token_of_the_page(staff, tenant):
    address = f"/staff/limit-requests/{a_request(tenant)['id']}:grant"
    staff.csrf_token = ""
    assert_problem(staff.post(address, {}), 403, "permission_denied")


def test_cells_say_what_runs_in_them(staff, tenant):
    make_cluster(tenant)
    (cell,) = items(staff, "cells")
    assert cell["reachable"] is True
    assert cell["phases"]["asleep"] >= 1
    assert set(cell["meter"]) >= {"lag_s", "incomplete_hours", "missing_days"}
    with failing("statuses", UnavailableError("away"), owner=CellStore):
        (cell,) = items(staff, "cells")
    assert (cell["reachable"], cell["phases"]) == (False, {})


def test_clusters_are_of_every_organization(staff, tenant, other_tenant):
    ours, theirs = make_cluster(tenant), make_cluster(other_tenant)
    shown = {item["id"]: item for item in items(staff, "clusters")}
    assert set(shown) == {ours.pk, theirs.pk}
    assert shown[ours.pk]["organization"] == {"id": tenant.id, "name": "Acme"}
    assert shown[ours.pk]["phase"] == "asleep"
    (only,) = items(staff, "clusters", organization_id=tenant.id)
    assert only["id"] == ours.pk


def test_operations_are_of_every_organization(staff, tenant, other_tenant):
    make_cluster(tenant)
    make_cluster(other_tenant)
    shown = items(staff, "operations", state="succeeded")
    assert {item["organization"]["id"] for item in shown} == {tenant.id, other_tenant.id}
    assert items(staff, "operations", state="running") == []
    assert len(items(staff, "operations", organization_id=tenant.id)) == 1


def test_incidents_are_of_everybody_and_of_the_service(staff, tenant):
    with system_scope():
        for organization_id, state in ((tenant.id, "open"), (None, "suspected")):
            Incident.objects.create(
                organization_id=organization_id, kind="x", subject=state, state=state, title="t"
            )
    shown = {item["organization_id"]: item["state"] for item in items(staff, "incidents")}
    assert shown == {tenant.id: "open", None: "suspected"}
    assert len(items(staff, "incidents", state="suspected")) == 1


def test_missing_invoices_are_of_every_organization(staff, tenant, other_tenant):
    september, october = date(2026, 9, 1), date(2026, 10, 1)
    note_missing(september, MissingKind.IMPOSSIBLE, {tenant.id: "no rate for FR"})
    note_missing(october, MissingKind.USAGE_INCOMPLETE, {other_tenant.id: "3 hours"})
    newest, oldest = items(staff, "missing-invoices")
    assert newest["organization"] == {"id": other_tenant.id, "name": "Globex"}
    assert (oldest["month"], oldest["kind"], oldest["reason"], oldest["attempts"]) == (
        *("2026-09", "impossible", "no rate for FR", 1),
    )
    assert oldest["created_at"] < oldest["next_try_at"]
    for query, row in (
        ({"month": "2026-09"}, oldest),
        ({"kind": "usage_incomplete"}, newest),
        ({"organization_id": tenant.id}, oldest),
    ):
        assert items(staff, "missing-invoices", **query) == [row]
    assert items(staff, "missing-invoices", month="2026-08") == []
    wrong = staff.get("/staff/missing-invoices", query={"month": "2026-13"})
    assert_problem(wrong, 422, "validation_failed")


def test_months_say_how_far_they_are_issued(staff):
    InvoiceMonth.objects.create(month=date(2026, 9, 1), finished_at=now())
    InvoiceMonth.objects.create(month=date(2026, 10, 1), reason="No roll-up.", attempts=2)
    october, september = items(staff, "invoice-months")
    assert (october["id"], october["reason"], october["attempts"]) == ("2026-10", "No roll-up.", 2)
    assert october["finished_at"] is None
    assert (september["id"], september["reason"]) == ("2026-09", "")


def test_a_limit_request_is_granted(staff, tenant):
    request_id = a_request(tenant)["id"]
    (request,) = items(staff, "limit-requests", state="open")
    assert (request["id"], request["organization_id"]) == (request_id, tenant.id)
    address = f"/staff/limit-requests/{request_id}"
    granted = staff.post(f"{address}:grant", {"value": 777, "answer": "Gladly."})
    assert granted.status_code == 200, granted.content
    assert (granted.json()["state"], granted.json()["granted"]) == ("granted", 777)
    with organization_scope(tenant.id):
        assert limits.limit_of("api_keys", organization_id=tenant.id) == 777
        entry = AuditEntry.objects.get(action="limit_request.grant")
    assert (entry.actor_kind, entry.target_id) == ("staff", request_id)
    assert_problem(
        staff.post(f"{address}:refuse", {"answer": "No."}), 409, "limit_request_answered"
    )


def test_a_limit_request_is_refused_with_a_reason(staff, tenant):
    address = f"/staff/limit-requests/{a_request(tenant)['id']}:refuse"
    document = assert_problem(staff.post(address, {}), 422, "validation_failed")
    assert document["errors"][0]["pointer"] == "/answer"
    refused = staff.post(address, {"answer": "Not yet."})
    assert (refused.status_code, refused.json()["state"]) == (200, "refused")
    requests = ApiClient(tenant.key).get("/limit-requests").json()["items"]
    assert [request["answer"] for request in requests] == ["Not yet."]


def test_a_limit_request_that_is_not_there(staff):
    address = f"/staff/limit-requests/lrq_{'a' * 20}:grant"
    assert_problem(staff.post(address, {}), 404, "not_found")


@pytest.mark.parametrize("name", LISTS)
def test_lists_are_pages(name, staff, tenant, other_tenant):
    for owner in (tenant, other_tenant):
        make_cluster(owner)
    assert staff.get(f"/staff/{name}", query={"limit": 1}).status_code == 200
    assert_problem(staff.get(f"/staff/{name}", query={"limit": 0}), 422, "validation_failed")


def test_a_command_makes_somebody_staff_who_then_needs_a_second_factor(tenant, capsys):
    member = signed_in(tenant.owner)
    call_command("make_staff", tenant.owner.email.upper(), reason="on call")
    assert "staff area opens after a sign-in with a second factor" in capsys.readouterr().out
    # A session from before does not become one of staff.
    assert member.user_id is None
    again = signed_in(tenant.owner)
    assert_problem(again.get("/staff/cells"), 403, "second_factor_required")
    app, _ = enrol(again)
    with_factor = Browser()
    assert with_factor.sign_in(tenant.owner, code=app.code(1)).status_code == 200
    assert with_factor.get("/staff/cells").status_code == 200
    call_command("make_staff", tenant.owner.email, reason="left", remove=True)
    assert with_factor.user_id is None
    with organization_scope(tenant.id):
        kept = AuditEntry.objects.filter(action__in=["person.make_staff", "person.end_staff"])
        reasons = [entry.detail["reason"] for entry in kept.order_by("created_at", "id")]
    assert reasons == ["on call", "left"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nobody@example.com"], "Nobody has signed up as nobody@example.com"),
        (["{owner}", "--remove"], "is not staff"),
    ],
)
def test_the_command_says_why_it_makes_nobody_staff(tenant, arguments, message):
    given = [one.format(owner=tenant.owner.email) for one in arguments]
    with pytest.raises(CommandError, match=message):
        call_command("make_staff", *given, "--reason", "x")


def test_who_did_not_prove_the_address_is_not_made_staff(tenant):
    User.objects.filter(pk=tenant.owner.pk).update(email_verified_at=None)
    with pytest.raises(CommandError, match="has not followed the link"):
        call_command("make_staff", tenant.owner.email, reason="x")
    assert not User.objects.get(pk=tenant.owner.pk).is_staff


@pytest.mark.parametrize("given", [(), ("--noinput",), ("--noinput", "--email", "a@example.com")])
def test_there_is_no_superuser(db, given):
    with pytest.raises(CommandError, match=r"manage\.py make_staff"):
        call_command("createsuperuser", *given)
    assert not User.objects.exists()
