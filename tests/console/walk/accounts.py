"""Routes of accounts."""

from __future__ import annotations

from console.accounts import services
from console.accounts.models import UserSession
from console.common.actor import Permission, Role, system_actor
from console.common.tenancy import organization_scope
from tests.console.browsers import signed_in
from tests.console.factories import PASSWORD, Tenant
from tests.console.walk.routes import Parameters, Route

CODE = {"code": "123456"}
# Nobody has a second factor.
CONFLICT = frozenset({409})
SIGN_UP = {"email": "new@walk.example", "password": PASSWORD, "organization_name": "New"}


def an_api_key(tenant: Tenant) -> Parameters:
    """A key that no other test uses."""
    with organization_scope(tenant.id):
        made = services.create_api_key(
            actor=system_actor(tenant.id), name="walked", role=Role.VIEWER
        )
    return {"id": made.key.pk}


def a_session(tenant: Tenant) -> Parameters:
    """A session of the owner's."""
    signed_in(tenant.owner)
    return {"id": UserSession.objects.filter(user=tenant.owner).latest("created_at").pk}


ROUTES = [
    Route("GET", "/api/v1/api-keys", Permission.READ),
    Route("POST", "/api/v1/api-keys", Permission.MANAGE, body={"name": "walk", "role": "viewer"}),
    Route("DELETE", "/api/v1/api-keys/<id>", Permission.MANAGE, parameters=an_api_key),
    Route("GET", "/api/v1/organizations/current", Permission.READ),
    Route("PATCH", "/api/v1/organizations/current", Permission.MANAGE, body={"name": "Renamed"}),
    Route("GET", "/api/v1/organizations/current/export", Permission.MANAGE),
    # A program does not close it, whatever its role.
    Route(
        "POST",
        "/api/v1/organizations/current:close",
        Permission.OWN,
        body={"name": "Acme"},
        succeeds=frozenset({403}),
    ),
    Route("POST", "/api/v1/password-reset", None, body={"email": "nobody@walk.example"}),
    Route(
        "POST",
        "/api/v1/password-reset/confirm",
        None,
        body={"token": "made up", "password": PASSWORD},
        succeeds=frozenset({422}),
    ),
    # What is a person's own: no API key opens it.
    Route("GET", "/api/v1/sessions", None, session=True),
    Route("DELETE", "/api/v1/sessions/<id>", None, parameters=a_session, session=True),
    Route("POST", "/api/v1/sessions:end-others", None, parameters=a_session, session=True),
    Route(
        "POST",
        "/api/v1/session/password",
        None,
        body={"current_password": PASSWORD, "new_password": PASSWORD},
        session=True,
    ),
    Route("POST", "/api/v1/session/totp", None, session=True),
    Route("DELETE", "/api/v1/session/totp", None, body=CODE, session=True, succeeds=CONFLICT),
    Route("POST", "/api/v1/session/totp/confirm", None, body=CODE, session=True, succeeds=CONFLICT),
    Route(
        "POST", "/api/v1/session/recovery-codes", None, body=CODE, session=True, succeeds=CONFLICT
    ),
    Route("GET", "/api/v1/session", None),
    # Every other key, and no key, is nobody to the session: wrong password, nobody's organisation.
    Route(
        "POST",
        "/api/v1/session",
        None,
        body={"email": "nobody@walk.example", "password": PASSWORD},
        succeeds=frozenset({401}),
    ),
    Route(
        "PATCH",
        "/api/v1/session",
        None,
        body={"organization_id": "org_aaaaaaaaaaaaaaaaaaaa"},
        succeeds=frozenset({401}),
    ),
    Route("DELETE", "/api/v1/session", None),
    Route("POST", "/api/v1/signup", None, body=SIGN_UP),
    Route("POST", "/api/v1/signup/verification", None, body={"email": "nobody@walk.example"}),
    Route(
        "POST",
        "/api/v1/signup/verify",
        None,
        body={"token": "made up"},
        succeeds=frozenset({422}),
    ),
]
