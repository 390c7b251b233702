"""Configurations, and what is in the cluster that they describe."""

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
# Of each credential, and of everybody else.
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
    """A cluster with topics, credentials whose rights are ACLs, quotas, an alert, and a budget.

    Entry n lets credential n mod `credentials` do one thing with the topics of prefix `topic-`: so
    ten of them serve each credential. Each has quotas, and so has everybody else.
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
    """Passwords, as a secret store would make them."""
    return [secrets.token_urlsafe(24) for _ in range(count)]
