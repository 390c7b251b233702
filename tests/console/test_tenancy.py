"""The second guard of tenancy: PostgreSQL shows only rows of the scope to the serving role."""

import ast
from pathlib import Path

import pytest
from django.apps import apps
from django.db import connection, transaction
from django.db.utils import ProgrammingError

from console.base.accounts.models import ApiKey, Membership, Organization
from console.base.accounts.services import create_api_key
from console.base.common.actor import Role, system_actor
from console.base.common.audit import record_audit
from console.base.common.models import AuditEntry
from console.base.common.tenancy import (
    current_scope,
    enter_organization,
    organization_scope,
    request_scope,
    system_scope,
)

ROOT = Path(__file__).parents[2]
# The functions that may see rows of every organization, and why.
SYSTEM_SCOPE_CALLERS = {
    ("billing/collection/advances.py", "judge_payers"),  # a sweep
    ("billing/collection/advances.py", "_charge_due"),  # a sweep
    ("billing/collection/advances.py", "advance_asked"),  # a payer has many organizations
    ("billing/collection/advances.py", "follow_payer"),  # a payer has many organizations
    ("billing/collection/advances.py", "owed_by"),  # a payer has many organizations
    ("billing/allowances/refusals.py", "why_refused"),  # a payer has many organizations
    ("billing/collection/attempts.py", "sweep_attempts"),  # a sweep
    ("billing/collection/cards.py", "check_cards"),  # a sweep
    ("billing/collection/cards.py", "account_of_customer"),  # whose customer it is
    ("billing/collection/cards.py", "account_of_card"),  # whose card it is
    ("billing/collection/collecting.py", "_organizations_to_charge"),  # a sweep
    ("billing/collection/collecting.py", "_organizations_overdue"),  # a sweep
    ("billing/collection/collecting.py", "_owners_of"),  # a sweep
    ("billing/collection/dunning.py", "sweep_dunning"),  # a sweep
    ("billing/collection/notices.py", "sweep_notices"),  # a sweep
    ("billing/collection/refunds.py", "sweep_refunds"),  # a sweep
    ("billing/collection/refunds.py", "enter_refund"),  # whose payment it is
    ("billing/collection/events.py", "_organization_of"),  # whose charge it is
    ("billing/collection/events.py", "enter_dispute"),  # whose payment it is
    ("billing/collection/events.py", "_enter_payment_first"),  # whose payment it is
    ("billing/collection/events.py", "_handle_setup"),  # whose card it is
    ("billing/collection/reconciliation.py", "reconcile_money"),  # money of everybody
    ("billing/collection/reconciliation.py", "_compare_stripe"),  # money of everybody
    ("billing/services/closing.py", "issue_final_invoices"),  # a sweep
    ("billing/services/closing.py", "issue_final_invoice"),  # usage is of a whole cell
    ("billing/services/documents.py", "sweep_documents"),  # a sweep
    ("billing/services/issuing.py", "issue_month"),  # everybody's invoices
    ("billing/services/issuing.py", "_issue_batch"),
    ("billing/services/issuing.py", "_note_incomplete"),
    ("billing/services/mailing.py", "sweep_mails"),  # a sweep
    ("billing/services/missing.py", "due_missing"),  # everybody's missing invoices
    ("billing/services/missing.py", "note_missing"),
    ("billing/services/missing.py", "postpone_missing"),
    ("billing/management/commands/missing_invoices.py", "handle"),  # for the operator
    ("billing/services/voiding.py", "void_invoice"),  # a person's command
    ("billing/management/commands/record_payment.py", "handle"),  # whose invoice it is
    ("billing/management/commands/refund_payment.py", "handle"),  # whose payment it is
    ("billing/management/commands/write_off_invoice.py", "handle"),  # whose invoice it is
    ("billing/tasks.py", "set_due_dates"),  # a sweep
    ("console/staff/api/money.py", "_owner_of"),  # whose invoice or payment it is
    ("console/staff/api/money.py", "record"),  # whose invoice it is
    ("billing/budgets/evaluation.py", "evaluate_budgets"),  # a sweep
    ("billing/budgets/evaluation.py", "_write_amounts"),  # a sweep
    ("billing/allowances/enforcement.py", "enforce_allowances"),  # a sweep
    # What others of a payer used: only what is free for the asking one follows from it.
    ("billing/allowances/services.py", "read_allowances"),
    # Totals are of a whole cell.
    ("metering/services/comparing.py", "_compare"),
    ("metering/services/running.py", "rebuild_month"),
    ("metering/services/running.py", "rebuild_hours"),
    ("metering/management/commands/running_totals.py", "handle"),
    ("console/base/accounts/services/authentication.py", "authenticate_key"),  # whose key it is
    ("console/base/accounts/services/authentication.py", "_write_last_use"),  # after the request
    ("console/base/accounts/services/authentication.py", "_write_last_seen"),  # after the request
    ("console/base/accounts/services/authentication.py", "actor_of_user"),  # where the user belongs
    ("console/base/accounts/services/memberships.py", "organizations_of"),  # where the user belongs
    ("console/base/accounts/services/invitations.py", "_open_invitation"),  # whose token it is
    (
        "console/base/accounts/services/verification.py",
        "request_verification",
    ),  # whose address it is
    ("console/base/common/idempotency.py", "purge_expired"),  # a sweep
    ("console/base/common/metrics.py", "collect"),  # what operators see: counts, and nobody's names
    ("console/base/common/outbox.py", "dispatch_entry"),  # a sweep, and what a commit leaves to do
    ("console/base/common/outbox.py", "_claim_entry"),  # of whichever organization
    ("console/base/common/outbox.py", "sweep_outbox"),  # a sweep
    ("provisioning/clusters/services/awaited.py", "_unfinished"),  # what requests wait for
    ("console/base/common/queued.py", "_take_next"),  # whose turn it is
    ("console/base/common/queued.py", "sweep_waiting"),  # a sweep
    ("metering/services/agreement.py", "gone_clusters"),  # a day is of every organization
    ("metering/services/agreement.py", "keep_result"),
    ("metering/services/agreement.py", "owners_of"),
    ("metering/services/agreement.py", "published_totals"),
    ("console/incidents/services/mails.py", "send_incident_mail"),  # of the service as a whole
    ("console/incidents/services/sweeping.py", "sweep_incidents"),  # a sweep
    ("console/alerts/services/sweeping.py", "evaluate_alerts"),  # a sweep
    ("console/staff/api/bases.py", "list"),  # for staff
    ("console/staff/api/views.py", "_answer_request"),  # whose request it is
    ("console/staff/api/views.py", "list"),  # for staff
    ("console/staff/api/views.py", "permit_deletion"),  # whose cluster it is
    (
        "metering/services/compacting.py",
        "_joined_coverage",
    ),  # a usage file is of many organizations
    ("metering/services/compacting.py", "_topic_names"),  # a usage file is of many organizations
    ("metering/services/ingest.py", "_ingest_batch"),  # a usage file is of many organizations
    ("metering/services/ingest.py", "remove_old_minutes"),  # a sweep
    ("metering/services/pruning.py", "prune_files"),  # a sweep
    ("metering/services/publishing.py", "publish_run"),  # a day is of every organization
    ("metering/services/quality.py", "note_quality"),  # for staff
    ("metering/services/status.py", "meter_status"),  # for staff
    ("provisioning/administration/services/credential_expiry.py", "expire_credentials"),  # a sweep
    (
        "provisioning/administration/services/credential_use.py",
        "note_credential_uses",
    ),  # of a whole cell
    ("provisioning/administration/services/readings.py", "end_readings"),  # a sweep
    ("provisioning/administration/services/announcing.py", "settle_announcements"),  # a sweep
    ("provisioning/clusters/services/sample_history.py", "add_up_hours"),  # of a whole cell
    ("provisioning/clusters/services/sample_history.py", "_add_up_hour"),
    ("provisioning/clusters/services/sample_ingest.py", "_take_in"),  # a file is of many
    ("provisioning/reconciling/service.py", "_clusters_to_sweep"),  # a sweep
    ("provisioning/reconciling/service.py", "forget_purged"),  # a sweep
}
# Tables without an organization: people, addresses, and Django's own.
WITHOUT_ROW_SECURITY = {
    "accounts_addressevent",
    "accounts_failedattempts",
    "accounts_passwordreset",
    "accounts_recoverycode",
    "accounts_secondfactor",
    "accounts_user",
    "accounts_usersession",
    "auth_group",
    "auth_group_permissions",
    "auth_permission",
    # Prices are the same for everybody.
    "billing_price",
    "billing_priceversion",
    # So are the counters of invoices, and which roll-ups a month was made from.
    "billing_numberblock",
    "billing_numberseries",
    "billing_usagebasis",
    # So is how far a month is issued.
    "billing_invoicemonth",
    # A card or account may pay for several organizations.
    "billing_payer",
    # Stripe's events by their ids, how far they are read, and the nightly comparisons.
    "billing_moneyreconciliation",
    "billing_stripecursor",
    "billing_stripeevent",
    "django_content_type",
    "django_migrations",
    "common_heldlock",
    "django_session",
    # A cell and its ports are the service's own.
    "provisioning_cell",
    "provisioning_cellport",
    # A file of samples is of a whole cell.
    "provisioning_samplefile",
    # Roll-ups and usage files are of a whole cell; a staged row lives for one transaction.
    "metering_ingeststate",
    "metering_qualityresult",
    "metering_reconciliation",
    "metering_rolluppointer",
    "metering_rolluprun",
    "metering_stagedrow",
    "metering_totalscheck",
    "metering_usagefile",
}


