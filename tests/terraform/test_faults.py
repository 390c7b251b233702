"""Tests lost answers, killed workers, and that the texts of refusals help."""

import os
import re
import signal
import subprocess
import threading

import pytest

from tests.service.api import Api
from tests.supervisor.run import wait_until
from tests.terraform.conftest import SOURCE
from tests.terraform.resources import CLUSTER, resources

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
IDS = "_[a-z2-7]{20}"


def test_each_answer_may_be_lost_once(team):
    """Terraform finds again what an unanswered request made, and makes nothing twice."""
    workspace, lost = team.workspace(), set()

    def lose(passed):
        kind = (passed.method, passed.path.split("/")[-1])
        first = passed.method in {"POST", "PUT", "DELETE"} and kind not in lost
        lost.add(kind)
        return first

    team.door.lose = lose
    workspace.write(resources(topics=12, acls=10, credentials=2))
    workspace.apply()
    posts = {"clusters", "topics", "acls", "credentials", "alerts", "budgets"}
    assert {("POST", kind) for kind in posts} | {("PUT", "quotas")} <= lost
    assert workspace.plan_is_empty()
    cluster = workspace.outputs()["cluster"]
    below = f"/clusters/{cluster}"
    assert team.clusters() == [cluster]
    assert len(team.api.topics(cluster)) == 12
    assert len(team.api.call("GET", f"{below}/credentials")["items"]) == 2
    assert len(team.api.call("GET", f"{below}/quotas")["items"]) == 3
    assert len(team.api.call("GET", "/budgets")["items"]) == 1
    assert len(team.api.call("GET", "/alerts")["items"]) == 1
    workspace.run("destroy", "-auto-approve", "-input=false")
    assert team.clusters() == []


def kill(service, name):
    """Kills one of the service's processes, and waits until the supervisor has started it anew."""
    before = service.children()[name]
    os.kill(before.pid, signal.SIGKILL)
    wait_until(lambda: service.children()[name] != before, f"{name} is started anew", 120)


@pytest.mark.parametrize(("victim", "moment"), [("worker", "clusters"), ("web", "topics")])
def test_an_apply_converges_though_a_process_is_killed(team, service, victim, moment):
    workspace = team.workspace()
    workspace.write(resources(topics=60, acls=10, credentials=2))
    reached = threading.Event()

    def seen(method, path):
        if method == "POST" and path.endswith(f"/{moment}"):
            reached.set()

    team.door.seen = seen
    with subprocess.Popen(
        workspace.command("apply", "-auto-approve", "-input=false"),
        cwd=workspace.folder,
        env=workspace.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        assert reached.wait(120)
        kill(service, victim)
        said, _ = running.communicate(timeout=400)
    assert running.returncode == 0, said[-6000:]
    assert workspace.plan_is_empty()
    assert len(team.clusters()) == 1


def test_a_protected_cluster_is_not_destroyed_and_it_says_why(team):
    workspace = team.workspace()
    workspace.write(CLUSTER.replace("false", "true"))
    workspace.apply()
    said = " ".join(workspace.run("destroy", "-auto-approve", "-input=false", status=1).split())
    assert "set deletion_protection = false, apply that, and then destroy" in said
    workspace.write(CLUSTER.replace("false", "true").replace('"resources"', '"other"'))
    assert workspace.planned() == {"freshet_cluster.main": ["update"]}
    workspace.write(CLUSTER)
    workspace.apply()
    workspace.run("destroy", "-auto-approve", "-input=false")


def test_one_topic_that_is_wrong_stops_no_other(team):
    workspace = team.workspace()
    wrong = """
resource "freshet_topic" "some" {
  for_each   = { good = "60000", bad = "a minute", fine = "70000" }
  cluster_id = freshet_cluster.main.id
  name       = each.key
  configs    = { "retention.ms" = each.value }
}
"""
    workspace.write(CLUSTER + wrong)
    said = workspace.run("apply", "-auto-approve", "-input=false", status=1)
    assert 'with freshet_topic.some["bad"]' in said
    assert "retention.ms" in said
    [cluster] = team.clusters()
    assert team.api.topics(cluster) == ["fine", "good"]
    workspace.write(CLUSTER + wrong.replace("a minute", "80000"))
    workspace.apply()
    assert workspace.plan_is_empty()


def resources_of(other):
    """Makes one resource of each kind. Returns the id that imports it, by its kind."""
    cluster = other.create_cluster("theirs")
    other.create_topic(cluster, "secret")
    below = f"/clusters/{cluster}"
    made = other.call("POST", f"{below}/credentials", {"name": "x", "role": "full"})
    other.call("PUT", f"{below}/quotas", {"user": "", "request_percentage": 50})
    alert = {"cluster_id": cluster, "name": "x", "kind": "connections", "threshold": 1}
    project = other.call("POST", "/projects", {"name": "x"})["id"]
    account = other.call("POST", "/service-accounts", {"name": "x"})["id"]
    binding = {"principal_type": "service_account", "principal_id": account}
    binding |= {"project_id": project, "role": "viewer"}
    email = "invited@other.example"
    other.call("POST", "/invitations", {"email": email, "role": "viewer"})
    return {
        "cluster": cluster,
        "topic": f"{cluster}/secret",
        "credential": f"{cluster}/{made['id']}",
        "acl": f"{cluster}/{made['principal']}/TOPIC/LITERAL/*/ALL/ALLOW/*",
        "client_quota": f"{cluster}/user=",
        "alert": other.call("POST", "/alerts", alert)["id"],
        "budget": other.call("POST", "/budgets", {"name": "x", "amount_minor": 1000})["id"],
        "project": project,
        "service_account": account,
        "role_binding": other.call("POST", "/role-bindings", binding)["id"],
        "member": email,
        "organization_settings": other.call("GET", "/organizations/current")["id"],
    }


def test_what_is_another_organizations_cannot_be_imported(team, service):
    other = Api.sign_up(service.address)
    foreign = resources_of(other)
    assert set(foreign) == {file.stem for file in (SOURCE / "docs/resources").iterdir()}
    for kind, known in foreign.items():
        workspace = team.workspace(kind)
        workspace.write(f'resource "freshet_{kind}" "a" {{}}\n')
        # What does not exist at all must get the same answer.
        absent = re.sub(IDS, "_" + "a" * 20, known).replace("invited@", "nobody@")
        assert known != absent
        answers = [
            " ".join(workspace.run("import", f"freshet_{kind}.a", name, status=1).split())
            for name in (known, absent)
        ]
        assert "Cannot import non-existent" in answers[0] or "There is no" in answers[0], answers
        # The answers may differ in ids only, among them those of the two requests.
        theirs, nobodys = (re.sub(IDS, "_…", answer) for answer in answers)
        assert theirs.replace("invited@", "nobody@") == nobodys
    other.close()
