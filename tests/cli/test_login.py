"""Signing in and out, and what is kept of it."""

import json
import stat
from pathlib import Path

import pytest

from console.base.accounts.models import ApiKey, Membership
from console.base.common.actor import Role
from console.base.common.tenancy import organization_scope
from tests.console.factories import PASSWORD, make_member


@pytest.fixture
def kept(home):
    """The file as it is, decoded."""
    return lambda: json.loads(Path(home["FRESHET_CONFIG"]).read_text())


@pytest.fixture
def person(freshet):
    """Runs a command line without a key in the environment."""
    return lambda *arguments, **options: freshet(*arguments, key="", **options)


def test_a_key_is_kept_where_only_its_owner_reads(person, tenant, home, kept):
    assert person("project", "list").code == 3
    said = person("login", "--url", "http://localhost:8080/", given=f"{tenant.key}\n")
    assert (said.code, "Signed in to Acme" in said.out) == (0, True)
    file = Path(home["FRESHET_CONFIG"])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [path.name for path in file.parent.iterdir()] == ["config.json"]
    assert kept()["profiles"]["default"]["api_key"] == tenant.key
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


def test_a_key_that_is_none_is_not_kept(person, home):
    said = person("login", given="fk_nothing\n")
    assert (said.code, Path(home["FRESHET_CONFIG"]).exists()) == (3, False)


def test_profiles_stand_beside_each_other(person, tenant, other_tenant, kept):
    for name, each in (("one", tenant), ("two", other_tenant)):
        assert person("login", "--profile", name, given=each.key).code == 0
    described = ["organization", "describe", "-o", "json"]
    assert person(*described).json["id"] == other_tenant.id
    assert person(*described, "-p", "one").json["id"] == tenant.id
    assert person(*described, FRESHET_PROFILE="one").json["id"] == tenant.id
    assert person("use", "--switch-to", "one").code == 0
    assert person(*described).json["id"] == tenant.id
    assert person(*described, "-p", "three").code == 2
    assert person("logout").code == 0
    assert list(kept()["profiles"]) == ["two"]
    assert person(*described).json["id"] == other_tenant.id
    with organization_scope(tenant.id):  # a key that was given is not revoked
        assert not ApiKey.objects.filter(revoked_at__isnull=False).exists()


def test_a_person_gets_a_key_of_their_own(person, tenant, kept):
    email = "dev@acme.example"
    make_member(tenant, email, Role.ADMIN)
    wrong = person("login", "--email", email, given="something else\n")
    assert (wrong.code, kept_nothing(wrong)) == (3, True)
    said = person("login", "--email", email, given=f"{PASSWORD}\n")
    assert said.code == 0, said.err
    profile = kept()["profiles"]["default"]
    with organization_scope(tenant.id):
        key = ApiKey.objects.get(pk=profile["key_id"])
        assert (key.role, key.name.startswith("freshet on ")) == (Role.ADMIN, True)
    assert person("organization", "describe").code == 0
    assert person("logout").code == 0
    with organization_scope(tenant.id):
        assert ApiKey.objects.get(pk=profile["key_id"]).revoked_at is not None


def kept_nothing(said):
    return "Signed in" not in said.out


def test_a_person_of_several_organisations_says_which(person, tenant, other_tenant):
    email = tenant.owner.email
    with organization_scope(other_tenant.id):
        Membership.objects.create(
            organization=other_tenant.organization, user=tenant.owner, role=Role.VIEWER
        )
    several = person("login", "--email", email, given=f"{PASSWORD}\n")
    assert (several.code, "Acme" in several.err, "Globex" in several.err) == (2, True, True)
    said = person("login", "--email", email, "--organization", "Acme", given=f"{PASSWORD}\n")
    assert said.code == 0, said.err
    assert person("organization", "describe", "-o", "json").json["id"] == tenant.id


def test_signing_up_leaves_a_profile_that_works(person, kept):
    said = person(
        "signup", "--email", "new@example.org", "--organization", "New", given="correct horse\n"
    )
    assert said.code == 0, said.err
    secret = kept()["profiles"]["default"]["api_key"]
    assert secret.startswith("fk_")
    assert secret not in said.out
    assert person("organization", "describe", "-o", "json").json["name"] == "New"


def test_a_key_over_plain_http_is_warned_of(person, tenant):
    said = person("login", "--url", "http://freshet.example.com", given=tenant.key)
    assert "does not begin with https" in said.err
    said = person("login", "--url", "https://freshet.example.com", given=tenant.key)
    assert said.err == ""


def test_use_keeps_a_cluster(person, tenant, make_cluster):
    cluster = make_cluster(name="orders")
    person("login", given=tenant.key)
    assert person("use", "orders").code == 0
    assert person("topic", "create", "t").code == 0
    assert f"cluster  {cluster}" in person("profile", "show").out
    assert person("use").code == 2
