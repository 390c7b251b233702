"""Who may change or end what has rights: every role, on every kind of holder, by every route."""

from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import pytest

from console.base.accounts import services
from console.base.accounts.choices import PrincipalType
from console.base.accounts.models import Invitation, Membership, User
from console.base.accounts.services.role_bindings import ProjectRole
from console.base.common import rates
from console.base.common.actor import GRANTS, Permission, Role, system_actor
from console.base.common.clock import now
from console.base.common.tenancy import organization_scope
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient
from tests.console.factories import Tenant
from tests.console.scopes import rolled_back
from tests.console.walk.resolver import served_routes


@dataclass(frozen=True)
class Held:
    """The rights of a holder: a role in the organization, and one in its default project."""

    role: Role
    in_project: Role | None = None

    def __str__(self) -> str:
        return self.role if self.in_project is None else f"{self.role}+{self.in_project}"


HELD = [Held(role) for role in Role]
# A right in a project counts as one in the organization does.
HELD_IN_PROJECT = [Held(Role.MEMBER, Role.OWNER), Held(Role.VIEWER, Role.ADMIN)]


def make_member(tenant, role):
    """Makes a member without a password, which is not hashed within a transaction."""
    user = User.objects.create(email="held@acme.example", email_verified_at=now())
    return Membership.objects.create(organization=tenant.organization, user=user, role=role)


def make_binding(tenant, kind, principal_id, role):
    return services.create_role_binding(
        actor=system_actor(tenant.id),
        principal_type=kind,
        principal_id=principal_id,
        project_id=tenant.project.pk,
        role=role,
    )


def an_api_key(tenant, held):
    actor = system_actor(tenant.id)
    return services.create_api_key(actor=actor, name="held", role=held.role).key.pk


def a_service_account(tenant, held):
    actor = system_actor(tenant.id)
    account = services.create_service_account(actor=actor, name="held", role=held.role)
    if held.in_project:
        make_binding(tenant, PrincipalType.SERVICE_ACCOUNT, account.pk, held.in_project)
    return account.pk


def a_key_of_an_account(tenant, held):
    return services.create_api_key(
        actor=system_actor(tenant.id),
        name="held",
        service_account_id=a_service_account(tenant, held),
    ).key.pk


def an_account_by_its_key(tenant, held):
    return services.create_api_key(
        actor=system_actor(tenant.id),
        name="first",
        service_account_id=a_service_account(tenant, held),
    ).key.service_account_id


def a_member(tenant, held):
    member = make_member(tenant, held.role)
    if held.in_project:
        make_binding(tenant, PrincipalType.USER, member.user_id, held.in_project)
    return member.pk


def an_invitation(tenant, held):
    roles: list[ProjectRole] = []
    if held.in_project:
        roles = [{"project_id": tenant.project.pk, "role": held.in_project}]
    invitation = services.create_invitation(
        actor=system_actor(tenant.id),
        email="held@acme.example",
        role=held.role,
        project_roles=roles,
    )
    # It may be sent again a minute after it was sent.
    Invitation.objects.filter(pk=invitation.pk).update(sent_at=now() - timedelta(hours=1))
    return invitation.pk


def a_role_binding(tenant, held):
    member = make_member(tenant, Role.OWNER)
    return make_binding(tenant, PrincipalType.USER, member.user_id, held.in_project).pk


# What each route changes, with a body that changes something whatever the holder's rights are.
KEYS = (an_api_key, a_key_of_an_account)
ACCOUNT = "/api/v1/service-accounts/<id>"
ACTIONS = [
    ("DELETE", "/api/v1/api-keys/<id>", None, KEYS),
    ("POST", "/api/v1/api-keys/<id>:rotate", {}, KEYS),
    ("POST", "/api/v1/api-keys", {"name": "x", "service_account_id": "<id>"}, (a_service_account,)),
    ("PATCH", ACCOUNT, {"name": "renamed"}, (a_service_account,)),
    ("PATCH", ACCOUNT, {"description": "Other."}, (a_service_account,)),
    ("PATCH", ACCOUNT, {"disabled": True}, (a_service_account, an_account_by_its_key)),
    ("PATCH", ACCOUNT, {"role": "reader"}, (a_service_account,)),
    ("DELETE", ACCOUNT, None, (a_service_account, an_account_by_its_key)),
    ("PATCH", "/api/v1/members/<id>", {"role": "reader"}, (a_member,)),
    ("DELETE", "/api/v1/members/<id>", None, (a_member,)),
    ("DELETE", "/api/v1/invitations/<id>", None, (an_invitation,)),
    ("POST", "/api/v1/invitations/<id>:resend", {}, (an_invitation,)),
    ("DELETE", "/api/v1/role-bindings/<id>", None, (a_role_binding,)),
]
CASES = [
    pytest.param(method, path, body, make, id=f"{method} {path} {body} of {make.__name__}")
    for method, path, body, makers in ACTIONS
    for make in makers
]


