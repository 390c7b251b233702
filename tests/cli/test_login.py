"""Signing up, in and out, and the profiles that are kept."""

import json
import stat
from pathlib import Path

import pytest

from console.base.accounts.models import ApiKey, Membership
from console.base.common.actor import Role
from console.base.common.tenancy import organization_scope
from tests.console.factories import PASSWORD, make_member


@pytest.fixture
def kept_config(home):
    """Returns a function that reads the file of profiles."""
    return lambda: json.loads(Path(home["FRESHET_CONFIG"]).read_text())


@pytest.fixture
def person(freshet):
    """Runs a command line without a key in the environment."""
    return lambda *arguments, **options: freshet(*arguments, key="", **options)


def test_a_key_is_kept_where_only_its_owner_reads(person, tenant, home, kept_config):
    assert person("project", "list").code == 3
    result = person("login", "--url", "http://localhost:8080/", stdin_text=f"{tenant.key}\n")
    assert (result.code, "Signed in to Acme" in result.out) == (0, True)
    file = Path(home["FRESHET_CONFIG"])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [path.name for path in file.parent.iterdir()] == ["config.json"]
    assert kept_config()["profiles"]["default"]["api_key"] == tenant.key
    assert person("organization", "describe", "-o", "json").json["id"] == tenant.id
    shown = person("profile", "show")
    assert tenant.key not in shown.out + person("profile", "list").out
    assert "http://localhost:8080" in shown.out

    file.chmod(0o644)
    refused = person("project", "list")
    assert (refused.code, f"chmod 600 {file}" in refused.err) == (2, True)
    file.chmod(0o600)
    file.write_text("[]")
    assert (person("project", "list").code, "no configuration" in person("use", "x").err) == (
        2,
        True,
    )


def test_a_wrong_key_is_not_kept(person, home):
    result = person("login", stdin_text="fk_nothing\n")
    assert (result.code, Path(home["FRESHET_CONFIG"]).exists()) == (3, False)


def test_several_profiles_can_be_used(person, tenant, other_tenant, kept_config):
    for name, account in (("one", tenant), ("two", other_tenant)):
        assert person("login", "--profile", name, stdin_text=account.key).code == 0
    described = ["organization", "describe", "-o", "json"]
    assert person(*described).json["id"] == other_tenant.id
    assert person(*described, "-p", "one").json["id"] == tenant.id
    assert person(*described, FRESHET_PROFILE="one").json["id"] == tenant.id
    assert person("use", "--switch-to", "one").code == 0
    assert person(*described).json["id"] == tenant.id
    assert person(*described, "-p", "three").code == 2
    assert person("logout").code == 0
    assert list(kept_config()["profiles"]) == ["two"]
    assert person(*described).json["id"] == other_tenant.id
    with organization_scope(tenant.id):  # a key that was given is not revoked
        assert not ApiKey.objects.filter(revoked_at__isnull=False).exists()


def test_a_person_gets_a_key_of_their_own(person, tenant, kept_config):
    email = "dev@acme.example"
    make_member(tenant, email, Role.ADMIN)
    wrong = person("login", "--email", email, stdin_text="something else\n")
    assert (wrong.code, kept_nothing(wrong)) == (3, True)
    result = person("login", "--email", email, stdin_text=f"{PASSWORD}\n")
    assert result.code == 0, result.err
    profile = kept_config()["profiles"]["default"]
    with organization_scope(tenant.id):
        key = ApiKey.objects.get(pk=profile["key_id"])
        assert (key.role, key.name.startswith("freshet on ")) == (Role.ADMIN, True)
    assert person("organization", "describe").code == 0
    assert person("logout").code == 0
    with organization_scope(tenant.id):
        assert ApiKey.objects.get(pk=profile["key_id"]).revoked_at is not None


def kept_nothing(result):
    return "Signed in" not in result.out


def test_a_person_of_several_organizations_says_which(person, tenant, other_tenant):
    email = tenant.owner.email
    with organization_scope(other_tenant.id):
        Membership.objects.create(
            organization=other_tenant.organization, user=tenant.owner, role=Role.VIEWER
        )
    several = person("login", "--email", email, stdin_text=f"{PASSWORD}\n")
    assert (several.code, "Acme" in several.err, "Globex" in several.err) == (2, True, True)
    result = person("login", "--email", email, "--organization", "Acme", stdin_text=f"{PASSWORD}\n")
    assert result.code == 0, result.err
    assert person("organization", "describe", "-o", "json").json["id"] == tenant.id


def test_signing_up_leaves_a_profile_that_works(person, kept_config):
    result = person(
        "signup",
        "--email",
        "new@example.org",
        "--organization",
        "New",
        stdin_text="correct horse\n",
    )
    assert result.code == 0, result.err
    secret = kept_config()["profiles"]["default"]["api_key"]
    assert secret.startswith("fk_")
    assert secret not in result.out
    assert person("organization", "describe", "-o", "json").json["name"] == "New"


def test_a_key_over_plain_http_is_warned_of(person, tenant):
    result = person("login", "--url", "http://freshet.example.com", stdin_text=tenant.key)
    assert "does not begin with https" in result.err
    result = person("login", "--url", "https://freshet.example.com", stdin_text=tenant.key)
    assert result.err == ""


def test_use_keeps_a_cluster(person, tenant, make_cluster):
    cluster = make_cluster(name="orders")
    person("login", stdin_text=tenant.key)
    assert person("use", "orders").code == 0
    assert person("topic", "create", "t").code == 0
    assert f"cluster  {cluster}" in person("profile", "show").out
    assert person("use").code == 2
