"""An organization's archive has all of its data, nothing of others, and no secret."""

import asyncio
import io
import json
import time
import zipfile
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from asgiref.sync import async_to_sync
from psycopg.types.multirange import Multirange
from psycopg.types.range import Range

from console.base.accounts.services import export_organization
from console.base.common import exports, waiting
from console.base.common.actor import Role, system_actor
from console.base.common.concurrency import concurrency
from console.base.common.errors import PlatformError, Unavailable
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from tests.console.browsers import signed_in
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient, content_of
from tests.console.full_rows import FullRows
from tests.console.scopes import rolled_back
from tests.provisioning.control.world import prepare_cell

EXPORT = "/organizations/current/export"


def read_archive(client):
    """Downloads the archive; returns the rows of each file by its name."""
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
    files = read_archive(api())
    (organization,) = files["accounts_organization.jsonl"]
    assert (organization["id"], organization["name"]) == (tenant.id, "Acme")
    assert {row["role"] for row in files["accounts_apikey.jsonl"]} >= {"owner", "viewer"}
    assert [row["email"] for row in files["people.jsonl"]] == [tenant.owner.email]
    actions = [row["action"] for row in files["common_auditentry.jsonl"]]
    assert "organization.export_started" in actions
    text = json.dumps(files)
    assert other_tenant.id not in text
    assert other_tenant.owner.email not in text
    assert [entry.action for entry in entries(tenant)] == [
        "organization.export_started",
        "organization.export",
    ]


def test_an_organization_has_two_downloads_at_a_time(api, other_tenant):
    under_way = [api().get(EXPORT), api().get("/audit-log/export")]
    for path in (EXPORT, "/audit-log/export"):
        assert_problem(api().get(path), 429, code="too_many_at_once")
    assert api(other_tenant.key).get(EXPORT).status_code == 200
    assert api().get("/audit-log").status_code == 200
    end(under_way[0])
    assert api().get(EXPORT).status_code == 200


def test_a_download_counts_for_as_long_as_its_client_takes(tenant, monkeypatch):
    monkeypatch.setattr(waiting, "SENT_S", 2.0)

    async def parts():
        yield b"first"
        yield b"second"

    async def take_first(download):
        taking = aiter(download)
        assert await anext(taking) == b"first"
        until = time.monotonic() + waiting.SENT_S + 0.5
        while time.monotonic() < until:
            assert concurrency().used(waiting.DOWNLOADS, tenant.id) == 1
            await asyncio.sleep(0.01)
        await taking.aclose()

    with organization_scope(tenant.id):
        download = waiting.CountedParts(parts(), organization_id=tenant.id)
    asyncio.run(take_first(download))
    download.close()
    assert concurrency().used(waiting.DOWNLOADS, tenant.id) == 0


def end(response):
    """Ends a streamed answer as Django does, but keeps the test's connection to PostgreSQL."""
    for close in response._resource_closers:
        close()


def entries(tenant):
    """Returns the audit entries about exports, oldest first."""
    with organization_scope(tenant.id):
        matches = AuditEntry.objects.filter(action__startswith="organization.export")
        return list(matches.order_by("created_at", "pk"))


def test_every_table_of_tenants_is_a_file(api):
    names = {f"{table}.jsonl" for table in exports.exported_tables()}
    assert {"billing_invoice.jsonl", "provisioning_cluster.jsonl"} <= names
    assert "metering_usagerow.jsonl" in names
    assert names <= set(read_archive(api()))


def test_pages_hide_nothing(api, monkeypatch):
    whole = read_archive(api())["accounts_apikey.jsonl"]
    monkeypatch.setattr(exports, "PAGE_ROWS", 2)
    monkeypatch.setattr(exports, "CHUNK_BYTES", 1)
    paged = read_archive(api())["accounts_apikey.jsonl"]
    assert [row["id"] for row in paged] == [row["id"] for row in whole]
    assert len(whole) >= 5


def test_no_column_of_a_secret_is_in_it():
    """Judges columns by their names; `harmless` lists those that only sound secret."""
    harmless = {
        # The name of an object in the object store.
        "billing_invoicedocument.key",
        # By what Stripe knows a repeated request, and why it refused one.
        "billing_paymentattempt.key",
        "billing_paymentattempt.failure_code",
    }
    suspicious = {"key", "hash", "auth", "proof", "cipher", "seed", "private", "code"}
    for table, model in exports.exported_tables().items():
        for column in exports.exported_columns(model):
            name = f"{table}.{column}"
            assert not suspicious & set(column.split("_")) or name in harmless, name


def test_secrets_and_what_is_made_of_them_stay(api, tenant):
    text = json.dumps(read_archive(api()))
    for key in tenant.keys.values():
        assert key not in text
    assert "verifier" not in text
    assert "sealed" not in text


