"""The `freshet` program itself against the whole service, and Terraform with what it exports."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from tests.supervisor.run import ROOT
from tests.terraform.workspace import Workspace

pytestmark = pytest.mark.full

TIMEOUT_S = 120


class Program:
    """`freshet` of this checkout, with a home of its own."""

    def __init__(self, address, home):
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.environment = {**kept, "HOME": str(home), "FRESHET_URL": address}

    def start(self, *arguments):
        """Starts it; its output can be read."""
        return subprocess.Popen(
            [sys.executable, "-m", "console.programs.cli", *arguments],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *arguments, given="", code=0):
        """Runs it to its end; returns what it printed."""
        process = self.start(*arguments)
        out, err = process.communicate(given, TIMEOUT_S)
        assert process.returncode == code, f"{arguments}: {process.returncode}\n{out}\n{err}"
        return out

    def json(self, *arguments):
        """The same with the API's object decoded."""
        return json.loads(self(*arguments, "--output", "json"))


@pytest.fixture
def freshet(service, tmp_path):
    """The program, signed up, with a cluster in use."""
    program = Program(service.address, tmp_path)
    email = f"cli-{os.urandom(4).hex()}@example.org"
    program("signup", "--email", email, "--organization", "Mine", given="correct horse battery\n")
    made = program.json("cluster", "create", "orders", "--region", "local", "--wait")
    assert (made["state"], made["type"]) == ("succeeded", "create_cluster")
    program("use", "orders")
    return program


def test_records_are_seen_as_they_arrive(freshet):
    freshet("topic", "create", "payments", "--partitions", "1")
    freshet("produce", "payments", given="one\ntwo\n")
    assert freshet("consume", "payments", "--from-beginning") == "one\ntwo\n"
    tail = freshet.start("consume", "payments", "--last", "1", "--follow")
    lines = iter(tail.stdout)
    assert next(lines) == "two\n"
    freshet("produce", "payments", "--value", "three")
    assert next(lines) == "three\n"
    tail.send_signal(signal.SIGINT)
    out, err = tail.communicate(timeout=TIMEOUT_S)
    assert (tail.returncode, out, err) == (130, "", "\n")

    slept = freshet.json("cluster", "sleep", "orders", "--wait")
    assert slept["state"] == "succeeded"
    assert [each["name"] for each in freshet.json("topic", "list")["items"]] == ["payments"]
    freshet("consume", "payments", "-b", code=5)
    assert freshet("consume", "payments", "-b", "--wake") == "one\ntwo\nthree\n"
    freshet("logout")
    freshet("topic", "list", code=2)
    freshet("cluster", "list", code=3)


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
    """All types of resources that the provider has, by their pages."""
    pages = ROOT / "provisioning/deliverables/terraform/docs/resources"
    return {f"freshet_{page.stem}" for page in pages.glob("*.md")}


def make_workspace(freshet, service, terraform, provider, tmp_path):
    """A folder for Terraform, with the key of the program's profile."""
    config = tmp_path / ".config/freshet/config.json"
    key = json.loads(config.read_text())["profiles"]["default"]["api_key"]
    return Workspace(tmp_path / "terraform", terraform, provider, service.address, key)
