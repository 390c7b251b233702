"""A person's sessions are listed, and ended from any of them."""

from datetime import timedelta

from django.contrib.sessions.models import Session

from console.base.accounts import services
from console.base.accounts.models import ApiKey, Membership, UserSession
from console.base.accounts.services import sessions
from console.base.common.actor import Actor, ActorKind, Role
from console.base.common.clock import now
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from tests.console.browsers import Browser, signed_in
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient


def list_sessions(browser):
    response = browser.get("/sessions")
    assert response.status_code == 200, response.content
    return response.json()["items"]


def test_sessions_are_listed_with_where_they_are_used(tenant, other_tenant):
    signed_in(other_tenant.owner)
    browser = Browser()
    browser.client.defaults["HTTP_USER_AGENT"] = "Loom/1.0"
    browser.sign_in(tenant.owner)
    other = signed_in(tenant.owner)
    newest, oldest = list_sessions(other)
    assert (newest["current"], oldest["current"]) == (True, False)
    assert (oldest["address"], oldest["user_agent"]) == ("127.0.0.1", "Loom/1.0")
    assert [session["current"] for session in list_sessions(browser)] == [False, True]


def test_an_ended_session_is_over_at_once(tenant):
    browser, other = signed_in(tenant.owner), signed_in(tenant.owner)
    ending = next(session for session in list_sessions(browser) if not session["current"])
    assert browser.delete(f"/sessions/{ending['id']}").status_code == 204
    assert other.user_id is None
    assert_problem(other.get("/clusters"), 401, "not_authenticated")
    assert_problem(browser.delete(f"/sessions/{ending['id']}"), 404, "not_found")
    assert len(list_sessions(browser)) == 1
    assert Session.objects.filter(session_key=browser.client.cookies["freshet_session"].value)
    with organization_scope(tenant.id):
        entry = AuditEntry.objects.get(action="session.end")
    assert (entry.actor_id, entry.detail) == (tenant.owner.pk, {"session": ending["id"]})


def test_a_row_alone_and_a_cookie_alone_let_nobody_in(tenant):
    browser, other = signed_in(tenant.owner), signed_in(tenant.owner)
    key = browser.client.cookies["freshet_session"].value
    UserSession.objects.filter(session_key=key).delete()
    assert browser.user_id is None
    Session.objects.exclude(session_key=key).delete()
    assert other.user_id is None


def test_all_others_end_together(tenant, other_tenant):
    browser, other_browser = signed_in(tenant.owner), signed_in(other_tenant.owner)
    others = [signed_in(tenant.owner) for _ in range(2)]
    assert browser.post("/sessions:end-others").status_code == 204
    assert [other.user_id for other in (browser, *others)] == [tenant.owner.pk, None, None]
    assert other_browser.user_id == other_tenant.owner.pk


def test_another_users_session_looks_absent(tenant, other_tenant):
    browser, other_browser = signed_in(tenant.owner), signed_in(other_tenant.owner)
    (foreign,) = list_sessions(other_browser)
    assert_problem(browser.delete(f"/sessions/{foreign['id']}"), 404, "not_found")
    assert other_browser.user_id == other_tenant.owner.pk


def test_a_session_ends_after_its_days(tenant, monkeypatch):
    browser = signed_in(tenant.owner)
    end = UserSession.objects.get().expires_at
    assert abs(end - now() - timedelta(days=14)) < timedelta(minutes=5)
    UserSession.objects.update(expires_at=now())
    assert browser.user_id is None
    assert services.purge_sessions() == 1
    assert not Session.objects.exists()


def test_signing_out_leaves_no_row(tenant):
    browser = signed_in(tenant.owner)
    assert browser.delete("/session").status_code == 204
    assert not UserSession.objects.exists()


def test_signing_in_anew_replaces_the_browsers_session(tenant, other_tenant):
    browser = signed_in(tenant.owner)
    browser.sign_in(other_tenant.owner)
    assert [session.user_id for session in UserSession.objects.all()] == [other_tenant.owner.pk]


def test_who_signs_in_again_has_another_key(tenant):
    browser = signed_in(tenant.owner)
    before = browser.client.cookies["freshet_session"].value
    assert browser.sign_in(tenant.owner).status_code == 200
    assert browser.client.cookies["freshet_session"].value != before
    assert not Session.objects.filter(session_key=before).exists()
    assert UserSession.objects.count() == 1
    assert browser.user_id == tenant.owner.pk


def test_beyond_a_number_the_oldest_sessions_end(tenant, monkeypatch):
    monkeypatch.setattr(sessions, "SESSIONS_MAX", 2)
    browsers = [signed_in(tenant.owner) for _ in range(3)]
    assert [browser.user_id is None for browser in browsers] == [True, False, False]


def test_pages_of_sessions_hide_nothing(tenant):
    browser = signed_in(tenant.owner)
    for _ in range(2):
        signed_in(tenant.owner)
    first = browser.get("/sessions", query={"limit": 2}).json()
    second = browser.get("/sessions", query={"cursor": first["next_cursor"]}).json()
    assert len({item["id"] for item in first["items"] + second["items"]}) == 3


def test_the_last_use_is_written_now_and_then(tenant, django_capture_on_commit_callbacks):
    browser = signed_in(tenant.owner)
    long_ago = now() - timedelta(hours=1)
    UserSession.objects.update(last_seen_at=long_ago)
    for _ in range(2):
        with django_capture_on_commit_callbacks(execute=True) as callbacks:
            browser.get("/clusters")
        assert UserSession.objects.get().last_seen_at > long_ago
    assert callbacks == []


def session_actor(tenant):
    session = UserSession.objects.get()
    return Actor(
        kind=ActorKind.SESSION,
        id=tenant.owner.pk,
        organization_id=tenant.id,
        role=Role.OWNER,
        address="192.0.2.1",
        session_id=session.pk,
    )


def test_what_is_open_ends_with_its_session(tenant):
    signed_in(tenant.owner)
    actor = session_actor(tenant)
    again = services.renew_actor(actor)
    assert again is not None
    assert (again.session_id, again.role) == (actor.session_id, Role.OWNER)
    with organization_scope(tenant.id):
        Membership.objects.update(role=Role.VIEWER)
    again = services.renew_actor(actor)
    assert again is not None
    assert again.role is Role.VIEWER
    UserSession.objects.all().delete()
    assert services.renew_actor(actor) is None


def test_what_is_open_ends_with_the_membership(tenant):
    signed_in(tenant.owner)
    actor = session_actor(tenant)
    with organization_scope(tenant.id):
        Membership.objects.all().delete()
    assert services.renew_actor(actor) is None


def test_what_is_open_ends_with_its_key(tenant):
    actor = services.authenticate_key(text=tenant.key, address="192.0.2.1")
    assert services.renew_actor(actor) == actor
    with organization_scope(tenant.id):
        ApiKey.objects.filter(pk=actor.id).update(revoked_at=now())
    assert services.renew_actor(actor) is None


def test_no_key_sees_sessions(tenant):
    assert_problem(ApiClient(tenant.key).get("/sessions"), 401, "not_authenticated")
