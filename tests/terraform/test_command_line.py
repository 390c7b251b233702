"""Tests Terraform with the configuration that the `freshet` program exports."""

import json
import re

import pytest

from tests.service.program import signed_up
from tests.supervisor.run import ROOT
from tests.terraform.workspace import Workspace

pytestmark = pytest.mark.full


@pytest.fixture
def freshet(service, tmp_path):
    """The program of an organization that has just signed up, with a cluster in use."""
    return signed_up(service.address, tmp_path)


def test_terraform_takes_over_what_is_exported(freshet, service, terraform, provider, tmp_path):
    project = freshet.json("project", "create", "Check out", "--label", "cost centre=4711")
    freshet("cluster", "update", "orders", "--project", project["id"], "--label", "a=${b}")
    freshet("topic", "create", "payments", "--partitions", "3", "--config", "retention.ms=1000000")
    freshet("topic", "create", "refunds.v1")
    account = freshet.json("service-account", "create", "deploy")
    freshet(
        "role-binding", "create", "--principal-type", "service_account",
        "--principal", account["id"], "--project", project["id"], "--role", "developer",
    )  # fmt: skip
    freshet("budget", "create", "Team", "--amount", "5000", "--action", "suspend")
    app = freshet.json("credential", "create", "app", "--role", "none")
    freshet("credential", "create", "reader", "--role", "consumer")
    freshet(
        "acl", "apply-template", "streams", "--principal", app["principal"], "--topic", "pay",
        "--pattern-type", "prefixed", "--group", "app 1/x",
    )  # fmt: skip
    freshet("quota", "set", "--user", app["username"], "--produce", "1000000", "--connections", "9")
    freshet("quota", "set", "--client-id", "a b/c=d", "--request-percentage", "12.5")
    freshet(
        "alert", "create", "Late", "--cluster", "orders", "--kind", "group_lag_seconds",
        "--threshold", "60", "--group", "app 1/x",
    )  # fmt: skip
    freshet("invitation", "create", "guest@example.org", "--role", "viewer")
    workspace = make_workspace(freshet, service, terraform, provider, tmp_path)
    file = workspace.folder / "main.tf"
    freshet("export", "terraform", "--file", str(file))
    text = file.read_text()
    count = text.count("\nresource ")
    assert count == text.count("import {\n") >= 19
    assert set(re.findall(r'resource "(\w+)"', text)) == managed()
    workspace.run("fmt", "-check")
    said = workspace.apply()
    assert f"{count} imported, 0 added, 0 changed, 0 destroyed" in said
    assert workspace.plan_is_empty()
    assert app["password"].encode() not in workspace.kept()


def managed():
    """Returns all resource types of the provider, which has a page for each."""
    pages = ROOT / "provisioning/deliverables/terraform/docs/resources"
    return {f"freshet_{page.stem}" for page in pages.glob("*.md")}


def make_workspace(freshet, service, terraform, provider, tmp_path):
    """Makes a workspace that uses the API key of the program's profile."""
    config = tmp_path / ".config/freshet/config.json"
    key = json.loads(config.read_text())["profiles"]["default"]["api_key"]
    return Workspace(tmp_path / "terraform", terraform, provider, service.address, key)