def test_who_manages_takes_it_along(tenant):
    assert read_archive(ApiClient(tenant.keys[Role.ADMIN]))
    assert read_archive(signed_in(tenant.owner))
    for role in (Role.DEVELOPER, Role.BILLING, Role.VIEWER):
        client = ApiClient(tenant.keys[role])
        assert_problem(client.get(EXPORT), 403, "permission_denied")


@pytest.fixture
def full(tenant):
    """A tenant with rows in every table, in which every column has a value in some row."""
    # The archive also reads clusters from their cell, which has to exist.
    prepare_cell()
    # The rows contradict one another, and deferred checks would refuse their commit.
    with rolled_back():
        with organization_scope(tenant.id):
            FullRows(tenant.organization).fill()
        yield tenant


def test_a_value_of_every_column_is_in_it(full, api):
    files = read_archive(api())
    for table, model in exports.exported_tables().items():
        rows = files[f"{table}.jsonl"]
        for column in exports.exported_columns(model):
            assert any(row[column] is not None for row in rows), f"{table}.{column}"
    (lane,) = files["metering_lanecoverage.jsonl"]
    assert lane["sequences"] == [
        {"lower": 1, "upper": 5, "bounds": "[)"},
        {"lower": 7, "upper": None, "bounds": "[)"},
    ]


def test_pages_of_every_table_hide_nothing(full, api, monkeypatch):
    whole = read_archive(api())
    monkeypatch.setattr(exports, "PAGE_ROWS", 1)
    paged = read_archive(api())
    # An archive has the audit entries of the archives before it, so these differ.
    del whole["common_auditentry.jsonl"], paged["common_auditentry.jsonl"]
    assert paged == whole


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Multirange([]), []),
        (Multirange([Range(1, 3)]), [{"lower": 1, "upper": 3, "bounds": "[)"}]),
        (Range(None, 3, "(]"), {"lower": None, "upper": 3, "bounds": "(]"}),
        (Range(empty=True), {"lower": None, "upper": None, "bounds": "empty"}),
        (
            Range(datetime(2026, 11, 1, tzinfo=UTC), None),
            {"lower": "2026-11-01T00:00:00Z", "upper": None, "bounds": "[)"},
        ),
        (Range(Decimal("0.10"), None), {"lower": "0.10", "upper": None, "bounds": "[)"}),
    ],
)
def test_ranges_are_objects_and_multiranges_lists_of_them(value, shown):
    assert json.loads(json.dumps(value, cls=exports.ArchiveEncoder)) == shown


@pytest.fixture
def source(monkeypatch):
    """Returns a function that registers a source of one row, or one that raises an error."""
    monkeypatch.setattr(exports, "_sources", dict(exports._sources))

    def register(error=None):
        def rows(organization_id):
            if error is not None:
                raise error
            return [{"of": organization_id, "n": 1}]

        exports.register_source("looms", rows)

    return register


@pytest.mark.parametrize(
    ("error", "reason"),
    [(TypeError("not serializable"), "internal_error"), (Unavailable(), "unavailable")],
)
def test_an_export_that_breaks_is_logged_as_failed(api, tenant, source, error, reason):
    source(error)
    response = api().get(EXPORT)
    with pytest.raises(PlatformError):
        content_of(response)
    started, failed = entries(tenant)
    assert (started.action, started.detail) == ("organization.export_started", {})
    assert (failed.action, failed.detail) == ("organization.export_failed", {"reason": reason})
    assert started.request_id == failed.request_id == response["X-Request-Id"]
    assert (failed.actor_kind, failed.actor_id) == (started.actor_kind, started.actor_id)
    assert failed.target_id == tenant.id


@pytest.mark.parametrize("gone", [GeneratorExit, asyncio.CancelledError])
def test_an_export_whose_client_goes_away_is_logged_as_failed(tenant, monkeypatch, gone):
    monkeypatch.setattr(exports, "CHUNK_BYTES", 1)

    async def begin_and_leave():
        assert await anext(parts)
        with pytest.raises(gone):
            await parts.athrow(gone())

    with organization_scope(tenant.id):
        parts = export_organization(actor=system_actor(tenant.id))
    async_to_sync(begin_and_leave)()
    assert [(entry.action, entry.detail) for entry in entries(tenant)] == [
        ("organization.export_started", {}),
        ("organization.export_failed", {"reason": "interrupted"}),
    ]


def test_what_lies_elsewhere_is_added_by_who_knows_it(api, tenant, source):
    source()
    assert read_archive(api())["looms.jsonl"] == [{"of": tenant.id, "n": 1}]
