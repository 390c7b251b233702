"""Projects and roles in them; nobody grants a right that they do not have."""

import uuid

import pytest

from console.base.accounts import services
from console.base.accounts.models import Project, RoleBinding
from console.base.common.actor import Role, system_actor
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from tests.console import cases
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient
from tests.console.factories import (
    make_member,
    make_project,
    make_project_key,
    make_project_member,
)


def bind(client, member, project, role="viewer", **changes):
    body = {
        "principal_type": "user",
        "principal_id": member.user_id,
        "project_id": project.pk,
        "role": role,
        **changes,
    }
    return client.post("/role-bindings", body)


class TestProjects(
    cases.ListCases,
    cases.RetrieveCases,
    cases.CreateCases,
    cases.UpdateCases,
    cases.DestroyCases,
):
    path = "/projects"
    update_body = {"name": "Payments", "labels": {"team": "payments"}}

    def body(self):
        return {"name": f"team {uuid.uuid4().hex[:6]}"}


class TestRoleBindings(cases.ListCases, cases.RetrieveCases, cases.CreateCases, cases.DestroyCases):
    path = "/role-bindings"

    @pytest.fixture(autouse=True)
    def _tenant(self, tenant):
        self.tenant = tenant

    def body(self):
        member = make_member(self.tenant, f"{uuid.uuid4().hex[:8]}@acme.example", Role.MEMBER)
        return {
            "principal_type": "user",
            "principal_id": member.user_id,
            "project_id": self.tenant.project.pk,
            "role": "developer",
        }


def test_a_new_organization_has_a_default_project(api):
    body = {
        "email": "new@acme.example",
        "password": "a sentence that is long",
        "organization_name": "New",
    }
    key = api(None).post("/signup", body).json()["api_key"]["secret"]
    (project,) = api(key).get("/projects").json()["items"]
    assert (project["name"], project["default"]) == ("Default", True)


def test_the_default_project_stays(api, tenant):
    response = api().delete(f"/projects/{tenant.project.pk}")
    assert_problem(response, 409, "default_project")


def test_two_projects_have_not_the_same_name(api, tenant):
    make_project(tenant, "Checkout")
    assert_problem(api().post("/projects", {"name": "Checkout"}), 409, "name_taken")
    renamed = api().patch(f"/projects/{tenant.project.pk}", {"name": "Checkout"})
    assert_problem(renamed, 409, "name_taken")


def test_the_name_of_a_deleted_project_is_free(api, tenant):
    project = make_project(tenant, "Checkout")
    assert api().delete(f"/projects/{project.pk}").status_code == 204
    assert api().post("/projects", {"name": "Checkout"}).status_code == 201
    assert_problem(api().get(f"/projects/{project.pk}"), 404, "not_found")


def test_roles_go_with_their_project(api, tenant):
    project = make_project(tenant)
    member = make_project_member(tenant, project, Role.DEVELOPER)
    assert api().delete(f"/projects/{project.pk}").status_code == 204
    with organization_scope(tenant.id):
        assert not member.role_bindings.exists()
    assert_problem(bind(api(), member, project), 422, "unknown_project")


def test_a_project_says_what_the_caller_may_in_it(api, tenant):
    project = make_project(tenant)
    key = make_project_key(tenant, project, Role.DEVELOPER)
    shown = api(key).get(f"/projects/{project.pk}").json()
    assert shown["permissions"] == ["belong", "data.read", "read", "write"]
    assert [item["id"] for item in api(key).get("/projects").json()["items"]] == [project.pk]
    assert_problem(api(key).get(f"/projects/{tenant.project.pk}"), 404, "not_found")


def test_who_manages_a_project_changes_it_and_no_other(api, tenant):
    project = make_project(tenant)
    manager = api(make_project_key(tenant, project, Role.ADMIN))
    assert manager.patch(f"/projects/{project.pk}", {"name": "Ours"}).status_code == 200
    foreign = manager.patch(f"/projects/{tenant.project.pk}", {"name": "Ours too"})
    assert_problem(foreign, 404, "not_found")
    assert_problem(manager.post("/projects", {"name": "new"}), 403, "permission_denied")
    assert_problem(manager.delete(f"/projects/{project.pk}"), 403, "permission_denied")


@pytest.mark.parametrize(
    ("role", "granted", "status"),
    [
        (Role.OWNER, "owner", 201),
        (Role.ADMIN, "admin", 201),
        (Role.ADMIN, "owner", 403),
        (Role.DEVELOPER, "viewer", 403),
        (Role.BILLING, "viewer", 403),
        (Role.MEMBER, "viewer", 403),
    ],
)
def test_nobody_gives_a_role_in_a_project_above_their_own(api, tenant, role, granted, status):
    member = make_member(tenant, "somebody@acme.example", Role.MEMBER)
    response = bind(api(tenant.keys[role]), member, tenant.project, granted)
    assert response.status_code == status, response.content