def rows(statement, parameters=()):
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []


def in_transaction():
    return connection.in_atomic_block


def tables():
    return {name for (name,) in rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}


TENANT_TABLES = sorted(
    model._meta.db_table
    for model in apps.get_models()
    if model._meta.db_table not in WITHOUT_ROW_SECURITY
)


@pytest.mark.parametrize("table", TENANT_TABLES)
@pytest.mark.django_db
def test_every_table_of_tenants_has_row_security_that_binds_its_owner_too(table):
    query = "SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE relname = %s"
    assert rows(query, [table]) == [(True, True)]
    policies = "SELECT cmd, permissive FROM pg_policies WHERE tablename = %s"
    assert rows(policies, [table]) == [("ALL", "PERMISSIVE")]


@pytest.mark.django_db
def test_every_table_is_known_to_be_a_tenants_or_not():
    assert tables() == set(TENANT_TABLES) | WITHOUT_ROW_SECURITY


def test_without_a_scope_raw_sql_sees_nothing(tenant):
    assert rows("SELECT count(*) FROM accounts_apikey") == [(0,)]
    with organization_scope(tenant.id):
        assert rows("SELECT count(*) FROM accounts_apikey") == [(len(Role),)]


def test_with_another_scope_raw_sql_sees_nothing_of_it(tenant, other_tenant):
    with organization_scope(other_tenant.id):
        query = "SELECT count(*) FROM accounts_apikey WHERE organization_id = %s"
        assert rows(query, [tenant.id]) == [(0,)]
        assert rows("SELECT DISTINCT organization_id FROM accounts_apikey") == [(other_tenant.id,)]
        assert rows("SELECT id FROM accounts_organization") == [(other_tenant.id,)]


