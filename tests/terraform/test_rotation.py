"""Tests passwords that change: two credentials work side by side, and no password is kept."""

import pytest

from tests.terraform.clients import connection_of, produce_and_consume
from tests.terraform.resources import CLUSTER, new_passwords

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

ROTATED = """
variable "passwords" {
  type      = list(string)
  ephemeral = true
}
variable "round" { type = number }
%s
resource "freshet_topic" "orders" {
  cluster_id = freshet_cluster.main.id
  name       = "orders"
}
resource "freshet_credential" "app" {
  cluster_id          = freshet_cluster.main.id
  name                = "app"
  role                = "none"
  password_wo         = var.passwords[0]
  password_wo_version = var.round
}
resource "freshet_acl" "app" {
  for_each = {
    read = ["TOPIC", "orders"], write = ["TOPIC", "orders"], commit = ["GROUP", "app"]
  }
  cluster_id    = freshet_cluster.main.id
  principal     = freshet_credential.app.principal
  resource_type = each.value[0]
  resource_name = each.value[1]
  operation     = each.key == "write" ? "WRITE" : "READ"
  lifecycle { create_before_destroy = true }
}
resource "freshet_client_quota" "app" {
  cluster_id  = freshet_cluster.main.id
  user        = freshet_credential.app.username
  connections = 50
  lifecycle { create_before_destroy = true }
}
output "bootstrap" { value = freshet_cluster.main.bootstrap_servers }
output "users" { value = [freshet_credential.app.username] }
"""


def test_both_work_while_clients_change_over(team):
    workspace = team.workspace()
    workspace.write(ROTATED % CLUSTER)
    workspace.secrets["round"] = 1
    workspace.apply()
    before = connection_of(workspace)
    produce_and_consume(before, "orders", "app")

    passwords = workspace.secrets["passwords"]
    workspace.secrets.update(passwords=new_passwords(1), round=2)
    assert workspace.planned()["freshet_credential.app"] == ["update"]
    workspace.apply()
    after = connection_of(workspace)
    assert after.credential.username != before.credential.username
    produce_and_consume(before, "orders", "app")
    produce_and_consume(after, "orders", "app")
    assert workspace.plan_is_empty()
    kept = workspace.kept()
    for secret in [*passwords, *workspace.secrets["passwords"]]:
        assert secret.encode() not in kept

    [cluster] = team.clusters()
    credentials = f"/clusters/{cluster}/credentials"
    assert len(team.api.call("GET", credentials)["items"]) == 2
    quotas = team.api.call("GET", f"/clusters/{cluster}/quotas")["items"]
    assert {quota["user"]: quota["connections"] for quota in quotas} == {
        before.credential.username: 50,
        after.credential.username: 50,
    }
    workspace.run("destroy", "-auto-approve", "-input=false", "-target=freshet_credential.app")
    assert team.api.call("GET", credentials)["items"] == []
    assert team.api.call("GET", f"/clusters/{cluster}/acls")["items"] == []


def test_one_that_was_rotated_elsewhere_is_followed(team):
    workspace = team.workspace()
    workspace.write(ROTATED % CLUSTER)
    workspace.secrets["round"] = 1
    workspace.apply()
    [cluster] = team.clusters()
    user = workspace.outputs()["users"][0]
    path = f"/clusters/{cluster}/credentials/{user}:rotate"
    rotated = team.api.call("POST", path, {"overlap_s": 3600})
    workspace.apply()
    assert workspace.outputs()["users"] == [rotated["username"]]
    assert workspace.plan_is_empty()
