"""Export as a Terraform configuration. In tests/terraform a real Terraform imports it."""

import pytest

from console.programs.cli.hcl import Expression, Names, Resource, quote_text, render_value


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain", '"plain"'),
        ('a"b\\c', '"a\\"b\\\\c"'),
        ("${x} %{y} $5 50%", '"$${x} %%{y} $5 50%"'),
        ("a\nb\x07", '"a\\nb\\u0007"'),
        ("größe", '"größe"'),
    ],
)
def test_no_text_is_a_template(text, written):
    assert quote_text(text) == written


def test_values_as_terraform_writes_them():
    assert render_value([50, 1.5, 2.0, True]) == "[50, 1.5, 2, true]"
    assert render_value({"a": Expression("x.y")}) == '{ "a" = x.y }'
    assert render_value({}) == "{}"


def test_a_resource_is_laid_out_as_fmt_does():
    made = Resource(
        "freshet_topic",
        "t",
        "cl_a/t",
        {"cluster_id": Expression("c.id"), "name": "t", "configs": {"a.b": "1"}, "x": None},
    )
    assert made.text() == (
        'import {\n  to = freshet_topic.t\n  id = "cl_a/t"\n}\n\n'
        'resource "freshet_topic" "t" {\n  cluster_id = c.id\n  name       = "t"\n'
        '  configs = {\n    "a.b" = "1"\n  }\n}\n'
    )


def test_names_are_valid_and_new():
    names = Names()
    taken = [names.take("freshet_topic", "a.b"), names.take("freshet_topic", "a/b")]
    assert taken == ["a_b", "a_b_2"]
    assert names.take("freshet_acl", "a.b") == "a_b"
    assert names.take("freshet_topic", "0x") == "_0x"
    assert names.take("freshet_topic", "***") == "topic"


def test_resources_are_written_with_references(freshet, make_cluster, tmp_path):
    project = freshet("project", "create", "Checkout", "--label", "team=a b", "-o", "json").json
    cluster = make_cluster(name="orders", project_id=project["id"])
    make_cluster(name="other")
    used = {"FRESHET_CLUSTER": cluster}
    freshet("service-account", "create", "deploy")
    freshet(
        "role-binding", "create", "--principal-type", "service_account", "--project", "Checkout",
        "--principal", freshet("service-account", "describe", "deploy", "-o", "json").json["id"],
        "--role", "developer",
    )  # fmt: skip
    freshet("budget", "create", "Team", "--amount", "5000", "--threshold", "90")
    freshet("topic", "create", "pay", "--config", "retention.ms=1000", **used)
    made = freshet("credential", "create", "app", "--role", "none", "-o", "json", **used).json
    principal = made["principal"]
    freshet("acl", "apply-template", "producer", "--principal", principal, "--topic", "pay", **used)
    freshet("quota", "set", "--user", made["username"], "--produce", "1000000", **used)
    freshet("quota", "set", "--client-id", "", "--fetch", "5e5", **used)
    late = ("--kind", "group_lag_seconds", "--threshold", "60", "--group", "pay")
    freshet("alert", "create", "Pay is late", "--cluster", "orders", *late)
    freshet("invitation", "create", "anna@example.org", "--role", "viewer")
    for _ in range(2):  # the second time the address is of two, of which one is over
        freshet("invitation", "create", "gone@example.org")
        assert freshet("invitation", "revoke", "gone@example.org", "--yes").code == 0
    freshet("organization", "update", "--two-factor-required")

    text = freshet("export", "terraform").out
    assert 'freshet_topic.orders_pay\n  id = "' + cluster + '/pay"' in text
    assert "project_id          = freshet_project.Checkout.id" in text
    assert "principal_id   = freshet_service_account.deploy.id" in text
    assert "principal     = freshet_credential.orders_app.principal" in text
    assert "user                     = freshet_credential.orders_app.username" in text
    assert f'id = "{cluster}/client_id="' in text
    assert '"retention.ms" = "1000"' in text
    assert "thresholds   = [90]" in text
    assert 'resource "freshet_alert" "orders_Pay_is_late"' in text
    assert 'group      = "pay"' in text
    assert 'to = freshet_member.anna_example_org\n  id = "anna@example.org"' in text
    assert "gone@example.org" not in text
    assert text.count('resource "freshet_member"') == 2  # one of them is the person who signed up
    assert "two_factor_required = true" in text
    assert made["password"] not in text
    assert '"freshet_cluster" "other"' in text

    file = tmp_path / "main.tf"
    result = freshet("export", "terraform", "--cluster", "orders", "--file", str(file))
    assert (result.code, result.out) == (0, "")
    assert 'resource "freshet_cluster" "orders"' in file.read_text()
    assert 'resource "freshet_alert"' in file.read_text()
    assert "freshet_budget" not in file.read_text()
    assert "freshet_member" not in file.read_text()
    assert "other" not in file.read_text()
