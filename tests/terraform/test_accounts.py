"""Projects, service accounts and their roles; and what limits are left."""

import pytest

from tests.terraform.estate import CLUSTER

pytestmark = pytest.mark.timeout(600)

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
data "freshet_project" "found" { name = freshet_project.checkout.name }
data "freshet_projects" "all" { depends_on = [freshet_project.checkout] }
data "freshet_service_account" "found" { name = freshet_service_account.pipeline.name }
data "freshet_service_accounts" "all" { depends_on = [freshet_service_account.pipeline] }
data "freshet_role_bindings" "found" {
  project_id = freshet_role_binding.pipeline.project_id
}
data "freshet_limits" "cluster" { cluster_id = freshet_cluster.main.id }
ephemeral "freshet_api_key" "pipeline" {
  service_account_id = freshet_service_account.pipeline.id
}
output "found" {
  value = {
    labels   = data.freshet_project.found.labels
    projects = length(data.freshet_projects.all.projects)
    role     = data.freshet_service_account.found.role
    accounts = data.freshet_service_accounts.all.service_accounts[*].name
    bindings = data.freshet_role_bindings.found.role_bindings[*].role
    limits   = [for each in data.freshet_limits.cluster.limits : each.used if each.name == "topics"]
  }
}
"""


def test_a_project_with_a_cluster_and_who_may_change_it(team):
    workspace = team.workspace()
    workspace.write(ACCOUNTS + IN_PROJECT + LOOKS)
    workspace.apply()
    shown = workspace.outputs()
    assert shown["found"] == {
        "labels": {"team": "checkout"},
        "projects": 2,  # and the default one
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