def test_with_another_scope_nothing_of_it_changes(tenant, other_tenant):
    with organization_scope(other_tenant.id):
        assert ApiKey.objects.filter(organization_id=tenant.id).update(name="x") == 0
        assert ApiKey.objects.filter(organization_id=tenant.id).delete()[0] == 0
    with organization_scope(tenant.id):
        assert not ApiKey.objects.filter(name="x").exists()
        assert ApiKey.objects.count() == len(Role)


def test_a_row_cannot_be_written_into_another_organization(tenant, other_tenant):
    with organization_scope(other_tenant.id):
        membership = Membership(organization_id=tenant.id, user=other_tenant.owner, role="owner")
        with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
            membership.save()
        with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
            ApiKey.objects.update(organization_id=tenant.id)


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE accounts_apikey DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE accounts_apikey NO FORCE ROW LEVEL SECURITY",
        "DROP POLICY organization ON accounts_apikey",
        "ALTER ROLE freshet_app BYPASSRLS",
        "SET ROLE freshet_owner",
        "SET SESSION AUTHORIZATION freshet_owner",
        "TRUNCATE accounts_apikey",
        "UPDATE common_auditentry SET action = 'x'",
        "DELETE FROM common_auditentry",
        "CREATE TABLE mine (id int)",
    ],
)
@pytest.mark.django_db
def test_the_serving_role_cannot_help_it(statement):
    with pytest.raises(ProgrammingError), transaction.atomic():
        rows(statement)


