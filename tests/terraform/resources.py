"""Configurations of Terraform, and how many resources they have."""

from __future__ import annotations

import secrets

TOPICS, ACLS, CREDENTIALS = 300, 50, 5
QUOTAS = CREDENTIALS + 1

CLUSTER = """
resource "freshet_cluster" "main" {
  name                = "resources"
  deletion_protection = false
  schedules = [{
    days  = ["sun", "mon"]
    start = "03:00"
    end   = "03:30"
  }]
}
"""
# A quota for each credential, and one for all other clients.
QUOTAS_OF = """
resource "freshet_client_quota" "app" {
  count                    = %d
  cluster_id               = freshet_cluster.main.id
  user                     = freshet_credential.app[count.index].username
  produce_bytes_per_second = 10485760
  connections              = 50
}
resource "freshet_client_quota" "others" {
  cluster_id             = freshet_cluster.main.id
  user                   = ""
  fetch_bytes_per_second = 1048576
  request_percentage     = 50.5
}
"""


def resources(*, topics: int = TOPICS, acls: int = ACLS, credentials: int = CREDENTIALS) -> str:
    """Returns a cluster with topics, credentials, ACL entries, quotas, an alert and a budget.

    Each credential has up to ten ACL entries in turn: the first ten entries belong to the first
    credential. Each credential has quotas, and all other clients have some, too.
    """
    return f"""
variable "passwords" {{
  type      = list(string)
  ephemeral = true
  sensitive = true
}}
{CLUSTER}
resource "freshet_topic" "many" {{
  count      = {topics}
  cluster_id = freshet_cluster.main.id
  name       = format("topic-%03d", count.index)
  partitions = 2
  configs    = count.index % 3 == 0 ? {{ "retention.ms" = "86400000" }} : null
}}
resource "freshet_credential" "app" {{
  count       = {credentials}
  cluster_id  = freshet_cluster.main.id
  name        = "app-${{count.index}}"
  role        = "none"
  password_wo = var.passwords[count.index]
}}
locals {{
  rights = flatten([for app in range({credentials}) : [
    {{ app = app, type = "TOPIC", name = "topic-", operation = "READ" }},
    {{ app = app, type = "TOPIC", name = "topic-", operation = "WRITE" }},
    {{ app = app, type = "TOPIC", name = "topic-", operation = "DESCRIBE" }},
    {{ app = app, type = "GROUP", name = "group-${{app}}", operation = "READ" }},
    {{ app = app, type = "TOPIC", name = "topic-", operation = "DELETE" }},
    {{ app = app, type = "TOPIC", name = "topic-", operation = "ALTER" }},
    {{ app = app, type = "TOPIC", name = "topic-", operation = "ALTER_CONFIGS" }},
    {{ app = app, type = "TOPIC", name = "topic-", operation = "DESCRIBE_CONFIGS" }},
    {{ app = app, type = "GROUP", name = "group-${{app}}", operation = "DESCRIBE" }},
    {{ app = app, type = "GROUP", name = "other-${{app}}/a b", operation = "READ" }},
  ]])
}}
resource "freshet_acl" "many" {{
  count         = {acls}
  cluster_id    = freshet_cluster.main.id
  principal     = freshet_credential.app[local.rights[count.index].app].principal
  resource_type = local.rights[count.index].type
  resource_name = local.rights[count.index].name
  pattern_type  = "PREFIXED"
  operation     = local.rights[count.index].operation
}}
{QUOTAS_OF % credentials}resource "freshet_alert" "late" {{
  cluster_id = freshet_cluster.main.id
  name       = "Late / 60 s"
  kind       = "group_lag_seconds"
  group      = "group-0"
  threshold  = 60
}}
resource "freshet_budget" "team" {{
  name         = "Team"
  amount_minor = 500000
}}
output "cluster" {{ value = freshet_cluster.main.id }}
output "bootstrap" {{ value = freshet_cluster.main.bootstrap_servers }}
output "users" {{ value = freshet_credential.app[*].username }}
"""


def new_passwords(count: int = CREDENTIALS) -> list[str]:
    """Makes random passwords, as a secret store would."""
    return [secrets.token_urlsafe(24) for _ in range(count)]