def rights_that(make):
    """Returns what a holder of this kind may have."""
    if make is an_api_key:  # a role in a project is a member's or a service account's
        return HELD
    if make is a_role_binding:
        return [Held(Role.MEMBER, role) for role in Role if role is not Role.MEMBER]
    return HELD + HELD_IN_PROJECT


def expected(actor, held):
    """Returns the code of the refusal of an action, or None where it is allowed."""
    if Permission.MANAGE not in GRANTS[actor]:
        return "permission_denied"
    lacking = {held.role, held.in_project or Role.MEMBER}
    above = any(not GRANTS[role] <= GRANTS[actor] for role in lacking)
    return "role_too_high" if above else None


@pytest.mark.parametrize(("method", "path", "body", "make"), CASES)
def test_nobody_changes_or_ends_what_has_rights_above_their_own(
    tenant, subtests, method, path, body, make
):
    for held in rights_that(make):
        refused = [role for role in Role if expected(role, held) is not None]
        with subtests.test(held=str(held)), tried():
            call = Call(tenant, method, path, body, held_by(tenant, make, held))
            before = state_of(tenant)
            for actor in refused:
                call.check_refused(actor, expected(actor, held))
            assert state_of(tenant) == before
        for actor in set(Role) - set(refused):
            with subtests.test(held=str(held), actor=actor), tried():
                call = Call(tenant, method, path, body, held_by(tenant, make, held))
                before = state_of(tenant)
                answer = call.send(actor)
                assert answer.status_code in {200, 201, 204}, answer.content
                same_role = (body or {}).get("role") == held.role
                assert same_role or state_of(tenant) != before


@contextmanager
def tried():
    """Rolls the database back at the end of the block, and resets the counts of requests."""
    rates.forget_rates()
    with rolled_back():
        yield


def held_by(tenant, make, held):
    """Makes a holder of rights; returns its id."""
    with organization_scope(tenant.id):
        return make(tenant, held)


@dataclass(frozen=True)
class Call:
    """A change of one holder."""

    tenant: Tenant
    method: str
    path: str
    body: dict[str, object] | None
    holder_id: str

    def send(self, actor):
        """Sends the request with a key of a role."""
        address = self.path.removeprefix("/api/v1").replace("<id>", self.holder_id)
        body = {
            name: self.holder_id if value == "<id>" else value
            for name, value in (self.body or {}).items()
        }
        return ApiClient(self.tenant.keys[actor]).request(self.method, address, body)

    def check_refused(self, actor, code):
        """Asserts that a role is refused by a code."""
        answer = self.send(actor)
        if code == "permission_denied" and answer.status_code == 404:
            # Who may not even see the holder gets the answer of one that does not exist.
            assert_problem(answer, 404, "not_found")
        else:
            assert_problem(answer, 403, code)


def state_of(tenant):
    """Returns all holders as an owner sees them, without the times of their last use."""
    lists = ("/api-keys", "/service-accounts", "/members", "/invitations", "/role-bindings")
    client = ApiClient(tenant.key)
    return [
        [
            {name: value for name, value in item.items() if name != "last_used_at"}
            for item in client.get(path).json()["items"]
        ]
        for path in lists
    ]


def test_every_route_that_changes_a_holder_is_tried():
    kinds = ("api-keys", "service-accounts", "members", "invitations", "role-bindings")
    served = {
        (method, path)
        for path, methods in served_routes().items()
        for method in methods - {"GET"}
        if path.startswith(tuple(f"/api/v1/{kind}/<" for kind in kinds))
    }
    assert served == {(method, path) for method, path, _, _ in ACTIONS if "<id>" in path}


def test_a_lesser_role_of_an_account_ends_what_it_made_with_the_greater_one(api):
    """So nobody who may disable the account ends more by it than they may end themselves."""
    account = api().post("/service-accounts", {"name": "root", "role": "owner"}).json()
    body = {"name": "of root", "service_account_id": account["id"]}
    program = api(api().post("/api-keys", body).json()["secret"])
    made = program.post("/api-keys", {"name": "owner", "role": "owner"}).json()
    kept = program.post("/api-keys", {"name": "viewer", "role": "viewer"}).json()
    invited = [
        program.post("/invitations", {"email": f"new-{role}@acme.example", "role": role}).json()
        for role in ("owner", "viewer")
    ]
    path = f"/service-accounts/{account['id']}"
    assert api().patch(path, {"role": "admin"}).status_code == 200
    assert_problem(api(made["secret"]).get("/clusters"), 401, "not_authenticated")
    assert api(kept["secret"]).get("/clusters").status_code == 200
    states = {item["id"]: item["state"] for item in api().get("/invitations").json()["items"]}
    assert [states[invitation["id"]] for invitation in invited] == ["revoked", "pending"]
    (entry,) = api().get("/audit-log", query={"action": "service_account.update"}).json()["items"]
    assert entry["detail"]["revoked_made_keys"] == [made["id"]]
