"""Tests a configuration of three hundred topics: applied at once, used, and kept as described."""

import json
from collections import Counter

import confluent_kafka.admin
import pytest

from tests.peer.kafka import java_tool
from tests.service.traffic import librdkafka_settings
from tests.terraform.clients import connection_of, produce_and_consume
from tests.terraform.resources import ACLS, CLUSTER, CREDENTIALS, QUOTAS, TOPICS, resources

# Each test applies up to some hundred resources, on a machine that may be slow.
pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


def reads(passed):
    """Returns how often each list was read, by the last part of its path."""
    return Counter(request.path.split("/")[-1] for request in passed if request.method == "GET")


def test_three_hundred_topics_in_one_go(team):
    workspace, door = team.workspace(), team.door
    workspace.write(resources())
    workspace.apply()
    for place in (0, CREDENTIALS - 1):
        last = f"topic-{TOPICS - 1:03}"
        produce_and_consume(connection_of(workspace, place), last, f"group-{place}")

    with door.counted() as passed:
        assert workspace.plan_is_empty()
    kinds = ("clusters", "topics", "acls", "credentials", "quotas", "alerts", "budgets")
    assert reads(passed) == dict.fromkeys(kinds, 1)
    assert len(passed) == len(kinds), passed

    state = json.loads((workspace.folder / "terraform.tfstate").read_text())
    made: Counter[str] = Counter()
    for resource in state["resources"]:
        made[resource["type"]] += len(resource["instances"])
    assert made == {
        "freshet_cluster": 1,
        "freshet_topic": TOPICS,
        "freshet_acl": ACLS,
        "freshet_credential": CREDENTIALS,
        "freshet_client_quota": QUOTAS,
        "freshet_alert": 1,
        "freshet_budget": 1,
    }
    kept = workspace.kept()
    assert b"topic-299" in kept
    for secret in [*workspace.secrets["passwords"], workspace.key]:
        assert secret.encode() not in kept

    workspace.run("destroy", "-auto-approve", "-input=false")
    assert team.clusters() == []
    assert team.api.call("GET", "/budgets")["items"] == []


def kafka_tool(tmp_path, connection, name, *arguments):
    """Runs one of Kafka's own tools, which connects to the cluster as a client."""
    settings = tmp_path / "client.properties"
    user, password = connection.credential.username, connection.credential.password
    settings.write_text(
        "security.protocol=SASL_PLAINTEXT\n"
        f"sasl.mechanism={connection.credential.mechanism}\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{user}" password="{password}";\n'
    )
    where = ("--bootstrap-server", connection.bootstrap_servers)
    java_tool(name, *where, "--command-config", str(settings), *arguments, heap="256m")


