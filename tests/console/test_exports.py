"""An organisation's archive: all that is its own, nothing of others, and no secret."""

import io
import json
import zipfile

import pytest

from console.common import exports
from console.common.actor import Role
from console.common.models import AuditEntry
from console.common.tenancy import organization_scope
from tests.console.browsers import signed_in
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient, content_of

EXPORT = "/organizations/current/export"


def archive(client):
    """File → its rows."""
    response = client.get(EXPORT)
    assert response.status_code == 200
    assert response["Content-Type"] == "application/zip"
    assert "organization.zip" in response["Content-Disposition"]
    with zipfile.ZipFile(io.BytesIO(content_of(response))) as file:
        assert file.testzip() is None
        return {
            name: [json.loads(line) for line in file.read(name).decode().splitlines()]
            for name in file.namelist()
        }


def test_the_archive_has_what_is_the_organizations(api, tenant, other_tenant):
    found = archive(api())
    (organization,) = found["accounts_organization.jsonl"]
    assert (organization["id"], organization["name"]) == (tenant.id, "Acme")
    assert {each["role"] for each in found["accounts_apikey.jsonl"]} >= {"owner", "viewer"}
    assert [each["email"] for each in found["people.jsonl"]] == [tenant.owner.email]
    actions = [each["action"] for each in found["common_auditentry.jsonl"]]
    assert "organization.export" in actions
    text = json.dumps(found)
    assert other_tenant.id not in text
    assert other_tenant.owner.email not in text
    with organization_scope(tenant.id):
        assert AuditEntry.objects.filter(action="organization.export").count() == 1


def test_every_table_of_tenants_is_a_file(api):
    names = {f"{table}.jsonl" for table in exports.exported_tables()}
    assert {"billing_invoice.jsonl", "provisioning_cluster.jsonl"} <= names
    assert "metering_usagerow.jsonl" in names
    assert names <= set(archive(api()))


def test_pages_hide_nothing(api, monkeypatch):
    whole = archive(api())["accounts_apikey.jsonl"]
    monkeypatch.setattr(exports, "PAGE_ROWS", 2)
    monkeypatch.setattr(exports, "CHUNK_BYTES", 1)
    paged = archive(api())["accounts_apikey.jsonl"]
    assert [each["id"] for each in paged] == [each["id"] for each in whole]
    assert len(whole) >= 5


def test_no_column_of_a_secret_is_in_it():
    """By its name. One that says otherwise than its name is named here, and looked at."""
    # A key of the object store.
    harmless = {"billing_invoicedocument.key"}
    suspicious = {"key", "hash", "auth", "proof", "cipher", "seed", "private", "code"}
    for table, model in exports.exported_tables().items():
        for column in exports.exported_columns(model):
            name = f"{table}.{column}"
            assert not suspicious & set(column.split("_")) or name in harmless, name


def test_secrets_and_what_is_made_of_them_stay(api, tenant):
    text = json.dumps(archive(api()))
    for key in tenant.keys.values():
        assert key not in text
    assert "verifier" not in text
    assert "sealed" not in text


def test_who_manages_takes_it_along(tenant):
    assert archive(ApiClient(tenant.keys[Role.ADMIN]))
    assert archive(signed_in(tenant.owner))
    for role in (Role.DEVELOPER, Role.BILLING, Role.VIEWER):
        client = ApiClient(tenant.keys[role])
        assert_problem(client.get(EXPORT), 403, "permission_denied")


@pytest.fixture
def source(monkeypatch):
    monkeypatch.setattr(exports, "_sources", dict(exports._sources))
    exports.register_source("looms", lambda organization_id: [{"of": organization_id, "n": 1}])


@pytest.mark.usefixtures("source")
def test_what_lies_elsewhere_is_added_by_who_knows_it(api, tenant):
    assert archive(api())["looms.jsonl"] == [{"of": tenant.id, "n": 1}]