def test_who_manages_a_project_gives_roles_in_it_and_in_no_other(api, tenant):
    project = make_project(tenant)
    manager = api(make_project_key(tenant, project, Role.ADMIN))
    member = make_member(tenant, "somebody@acme.example", Role.MEMBER)
    assert bind(manager, member, project, "admin").status_code == 201
    assert_problem(bind(manager, member, project, "owner"), 403, "role_too_high")
    # It looks as if it were not there.
    elsewhere = assert_problem(bind(manager, member, tenant.project), 422, "unknown_project")
    absent = assert_problem(
        bind(manager, member, project, project_id="prj_aaaaaaaaaaaaaaaaaaaa"),
        422,
        "unknown_project",
    )
    assert {**elsewhere, "request_id": ""} == {**absent, "request_id": ""}


def test_who_sees_a_project_without_managing_it_gives_no_role_in_it(api, tenant):
    project = make_project(tenant)
    member = make_member(tenant, "somebody@acme.example", Role.MEMBER)
    developer = api(make_project_key(tenant, project, Role.DEVELOPER))
    assert_problem(bind(developer, member, project), 403, "permission_denied")


def test_a_service_account_cannot_give_itself_more(api, tenant):
    project = make_project(tenant)
    key = make_project_key(tenant, project, Role.ADMIN)
    with organization_scope(tenant.id):
        account_id = RoleBinding.objects.get(project=project).principal_id
    own = {"principal_type": "service_account", "principal_id": account_id}
    member = make_member(tenant, "unused@acme.example", Role.MEMBER)
    raised = bind(api(key), member, project, "owner", **own)
    assert_problem(raised, 403, "role_too_high")
    wider = bind(api(key), member, tenant.project, "viewer", **own)
    assert_problem(wider, 422, "unknown_project")
    changed = api(key).patch(f"/service-accounts/{account_id}", {"role": "owner"})
    assert_problem(changed, 403, "permission_denied")


def test_a_project_of_another_organization_is_unknown(api, tenant, other_tenant):
    member = make_member(tenant, "somebody@acme.example", Role.MEMBER)
    assert_problem(bind(api(), member, other_tenant.project), 422, "unknown_project")


def test_a_principal_of_another_organization_is_unknown(api, tenant, other_tenant):
    outsider = make_member(other_tenant, "somebody@globex.example", Role.MEMBER)
    assert_problem(bind(api(), outsider, tenant.project), 422, "unknown_principal")
    with organization_scope(other_tenant.id):
        account = services.create_service_account(
            actor=system_actor(other_tenant.id), name="deploy"
        )
    response = bind(
        api(),
        outsider,
        tenant.project,
        principal_type="service_account",
        principal_id=account.pk,
    )
    assert_problem(response, 422, "unknown_principal")


def test_a_role_is_given_once(api, tenant):
    member = make_member(tenant, "somebody@acme.example", Role.MEMBER)
    assert bind(api(), member, tenant.project).status_code == 201
    assert_problem(bind(api(), member, tenant.project), 409, "already_bound")
    # Another role of the same member in the project is allowed.
    assert bind(api(), member, tenant.project, "developer").status_code == 201


def test_a_role_that_was_taken_away_has_no_effect(api, tenant):
    project = make_project(tenant)
    key = make_project_key(tenant, project, Role.DEVELOPER)
    assert api(key).get(f"/projects/{project.pk}").status_code == 200
    (binding,) = api().get("/role-bindings", query={"project_id": project.pk}).json()["items"]
    assert api().delete(f"/role-bindings/{binding['id']}").status_code == 204
    assert_problem(api(key).get(f"/projects/{project.pk}"), 404, "not_found")


def test_nobody_takes_away_a_role_above_their_own(api, tenant):
    project = make_project(tenant)
    member = make_member(tenant, "somebody@acme.example", Role.MEMBER)
    binding = bind(api(), member, project, "owner").json()
    admin = api(tenant.keys[Role.ADMIN])
    refused = admin.delete(f"/role-bindings/{binding['id']}")
    assert_problem(refused, 403, "role_too_high")


def test_roles_are_found_by_principal(api, tenant):
    member = make_project_member(tenant, tenant.project, Role.VIEWER)
    make_project_key(tenant, tenant.project, Role.VIEWER)
    query = {"principal_id": member.user_id}
    (binding,) = api().get("/role-bindings", query=query).json()["items"]
    assert (binding["principal_type"], binding["principal_id"]) == ("user", member.user_id)


def test_roles_and_projects_are_audited(api, tenant):
    project = api().post("/projects", {"name": "Checkout"}).json()
    member = make_member(tenant, "somebody@acme.example", Role.MEMBER)
    with organization_scope(tenant.id):
        row = Project.objects.get(pk=project["id"])
    binding = bind(api(), member, row).json()
    api().delete(f"/role-bindings/{binding['id']}")
    api().delete(f"/projects/{project['id']}")
    targets = [project["id"], binding["id"]]
    with organization_scope(tenant.id):
        entries = AuditEntry.objects.filter(target_id__in=targets).order_by("created_at", "id")
        assert sorted(entries.values_list("action", flat=True)) == [
            "project.create",
            "project.delete",
            "role_binding.create",
            "role_binding.delete",
        ]
        detail = AuditEntry.objects.get(action="role_binding.delete").detail
    assert detail == {
        "principal_type": "user",
        "principal_id": member.user_id,
        "project_id": project["id"],
        "role": "viewer",
    }


def test_an_anonymous_client_sees_no_project():
    assert_problem(ApiClient().get("/projects"), 401, "not_authenticated")