def test_drift_made_by_kafka_tools_shows(team, tmp_path):
    workspace = team.workspace()
    workspace.write(resources(topics=4, acls=10, credentials=1))
    workspace.apply()
    connection = connection_of(workspace)
    cluster = workspace.outputs()["cluster"]

    changed = ("--topic", "topic-000", "--alter", "--partitions", "5")
    kafka_tool(tmp_path, connection, "org.apache.kafka.tools.TopicCommand", *changed)
    configs = ("--entity-type", "topics", "--entity-name", "topic-001", "--alter")
    kafka_tool(
        tmp_path,
        connection,
        "kafka.admin.ConfigCommand",
        *(*configs, "--add-config", "cleanup.policy=delete,max.message.bytes=2000000"),
    )
    operator = team.api.connect(cluster, "operator", role="none")
    right = {
        "principal": f"User:{operator.credential.username}",
        "resource_type": "CLUSTER",
        "resource_name": "kafka-cluster",
        "operation": "ALTER_CONFIGS",
    }
    team.api.call("POST", f"/clusters/{cluster}/acls", right)
    user = connection.credential.username
    quotas = ("--entity-type", "users", "--entity-name", user, "--alter")
    changes = ("--add-config", "producer_byte_rate=5,consumer_byte_rate=9")
    kafka_tool(tmp_path, operator, "kafka.admin.ConfigCommand", *quotas, *changes)
    settings = librdkafka_settings(connection)
    admin = confluent_kafka.admin.AdminClient(settings)
    admin.delete_topics(["topic-002"])["topic-002"].result(60)

    # A topic cannot lose partitions: the plan says so before anything is changed.
    said = workspace.run("plan", "-input=false", status=1)
    assert "A topic cannot lose partitions" in said
    assert 'Topic "topic-000" has 5 partitions, 2 are wanted' in " ".join(said.split())
    workspace.write(resources(topics=4, acls=10, credentials=1).replace("= 2\n", "= 5\n", 1))
    assert workspace.planned() == {
        "freshet_topic.many[1]": ["update"],
        "freshet_topic.many[2]": ["create"],
        "freshet_topic.many[3]": ["update"],
        "freshet_client_quota.app[0]": ["update"],
    }
    workspace.apply()
    assert workspace.plan_is_empty()
    shown = team.api.call("GET", f"/clusters/{cluster}/topics/topic-001")
    assert (shown["configs"], shown["partitions"]) == ({}, 5)
    quotas = team.api.call("GET", f"/clusters/{cluster}/quotas")["items"]
    assert {
        quota["user"]: (quota["produce_bytes_per_second"], quota["fetch_bytes_per_second"])
        for quota in quotas
    } == {user: (10485760, None), "": (None, 1048576)}


def test_what_is_there_can_be_imported(team):
    workspace = team.workspace()
    workspace.write(resources(topics=3, acls=10, credentials=2))
    workspace.apply()
    ids = {
        "freshet_cluster.main": "resources",
        "freshet_topic.many[0]": "resources/topic-000",
        "freshet_topic.many[1]": f"{workspace.outputs()['cluster']}/topic-001",
        "freshet_topic.many[2]": "resources/topic-002",
        "freshet_credential.app[0]": "resources/app-0",
        "freshet_credential.app[1]": f"resources/{workspace.outputs()['users'][1]}",
        "freshet_budget.team": "Team",
        "freshet_alert.late": "resources/Late / 60 s",
        "freshet_client_quota.others": "resources/user=",
    }
    shown = workspace.outputs()
    user, other = shown["users"]
    quotas = team.api.call("GET", f"/clusters/{shown['cluster']}/quotas")["items"]
    [known] = [quota["id"] for quota in quotas if quota["user"] == user]
    ids["freshet_client_quota.app[0]"] = f"resources/{known}"
    ids["freshet_client_quota.app[1]"] = f"resources/user={other}"
    state = json.loads((workspace.folder / "terraform.tfstate").read_text())
    for resource in state["resources"]:
        for instance in resource["instances"]:
            if resource["type"] == "freshet_acl":
                ids[f"freshet_acl.many[{instance['index_key']}]"] = instance["attributes"]["id"]
    assert any(
        f"User:{user}/GROUP/PREFIXED/other-0%2Fa%20b/READ/ALLOW/*" in i for i in ids.values()
    )

    fresh = team.workspace("fresh")
    blocks = [f'import {{\n  to = {to}\n  id = "{known}"\n}}\n' for to, known in ids.items()]
    fresh.write(resources(topics=3, acls=10, credentials=2) + "".join(blocks))
    said = fresh.apply()
    assert f"{len(ids)} imported, 0 added, 0 changed, 0 destroyed" in said
    assert fresh.plan_is_empty()
    before = json.loads((workspace.folder / "terraform.tfstate").read_text())["resources"]
    after = json.loads((fresh.folder / "terraform.tfstate").read_text())["resources"]
    assert attributes(after) == attributes(before)


def attributes(resources):
    """Returns the attributes in a state, by the resource's type, name and index."""
    return {
        (resource["type"], resource["name"], instance.get("index_key")): instance["attributes"]
        for resource in resources
        for instance in resource["instances"]
    }