@pytest.mark.django_db
def test_the_serving_role_owns_nothing_and_may_bypass_nothing():
    query = """SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb FROM pg_roles
               WHERE rolname = current_user"""
    assert rows(query) == [(False, False, False, False)]
    assert rows("SELECT tablename FROM pg_tables WHERE tableowner = current_user") == []


def test_the_row_security_setting_is_an_error_and_no_way_around(tenant):
    with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
        rows("SET LOCAL row_security = off; SELECT count(*) FROM accounts_apikey")


def test_scopes_nest_and_end(tenant, other_tenant):
    with organization_scope(tenant.id):
        with organization_scope(other_tenant.id):
            assert current_scope() == other_tenant.id
            with system_scope():
                assert Organization.objects.count() == 2
            assert Organization.objects.get().pk == other_tenant.id
        assert current_scope() == tenant.id
    assert current_scope() == ""


def test_a_scope_ends_with_an_error(tenant):
    with pytest.raises(ZeroDivisionError), organization_scope(tenant.id):
        _ = 1 / 0
    assert current_scope() == ""


def test_a_scope_ends_with_a_failed_transaction(tenant):
    with (
        pytest.raises(ProgrammingError),
        transaction.atomic(),
        organization_scope(tenant.id),
    ):
        rows("SELECT nothing FROM nowhere")
    assert current_scope() == ""


def test_what_authentication_enters_ends_with_the_request(tenant):
    with transaction.atomic(), request_scope():
        enter_organization(tenant.id)
        assert current_scope() == tenant.id
    assert current_scope() == ""


@pytest.mark.django_db(transaction=True)
def test_a_scope_opens_a_transaction_and_leaves_nothing_behind():
    with organization_scope("org_aaaaaaaaaaaaaaaaaaaa"):
        assert in_transaction()
    assert not in_transaction()
    assert current_scope() == ""
    with pytest.raises(RuntimeError, match="transaction"):
        enter_organization("org_aaaaaaaaaaaaaaaaaaaa")


@pytest.mark.parametrize("name", ["", "*"])
def test_no_name_means_every_organization(name):
    with pytest.raises(ValueError, match="is no organization"), organization_scope(name):
        pass


def test_the_audit_log_is_written_and_only_added_to(tenant):
    with organization_scope(tenant.id):
        created = create_api_key(actor=system_actor(tenant.id), name="ours", role=Role.VIEWER)
        (entry,) = AuditEntry.objects.filter(action="api_key.create")
        assert entry.target_id == created.key.pk


def test_a_target_with_a_long_name_is_audited_by_its_beginning(tenant):
    with organization_scope(tenant.id):
        record_audit(
            actor=system_actor(tenant.id),
            action="group.reset_offsets",
            target_type="group",
            target_id="cl_x/" + "g" * 32_767,
        )
        assert len(AuditEntry.objects.get(action="group.reset_offsets").target_id) == 512


def callers(folder, name):
    """Yields the file and the name of each function below a folder that calls a function."""
    for file in sorted((ROOT / folder).rglob("*.py")):
        tree = ast.parse(file.read_text())
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                called = {
                    node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                    for node in ast.walk(function)
                    if isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Name | ast.Attribute)
                }
                if name in called:
                    yield str(file.relative_to(ROOT)), function.name


def test_the_callers_of_the_system_scope_are_known():
    actual = {
        caller
        for folder in ("console", "provisioning", "metering", "billing")
        for caller in callers(folder, "system_scope")
    }
    assert actual == SYSTEM_SCOPE_CALLERS
