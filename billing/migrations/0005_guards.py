"""Row security, and what PostgreSQL refuses: changes of issued invoices, entries out of balance.

The functions look at rows of whatever organization: a deferred check runs at the commit, when the
scope of whoever wrote has ended, and must not take rows that it cannot see for rows that are not.
"""

from __future__ import annotations

from django.db import migrations

from billing.guards import refuse_changes
from console.base.common.tenancy import enable_rls

GUARD_INVOICE = """
CREATE FUNCTION billing_guard_invoice() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    lines numeric;
    scope text := current_setting('freshet.organization', true);
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.state <> 'draft' THEN
            RAISE EXCEPTION 'an invoice begins as a draft' USING ERRCODE = 'check_violation';
        END IF;
        RETURN NEW;
    END IF;
    IF OLD.state <> 'draft' THEN
        RAISE EXCEPTION '% of an issued invoice is refused: it never changes', TG_OP
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    IF NEW.state = 'issued' THEN
        PERFORM set_config('freshet.organization', '*', true);
        SELECT coalesce(sum(amount_minor), 0) INTO lines
            FROM billing_invoiceline WHERE invoice_id = NEW.id;
        PERFORM set_config('freshet.organization', coalesce(scope, ''), true);
        IF lines <> NEW.subtotal_minor THEN
            RAISE EXCEPTION 'the lines of % sum to %, not to %', NEW.id, lines, NEW.subtotal_minor
                USING ERRCODE = 'check_violation';
        END IF;
    END IF;
    RETURN NEW;
END $$
"""

GUARD_LINE = """
CREATE FUNCTION billing_guard_line() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    found text;
    scope text := current_setting('freshet.organization', true);
BEGIN
    PERFORM set_config('freshet.organization', '*', true);
    SELECT state INTO found FROM billing_invoice WHERE id = OLD.invoice_id FOR SHARE;
    PERFORM set_config('freshet.organization', coalesce(scope, ''), true);
    IF found <> 'draft' THEN
        RAISE EXCEPTION '% of a line of an issued invoice is refused: it never changes', TG_OP
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    IF NEW.invoice_id <> OLD.invoice_id THEN
        RAISE EXCEPTION 'a line stays with its invoice' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$
"""

# Once a statement, as there are thousands of lines in one. The lock keeps an invoice from being
# issued while a line is written to its draft; the check behind it sees what was issued meanwhile.
GUARD_NEW_LINES = """
CREATE FUNCTION billing_guard_new_lines() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    found boolean;
    scope text := current_setting('freshet.organization', true);
BEGIN
    PERFORM set_config('freshet.organization', '*', true);
    PERFORM 1 FROM billing_invoice
        WHERE id IN (SELECT DISTINCT invoice_id FROM new_lines) ORDER BY id FOR SHARE;
    SELECT EXISTS (
        SELECT 1 FROM billing_invoice
            WHERE id IN (SELECT DISTINCT invoice_id FROM new_lines) AND state <> 'draft'
    ) INTO found;
    PERFORM set_config('freshet.organization', coalesce(scope, ''), true);
    IF found THEN
        RAISE EXCEPTION 'an issued invoice gets no line' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NULL;
END $$
"""

CHECK_ENTRY = """
CREATE FUNCTION billing_check_entry() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    entry billing_journalentry;
    found integer;
    total numeric;
    scope text := current_setting('freshet.organization', true);
BEGIN
    PERFORM set_config('freshet.organization', '*', true);
    IF TG_TABLE_NAME = 'billing_journalentry' THEN
        entry := NEW;
    ELSE
        SELECT * INTO entry FROM billing_journalentry WHERE id = NEW.entry_id;
    END IF;
    SELECT count(*), coalesce(sum(amount_minor), 0) INTO found, total
        FROM billing_posting
        WHERE entry_id = entry.id AND organization_id = entry.organization_id;
    PERFORM set_config('freshet.organization', coalesce(scope, ''), true);
    IF NEW.organization_id <> entry.organization_id THEN
        RAISE EXCEPTION 'a posting is of another organization than its entry %', entry.id
            USING ERRCODE = 'check_violation';
    END IF;
    IF found < 2 OR found <> entry.posting_count THEN
        RAISE EXCEPTION 'entry % has % postings, not %', entry.id, found, entry.posting_count
            USING ERRCODE = 'check_violation';
    END IF;
    IF total <> 0 THEN
        RAISE EXCEPTION 'the postings of entry % sum to %, not to 0', entry.id, total
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$
"""


def trigger(name: str, when: str, table: str, function: str) -> migrations.RunSQL:
    kind = "CONSTRAINT TRIGGER" if "DEFERRED" in function else "TRIGGER"
    return migrations.RunSQL(
        sql=f"CREATE {kind} {name} {when} ON {table} {function}",
        reverse_sql=f"DROP TRIGGER {name} ON {table}",
    )


def function(sql: str, name: str) -> migrations.RunSQL:
    return migrations.RunSQL(sql=sql, reverse_sql=f"DROP FUNCTION {name}()")


ROW = "FOR EACH ROW EXECUTE FUNCTION"
DEFERRED = f"DEFERRABLE INITIALLY DEFERRED {ROW}"
CHANGES = "BEFORE INSERT OR UPDATE OR DELETE"


class Migration(migrations.Migration):
    """Row-level security and guards."""

    dependencies = [("billing", "0004_invoices")]
    operations = [
        enable_rls("billing_billingdetails"),
        enable_rls("billing_invoice"),
        enable_rls("billing_invoiceline"),
        enable_rls("billing_invoicedocument"),
        enable_rls("billing_journalentry"),
        enable_rls("billing_posting"),
        enable_rls("billing_lostnumber"),
        refuse_changes("billing_journalentry"),
        refuse_changes("billing_posting"),
        refuse_changes("billing_invoicedocument"),
        refuse_changes("billing_usagebasis"),
        refuse_changes("billing_lostnumber"),
        function(GUARD_INVOICE, "billing_guard_invoice"),
        trigger("issued_is_final", CHANGES, "billing_invoice", f"{ROW} billing_guard_invoice()"),
        function(GUARD_LINE, "billing_guard_line"),
        trigger(
            "issued_is_final",
            "BEFORE UPDATE OR DELETE",
            "billing_invoiceline",
            f"{ROW} billing_guard_line()",
        ),
        function(GUARD_NEW_LINES, "billing_guard_new_lines"),
        trigger(
            "issued_gets_no_line",
            "AFTER INSERT",
            "billing_invoiceline",
            "REFERENCING NEW TABLE AS new_lines FOR EACH STATEMENT"
            " EXECUTE FUNCTION billing_guard_new_lines()",
        ),
        function(CHECK_ENTRY, "billing_check_entry"),
        trigger(
            "sums_to_zero",
            "AFTER INSERT",
            "billing_journalentry",
            f"{DEFERRED} billing_check_entry()",
        ),
        trigger(
            "sums_to_zero", "AFTER INSERT", "billing_posting", f"{DEFERRED} billing_check_entry()"
        ),
    ]