def test_what_lives_for_one_run_leaves_nothing(team):
    workspace = team.workspace()
    run = """
ephemeral "freshet_credential" "run" {
  cluster_id = freshet_cluster.main.id
  role       = "consumer"
}
ephemeral "freshet_api_key" "run" {
  role = "viewer"
}
"""
    workspace.write(CLUSTER + run)
    with team.door.counted() as passed:
        workspace.apply()
    [cluster] = team.clusters()
    posts = {request.path for request in passed if request.method == "POST"}
    assert f"/clusters/{cluster}/credentials" in posts
    assert team.api.call("GET", f"/clusters/{cluster}/credentials")["items"] == []
    keys = team.api.call("GET", "/api-keys")["items"]
    assert all(key["revoked_at"] for key in keys if key["role"] == "viewer")
    assert b"password" not in workspace.kept().replace(b"password_wo", b"")


LOOKS = """
data "freshet_cluster" "shown" {
  name = freshet_cluster.main.name
}
data "freshet_clusters" "all" { depends_on = [freshet_cluster.main] }
data "freshet_topic" "first" {
  cluster_id = freshet_cluster.main.id
  name       = freshet_topic.many[0].name
}
data "freshet_topics" "all" {
  cluster_id    = freshet_cluster.main.id
  name_contains = "topic-"
  depends_on    = [freshet_topic.many]
}
data "freshet_acls" "all" {
  cluster_id = freshet_cluster.main.id
  depends_on = [freshet_acl.many]
}
data "freshet_credential" "app" {
  cluster_id = freshet_cluster.main.id
  name       = freshet_credential.app[0].name
}
data "freshet_credentials" "all" {
  cluster_id = freshet_cluster.main.id
  depends_on = [freshet_credential.app]
}
data "freshet_client_quotas" "app" {
  cluster_id = freshet_cluster.main.id
  user       = freshet_credential.app[0].username
  depends_on = [freshet_client_quota.app]
}
data "freshet_budget" "team" { name = freshet_budget.team.name }
data "freshet_budgets" "all" { depends_on = [freshet_budget.team] }
data "freshet_alert" "late" {
  cluster_id = freshet_cluster.main.id
  name       = freshet_alert.late.name
}
data "freshet_alerts" "all" { depends_on = [freshet_alert.late] }
data "freshet_regions" "all" {}
data "freshet_usage" "all" { granularity = "hour" }
output "shown" {
  value = {
    cluster    = data.freshet_cluster.shown.id
    clusters   = data.freshet_clusters.all.clusters[*].name
    retention  = data.freshet_topic.first.effective_configs["retention.ms"]
    cleanup    = data.freshet_topic.first.effective_configs["cleanup.policy"]
    topics     = data.freshet_topics.all.topics[*].name
    acls       = length(data.freshet_acls.all.acls)
    username   = data.freshet_credential.app.username
    usernames  = data.freshet_credentials.all.credentials[*].username
    quotas     = data.freshet_client_quotas.app.quotas[*].connections
    spent      = data.freshet_budget.team.state
    budgets    = data.freshet_budgets.all.budgets[*].amount_minor
    firing     = data.freshet_alert.late.state
    alerts     = data.freshet_alerts.all.alerts[*].threshold
    regions    = data.freshet_regions.all.regions[*].id
  }
}
"""


def test_data_sources_show_what_is_there(team):
    workspace = team.workspace()
    workspace.write(resources(topics=2, acls=10, credentials=1) + LOOKS)
    workspace.apply()
    shown = workspace.outputs()
    assert shown["shown"] == {
        "cluster": shown["cluster"],
        "clusters": ["resources"],
        "retention": "86400000",
        "cleanup": "delete",
        "topics": ["topic-000", "topic-001"],
        "acls": 10,
        "username": shown["users"][0],
        "usernames": shown["users"],
        "quotas": [50],
        "spent": "ok",
        "budgets": [500000],
        "firing": "ok",
        "alerts": [60],
        "regions": ["local"],
    }
    assert workspace.plan_is_empty()
