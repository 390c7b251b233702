"""Commands for people, service accounts, keys, and a cluster's credentials, ACLs and quotas."""

import json

import pytest

from console.base.common.actor import Role
from tests.console.factories import make_member


def test_people_and_projects(freshet, tenant):
    make_member(tenant, "ada@acme.example", Role.VIEWER)
    assert freshet("member", "update", "ada@acme.example", "--role", "developer").code == 0
    ada = freshet("member", "describe", "ada@acme.example", "-o", "json").json
    assert ada["role"] == "developer"
    made = freshet("project", "create", "Checkout", "--label", "tier=1", "-o", "json").json
    assert made["labels"] == {"tier": "1"}
    bound = freshet(
        "role-binding", "create", "--principal-type", "user", "--principal", ada["user_id"],
        "--project", "Checkout", "--role", "admin", "-o", "json",
    ).json  # fmt: skip
    listed = freshet("role-binding", "list", "--project", "Checkout", "-o", "json").json
    assert listed["items"] == [bound]
    assert freshet("role-binding", "delete", bound["id"], "-y").code == 0
    assert freshet("project", "update", "Checkout", "--name", "Pay", "--no-labels").code == 0
    assert freshet("project", "delete", "Pay", "--yes").code == 0
    assert freshet("member", "remove", "ada@acme.example", "-y").code == 0
    last = freshet("member", "remove", tenant.owner.email, "-y")
    assert last.code == 5

    assert freshet("invitation", "create", "new@acme.example", "--role", "billing").code == 0
    soon = freshet("invitation", "resend", "new@acme.example")
    assert (soon.code, "less than a minute ago" in soon.err) == (7, True)
    assert freshet("invitation", "revoke", "new@acme.example", "-y").code == 0
    assert freshet("invitation", "list").rows()[0][:3] == ["new@acme.example", "billing", "revoked"]


def test_the_organization(freshet, tmp_path):
    changed = freshet("organization", "update", "--name", "Acme Inc", "-o", "json").json
    assert changed["name"] == "Acme Inc"
    locked = freshet("organization", "update", "--allow-from", "192.0.2.0/24")
    assert (locked.code, "--force" in locked.err) == (6, True)
    assert freshet("organization", "update", "--allow-from-anywhere").code == 0
    file = tmp_path / "all.zip"
    assert freshet("organization", "export", "--file", str(file)).code == 0
    assert file.read_bytes()[:2] == b"PK"
    assert list(tmp_path.glob(".*")) == []
    printed = freshet("audit", "export", "--action", "organization.update", "--file", "-")
    assert json.loads(printed.out.splitlines()[0])["action"] == "organization.update"
    logged = freshet("audit", "list", "--from", "-1h", "--limit", "1")
    assert len(logged.rows()) == 1
    assert "--limit 0 shows all" in logged.err


def test_programs_and_their_keys(freshet):
    assert freshet("service-account", "create", "deploy", "--role", "developer").code == 0
    made = freshet(
        "api-key", "create", "first", "--service-account", "deploy", "--expires", "+30d",
        "-o", "json",
    ).json  # fmt: skip
    assert freshet("cluster", "list", key=made["secret"]).code == 0
    rotated = freshet("api-key", "rotate", "first", "--overlap-s", "0", "-o", "json")
    assert rotated.code == 0
    secret = rotated.json["secret"]
    assert freshet("cluster", "list", key=made["secret"]).code == 3
    assert freshet("cluster", "list", key=secret).code == 0
    assert freshet("service-account", "update", "deploy", "--disabled").code == 0
    assert freshet("cluster", "list", key=secret).code == 3
    assert freshet("service-account", "update", "deploy", "--no-disabled").code == 0
    listed = freshet("api-key", "list", "--service-account", "deploy", "-o", "json").json["items"]
    assert {credential["name"] for credential in listed} == {"first"}
    assert freshet("api-key", "delete", rotated.json["id"], "-y").code == 0
    assert freshet("cluster", "list", key=secret).code == 3
    assert freshet("service-account", "delete", "deploy", "-y").code == 0
    viewer = freshet("api-key", "create", "see", "--role", "viewer", "-o", "json").json["secret"]
    assert freshet("project", "create", "x", key=viewer).code == 3


@pytest.fixture
def in_cluster(freshet, cluster_id):
    """Returns a function that runs a command line for a cluster."""
    return lambda *arguments, **options: freshet(*arguments, FRESHET_CLUSTER=cluster_id, **options)


def test_credentials(in_cluster):
    made = in_cluster("credential", "create", "app", "--role", "producer", "-o", "json").json
    assert len(made["password"]) >= 16
    assert made["password"] not in in_cluster("credential", "list").out
    new = in_cluster("credential", "rotate", "app", "--overlap-s", "60", "-o", "json").json
    assert new["replaces"] == made["id"]
    assert in_cluster("credential", "describe", "app", "-o", "json").json["id"] == new["id"]
    ends = in_cluster(
        "credential", "update", "app", "--expires", "2031-01-01T00:00:00Z", "-o", "json"
    )
    assert ends.json["expires_at"].startswith("2031-01-01")
    never = in_cluster("credential", "update", "app", "--expires", "never", "-o", "json")
    assert never.json["expires_at"] is None
    assert in_cluster("credential", "update", "app", "--expires", "tomorrow").code == 2
    assert in_cluster("credential", "delete", "app", "-y").code == 0


def test_entries_of_access_control(in_cluster, tmp_path):
    one = ["--principal", "User:a", "--resource-type", "topic", "--resource-name", "t"]
    made = in_cluster("acl", "create", *one, "--operation", "read", "-o", "json")
    assert made.code == 0
    assert in_cluster("acl", "describe", made.json["id"], "-o", "json").json["operation"] == "READ"
    assert in_cluster("acl", "templates").rows()
    given = in_cluster(
        "acl", "apply-template", "consumer", "--principal", "User:b", "--topic", "t-",
        "--pattern-type", "prefixed", "--group", "g", "-o", "json",
    )  # fmt: skip
    assert {item["principal"] for item in given.json["items"]} == {"User:b"}
    assert in_cluster("acl", "apply-template", "consumer", *one[:2], "--topic", "t").code == 6
    listed = in_cluster("acl", "list", "--principal", "User:b", "-o", "json").json["items"]
    removed = in_cluster("acl", "delete-matching", "--principal", "User:b", "-y", "-o", "json").json
    assert len(removed["items"]) == len(listed)
    file = tmp_path / "acls.json"
    file.write_text(json.dumps(listed))
    assert in_cluster("acl", "create-many", "--file", str(file)).code == 0
    assert len(in_cluster("acl", "list").rows()) == len(listed) + 1
    assert in_cluster("acl", "delete", made.json["id"], "-y").code == 0
    file.write_text("{")
    assert in_cluster("acl", "create-many", "--file", str(file)).code == 2


def test_quotas(in_cluster):
    made = in_cluster("quota", "set", "--user", "a", "--produce", "1048576", "-o", "json").json
    assert (made["user"], made["produce_bytes_per_second"]) == ("a", 1048576)
    in_cluster("quota", "set", "--client-id", "", "--fetch", "1000")
    assert len(in_cluster("quota", "list").rows()) == 2
    assert in_cluster("quota", "describe", made["id"], "-o", "json").json == made
    assert in_cluster("quota", "delete", made["id"], "-y").code == 0
    assert in_cluster("quota", "clear", "--client-id", "", "-y").code == 0
    assert in_cluster("quota", "list").out == ""
    assert in_cluster("quota", "set").code == 6
