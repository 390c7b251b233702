"""Tests projects, members, service accounts and their roles, the settings, and limits."""

import email
import email.policy
import re
import secrets

import httpx
import pytest

from tests.supervisor.run import wait_until
from tests.terraform.resources import CLUSTER

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

ACCOUNTS = """
resource "freshet_project" "checkout" {
  name   = "checkout"
  labels = { team = "checkout" }
}
resource "freshet_service_account" "pipeline" {
  name        = "pipeline"
  description = "Deploys"
}
resource "freshet_role_binding" "pipeline" {
  principal_type = "service_account"
  principal_id   = freshet_service_account.pipeline.id
  project_id     = freshet_project.checkout.id
  role           = "developer"
}
output "ids" {
  value = {
    "freshet_project.checkout"         = freshet_project.checkout.id
    "freshet_service_account.pipeline" = freshet_service_account.pipeline.id
    "freshet_role_binding.pipeline"    = freshet_role_binding.pipeline.id
  }
}
"""
IN_PROJECT = CLUSTER.replace(
    "deletion_protection", "project_id = freshet_project.checkout.id\n  deletion_protection"
)
LOOKS = """
data "freshet_project" "shown" { name = freshet_project.checkout.name }
data "freshet_projects" "all" { depends_on = [freshet_project.checkout] }
data "freshet_service_account" "shown" { name = freshet_service_account.pipeline.name }
data "freshet_service_accounts" "all" { depends_on = [freshet_service_account.pipeline] }
data "freshet_role_bindings" "shown" {
  project_id = freshet_role_binding.pipeline.project_id
}
data "freshet_limits" "cluster" { cluster_id = freshet_cluster.main.id }
ephemeral "freshet_api_key" "pipeline" {
  service_account_id = freshet_service_account.pipeline.id
}
output "shown" {
  value = {
    labels   = data.freshet_project.shown.labels
    projects = length(data.freshet_projects.all.projects)
    role     = data.freshet_service_account.shown.role
    accounts = data.freshet_service_accounts.all.service_accounts[*].name
    bindings = data.freshet_role_bindings.shown.role_bindings[*].role
    limits = [
      for limit in data.freshet_limits.cluster.limits : limit.used if limit.name == "topics"
    ]
  }
}
"""


def test_a_project_with_a_cluster_and_who_may_change_it(team):
    workspace = team.workspace()
    workspace.write(ACCOUNTS + IN_PROJECT + LOOKS)
    workspace.apply()
    shown = workspace.outputs()
    assert shown["shown"] == {
        "labels": {"team": "checkout"},
        # The default project is the other one.
        "projects": 2,
        "role": "member",
        "accounts": ["pipeline"],
        "bindings": ["developer"],
        "limits": [0],
    }
    assert workspace.plan_is_empty()
    [cluster] = team.clusters()
    project = shown["ids"]["freshet_project.checkout"]
    assert team.api.cluster(cluster)["project_id"] == project
    keys = team.api.call("GET", "/api-keys")["items"]
    assert all(key["revoked_at"] for key in keys if key["service_account_id"])

    workspace.write((ACCOUNTS + IN_PROJECT + LOOKS).replace('"Deploys"', '"Deploys it"'))
    assert workspace.planned() == {"freshet_service_account.pipeline": ["update"]}
    workspace.apply()
    assert workspace.plan_is_empty()

    fresh = team.workspace("fresh")
    ids = shown["ids"].items()
    blocks = "".join(f'import {{\n  to = {to}\n  id = "{known}"\n}}\n' for to, known in ids)
    fresh.write(ACCOUNTS.replace('"Deploys"', '"Deploys it"') + blocks)
    assert "3 imported, 0 added, 0 changed, 0 destroyed" in fresh.apply()
    assert fresh.plan_is_empty()
    workspace.run("destroy", "-auto-approve", "-input=false")
    assert team.api.call("GET", "/service-accounts")["items"] == []


def test_a_project_with_clusters_stays(team):
    workspace = team.workspace()
    workspace.write(ACCOUNTS)
    workspace.apply()
    project = workspace.outputs()["ids"]["freshet_project.checkout"]
    asked = {"name": "theirs", "region": "local", "project_id": project}
    team.api.finish(team.api.call("POST", "/clusters", asked, status=202))
    said = workspace.run("destroy", "-auto-approve", "-input=false", status=1)
    assert "project_not_empty" in said


PEOPLE = """
resource "freshet_member" "guest" {
  email = "%s"
  role  = "viewer"
}
resource "freshet_organization_settings" "ours" {
  name              = "Ours"
  allowed_addresses = ["127.0.0.1/32", "::1/128"]
}
"""
LOOKS_AT_PEOPLE = """
data "freshet_member" "guest" { email = freshet_member.guest.email }
data "freshet_members" "all" { depends_on = [freshet_member.guest] }
data "freshet_organization" "ours" { depends_on = [freshet_organization_settings.ours] }
output "shown" {
  value = {
    guest    = [data.freshet_member.guest.state, data.freshet_member.guest.role]
    people   = length(data.freshet_members.all.members)
    name     = data.freshet_organization.ours.name
    networks = data.freshet_organization.ours.allowed_addresses
    second   = data.freshet_organization.ours.two_factor_required
  }
}
"""


def tokens(home, address):
    """Returns the tokens of the invitations that were mailed to an address, oldest first."""
    values = []
    for file in sorted((home / "mail").glob("*.eml")):
        mail = email.message_from_bytes(file.read_bytes(), policy=email.policy.default)
        if mail["To"] == address:
            values += re.findall(r"/invitation#(\S+)", mail.get_content())
    return values


def test_people_are_invited_join_and_leave(team, service):
    workspace = team.workspace()
    guest = f"{secrets.token_hex(6)}@example.org"
    people = PEOPLE % guest
    workspace.write(people + LOOKS_AT_PEOPLE)
    workspace.apply()
    shown = {
        "guest": ["pending", "viewer"],
        "people": 2,
        "name": "Ours",
        "networks": ["127.0.0.1/32", "::1/128"],
        "second": False,
    }
    assert workspace.outputs()["shown"] == shown
    workspace.write(people.replace('"viewer"', '"developer"'))
    assert workspace.planned() == {"freshet_member.guest": ["update"]}
    workspace.apply()
    wait_until(lambda: len(tokens(service.home, guest)) == 2, "two mails")

    accept = f"{service.address}/api/v1/invitations/accept"
    body = {"token": tokens(service.home, guest)[1], "password": secrets.token_urlsafe(16)}
    assert httpx.post(accept, json=body).status_code == 201
    assert workspace.plan_is_empty(), "accepting is no difference"
    people = people.replace('"viewer"', '"admin"')
    workspace.write(people)
    workspace.apply()
    assert roles_of(team, guest) == ["admin"]
    for secret in [*tokens(service.home, guest), workspace.key]:
        assert secret.encode() not in workspace.kept()

    fresh = team.workspace("fresh")
    ids = {"freshet_member.guest": guest, "freshet_organization_settings.ours": "current"}.items()
    blocks = "".join(f'import {{\n  to = {to}\n  id = "{known}"\n}}\n' for to, known in ids)
    fresh.write(people + blocks)
    assert "2 imported, 0 added, 0 changed, 0 destroyed" in fresh.apply()
    assert fresh.plan_is_empty()

    # The service refuses networks without this machine, and destroying the settings keeps them: the
    # owner could be locked out otherwise, or others let in.
    workspace.write(people.replace('"127.0.0.1/32", "::1/128"', '"192.0.2.0/24"'))
    assert "would_lock_out" in workspace.run("apply", "-auto-approve", status=1)
    said = workspace.run("destroy", "-auto-approve", "-input=false")
    assert "The organization keeps its settings" in said
    assert roles_of(team, guest) == []
    shown = team.api.call("GET", "/organizations/current")
    assert (shown["name"], len(shown["allowed_addresses"])) == ("Ours", 2)


def roles_of(team, address):
    """Returns the roles of the member with this address: one, or none."""
    members = team.api.call("GET", "/members")["items"]
    return [member["role"] for member in members if member["email"] == address]
