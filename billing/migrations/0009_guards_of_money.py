"""Receivables of what is issued already, and guards of money in PostgreSQL: no more is paid than
there is, number series and pointers are not moved by hand, and no table of money is emptied.

Like those of `0005_guards`, the checks at the commit look at rows of whatever organization.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from billing.guards import (
    guarding_columns_function,
    only_columns_change,
    refuse_changes,
    refuse_emptying,
    refusing_emptying_function,
    take_rights,
)
from billing.receivables.references import reference_of
from console.base.common.clock import now
from console.base.common.conf import config

BATCH = 1000


def open_issued(apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:  # noqa: ANN401
    """Opens a receivable for each issued invoice over more than 0, oldest first.

    Nothing was paid before there were payments: what is open is max(0, total - credit note), so all
    of the total, or nothing where a credit note takes the invoice back. It is due as far from today
    as a new invoice is, so that the upgrade makes nothing overdue; without a collector it is not.
    """
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('freshet.organization', '*', true)")

    def rows_of(model: str) -> Any:  # noqa: ANN401 (a historical model's)
        return apps.get_model("billing", model).objects.using(connection.alias)

    receivables, settlements = apps.get_model("billing", "Receivable"), []
    invoices = rows_of("Invoice").filter(kind="invoice", state="issued", total_minor__gt=0)
    entries = rows_of("JournalEntry").filter(kind="void")
    void = {
        invoice_id: (entry, at)
        for invoice_id, entry, at in entries.values_list(
            "invoice__credits_id", "pk", "invoice__issued_at"
        )
    }
    rows, due = [], _due_on()
    for invoice in invoices.order_by("issued_at", "pk").iterator(chunk_size=BATCH):
        entry, settled_at = void.get(invoice.pk, (None, None))
        rows.append(
            receivables(
                invoice_id=invoice.pk,
                organization_id=invoice.organization_id,
                currency=invoice.currency,
                amount_minor=invoice.total_minor,
                payable_minor=invoice.total_minor,
                open_minor=0 if entry else invoice.total_minor,
                due_on=due,
                reference=reference_of(invoice.number),
                state="void" if entry else "open",
                created_at=invoice.issued_at,
                settled_at=settled_at,
            )
        )
        if entry:
            settlements.append(
                apps.get_model("billing", "Settlement")(
                    organization_id=invoice.organization_id,
                    receivable_id=invoice.pk,
                    kind="credit_note",
                    amount_minor=invoice.total_minor,
                    entry_id=entry,
                    created_at=settled_at,
                )
            )
    rows_of("Receivable").bulk_create(rows, batch_size=BATCH)
    rows_of("Settlement").bulk_create(settlements, batch_size=BATCH)
    with connection.cursor() as cursor:
        # Otherwise the tables cannot be altered below: checks of their foreign keys are pending.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        cursor.execute("SELECT set_config('freshet.organization', '', true)")


def _due_on() -> date | None:
    settings = config().billing
    if settings.collector == "none":
        return None
    return now().date() + timedelta(days=settings.payment_terms_days)


# The row is locked first, so that of two transactions at once the second one counts what the first
# one settled.
CHECK_RECEIVABLE = """
CREATE FUNCTION billing_check_receivable() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    of_invoice text;
    owed billing_receivable;
    known boolean := true;
    settled numeric;
    written_off numeric;
    scope text := current_setting('freshet.organization', true);
BEGIN
    IF TG_TABLE_NAME = 'billing_receivable' THEN
        of_invoice := NEW.invoice_id;
    ELSE
        of_invoice := NEW.receivable_id;
    END IF;
    PERFORM set_config('freshet.organization', '*', true);
    SELECT * INTO owed FROM billing_receivable WHERE invoice_id = of_invoice FOR NO KEY UPDATE;
    SELECT coalesce(sum(amount_minor), 0),
            coalesce(sum(amount_minor) FILTER (WHERE kind <> 'credit_note' AND payment_id IS NULL
                AND credit_id IS NULL AND dispute_id IS NULL), 0)
        INTO settled, written_off
        FROM billing_settlement WHERE receivable_id = of_invoice;
    IF TG_TABLE_NAME = 'billing_receivable' AND TG_OP = 'INSERT' THEN
        SELECT EXISTS (
            SELECT 1 FROM billing_invoice
                WHERE id = of_invoice AND organization_id = owed.organization_id
                    AND kind = 'invoice' AND state = 'issued'
                    AND total_minor = owed.amount_minor AND currency = owed.currency
        ) INTO known;
    END IF;
    PERFORM set_config('freshet.organization', coalesce(scope, ''), true);
    IF NEW.organization_id <> owed.organization_id THEN
        RAISE EXCEPTION 'a settlement is of another organization than its receivable %', of_invoice
            USING ERRCODE = 'check_violation';
    END IF;
    IF NOT known THEN
        RAISE EXCEPTION 'a receivable is over the total of an issued invoice, and % is not',
            of_invoice USING ERRCODE = 'check_violation';
    END IF;
    IF owed.amount_minor - settled <> owed.open_minor THEN
        RAISE EXCEPTION 'of % the amount % is open, and not %', of_invoice,
            owed.amount_minor - settled, owed.open_minor USING ERRCODE = 'check_violation';
    END IF;
    IF written_off <> owed.written_off_minor THEN
        RAISE EXCEPTION 'of % the amount % is written off, and not %', of_invoice, written_off,
            owed.written_off_minor USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$
"""

CHECK_PAYMENT = """
CREATE FUNCTION billing_check_payment() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    of_payment text;
    paid billing_payment;
    settled numeric;
    refunded numeric;
    disputed numeric;
    scope text := current_setting('freshet.organization', true);
BEGIN
    IF TG_TABLE_NAME = 'billing_payment' THEN
        of_payment := NEW.id;
    ELSE
        of_payment := NEW.payment_id;
    END IF;
    IF of_payment IS NULL THEN
        RETURN NULL;
    END IF;
    PERFORM set_config('freshet.organization', '*', true);
    SELECT * INTO paid FROM billing_payment WHERE id = of_payment FOR NO KEY UPDATE;
    SELECT coalesce(sum(amount_minor), 0) INTO settled
        FROM billing_settlement WHERE payment_id = of_payment;
    SELECT coalesce(sum(amount_minor), 0) INTO refunded
        FROM billing_refund WHERE payment_id = of_payment;
    SELECT coalesce(sum(amount_minor), 0) INTO disputed
        FROM billing_dispute WHERE payment_id = of_payment AND state <> 'won';
    PERFORM set_config('freshet.organization', coalesce(scope, ''), true);
    IF NEW.organization_id <> paid.organization_id THEN
        RAISE EXCEPTION 'the payment % is of another organization', of_payment
            USING ERRCODE = 'check_violation';
    END IF;
    IF refunded <> paid.refunded_minor
            OR paid.amount_minor - refunded - disputed - settled <> paid.unapplied_minor THEN
        RAISE EXCEPTION 'the payment % of % pays % and has % unapplied, % refunded, % disputed',
            of_payment, paid.amount_minor, settled, paid.unapplied_minor, refunded, disputed
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$
"""

CHECK_CREDIT = """
CREATE FUNCTION billing_check_credit() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    of_credit text;
    granted billing_credit;
    settled numeric;
    scope text := current_setting('freshet.organization', true);
BEGIN
    IF TG_TABLE_NAME = 'billing_credit' THEN
        of_credit := NEW.id;
    ELSE
        of_credit := NEW.credit_id;
    END IF;
    IF of_credit IS NULL THEN
        RETURN NULL;
    END IF;
    PERFORM set_config('freshet.organization', '*', true);
    SELECT * INTO granted FROM billing_credit WHERE id = of_credit FOR NO KEY UPDATE;
    SELECT coalesce(sum(amount_minor), 0) INTO settled
        FROM billing_settlement WHERE credit_id = of_credit;
    PERFORM set_config('freshet.organization', coalesce(scope, ''), true);
    IF NEW.organization_id <> granted.organization_id
            OR granted.amount_minor - settled <> granted.unapplied_minor THEN
        RAISE EXCEPTION 'the credit % of % pays % and has % unapplied', of_credit,
            granted.amount_minor, settled, granted.unapplied_minor
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$
"""

CHECK_DISPUTE = """
CREATE FUNCTION billing_check_dispute() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    of_dispute text;
    disputed billing_dispute;
    settled numeric;
    scope text := current_setting('freshet.organization', true);
BEGIN
    IF TG_TABLE_NAME = 'billing_dispute' THEN
        of_dispute := NEW.id;
    ELSE
        of_dispute := NEW.dispute_id;
    END IF;
    IF of_dispute IS NULL THEN
        RETURN NULL;
    END IF;
    PERFORM set_config('freshet.organization', '*', true);
    SELECT * INTO disputed FROM billing_dispute WHERE id = of_dispute FOR NO KEY UPDATE;
    SELECT coalesce(sum(amount_minor), 0) INTO settled
        FROM billing_settlement WHERE dispute_id = of_dispute;
    PERFORM set_config('freshet.organization', coalesce(scope, ''), true);
    IF NEW.organization_id <> disputed.organization_id
            OR (disputed.state = 'open' AND disputed.amount_minor - settled
                <> disputed.unapplied_minor)
            OR (disputed.state <> 'open' AND settled <> 0) THEN
        RAISE EXCEPTION 'the dispute % of % settles % and has % unapplied', of_dispute,
            disputed.amount_minor, settled, disputed.unapplied_minor
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$
"""

# The serving role writes blocks, and they move the counter: it is never moved otherwise.
MOVE_SERIES = """
CREATE FUNCTION billing_move_series() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF NEW.first = 1 THEN
        INSERT INTO billing_numberseries (series, last) VALUES (NEW.series_id, 0)
            ON CONFLICT (series) DO NOTHING;
    END IF;
    UPDATE billing_numberseries SET last = NEW.last
        WHERE series = NEW.series_id AND last = NEW.first - 1;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'block % to % does not follow the last number of %', NEW.first, NEW.last,
            NEW.series_id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$
"""

GUARD_SERIES = """
CREATE FUNCTION billing_guard_series() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF pg_trigger_depth() < 2 OR TG_OP = 'DELETE' THEN
        RAISE EXCEPTION '% of a number series is refused: only a block moves it', TG_OP
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$
"""

# A pointer decides which usage is billed.
GUARD_POINTER = """
CREATE FUNCTION billing_guard_pointer() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    later boolean;
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'DELETE of a pointer is refused: a published day stays published'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF TG_OP = 'UPDATE' THEN
        IF (OLD.cell, OLD.day) IS DISTINCT FROM (NEW.cell, NEW.day)
                OR (to_jsonb(OLD) ->> 'early' = 'false' AND to_jsonb(NEW) ->> 'early' = 'true') THEN
            RAISE EXCEPTION 'a pointer is refused: it stays with its day, and a final day is final'
                USING ERRCODE = 'insufficient_privilege';
        END IF;
        IF OLD.run_id = NEW.run_id THEN
            RETURN NEW;
        END IF;
    END IF;
    SELECT TG_OP = 'INSERT' OR run.published_at >= previous.published_at INTO later
        FROM metering_rolluprun run
        LEFT JOIN metering_rolluprun previous
            ON TG_OP = 'UPDATE' AND previous.id = (to_jsonb(OLD) ->> 'run_id')
        WHERE run.id = NEW.run_id AND run.cell = NEW.cell AND run.day = NEW.day
            AND run.state = 'published';
    IF later IS NOT TRUE THEN
        RAISE EXCEPTION 'a pointer is refused: it moves only to a later run of its day'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$
"""

GUARDED = (
    *("billing_invoice", "billing_invoiceline", "billing_invoicedocument", "billing_usagebasis"),
    *("billing_journalentry", "billing_posting", "billing_receivable", "billing_payment"),
    *("billing_credit", "billing_refund", "billing_dispute", "billing_settlement"),
    *("billing_numberseries", "billing_numberblock", "billing_lostnumber"),
    *("billing_price", "billing_priceversion"),
    *("metering_rolluppointer", "metering_rolluprun", "metering_usagerow"),
)
ROW = "FOR EACH ROW EXECUTE FUNCTION"
DEFERRED = f"DEFERRABLE INITIALLY DEFERRED {ROW}"


def trigger(name: str, when: str, table: str, function: str) -> migrations.RunSQL:
    kind = "CONSTRAINT TRIGGER" if "DEFERRED" in function else "TRIGGER"
    return migrations.RunSQL(
        sql=f"CREATE {kind} {name} {when} ON {table} {function}",
        reverse_sql=f"DROP TRIGGER {name} ON {table}",
    )


def function(text: str, name: str) -> migrations.RunSQL:
    return migrations.RunSQL(sql=text, reverse_sql=f"DROP FUNCTION {name}()")


def checked(name: str, text: str, *tables: str) -> list[migrations.RunSQL]:
    """The function of a check, and what calls it at the commit: changes and settlements."""
    end = name.removeprefix("billing_check_")
    calls = f"{DEFERRED} {name}()"
    return [
        function(text, name),
        *(trigger(f"{end}_adds_up", "AFTER INSERT OR UPDATE", table, calls) for table in tables),
        trigger(f"{end}_adds_up", "AFTER INSERT", "billing_settlement", calls),
    ]


class Migration(migrations.Migration):
    """Rows, one constraint, and triggers."""

    dependencies = [
        ("billing", "0008_receivables"),
        ("metering", "0006_judged_hours"),
    ]
    operations = [
        migrations.RunPython(open_issued, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name="invoiceline",
            constraint=models.UniqueConstraint(
                condition=models.Q(("kind", "usage")),
                fields=("invoice", "cluster_id", "meter", "unit_price"),
                name="one_line_a_cluster_meter_and_price",
            ),
        ),
        refusing_emptying_function(),
        *(refuse_emptying(table) for table in GUARDED),
        guarding_columns_function(),
        only_columns_change(
            "billing_receivable",
            *("payable_minor", "open_minor", "written_off_minor", "due_on", "state", "settled_at"),
        ),
        only_columns_change("billing_payment", "unapplied_minor", "refunded_minor"),
        only_columns_change("billing_credit", "unapplied_minor"),
        only_columns_change("billing_dispute", "unapplied_minor", "state", "closed_at"),
        only_columns_change("billing_numberblock", "confirmed_at"),
        refuse_changes("billing_refund"),
        refuse_changes("billing_settlement"),
        *checked("billing_check_receivable", CHECK_RECEIVABLE, "billing_receivable"),
        *checked("billing_check_payment", CHECK_PAYMENT, "billing_payment", "billing_dispute"),
        *checked("billing_check_credit", CHECK_CREDIT, "billing_credit"),
        *checked("billing_check_dispute", CHECK_DISPUTE, "billing_dispute"),
        trigger(
            "payment_adds_up",
            "AFTER INSERT",
            "billing_refund",
            f"{DEFERRED} billing_check_payment()",
        ),
        function(MOVE_SERIES, "billing_move_series"),
        trigger(
            "moves_its_series",
            "BEFORE INSERT",
            "billing_numberblock",
            f"{ROW} billing_move_series()",
        ),
        function(GUARD_SERIES, "billing_guard_series"),
        trigger(
            "only_blocks_move_it",
            "BEFORE INSERT OR UPDATE OR DELETE",
            "billing_numberseries",
            f"{ROW} billing_guard_series()",
        ),
        take_rights("billing_numberseries", "INSERT, UPDATE, DELETE"),
        function(GUARD_POINTER, "billing_guard_pointer"),
        trigger(
            "only_moves_on",
            "BEFORE INSERT OR UPDATE OR DELETE",
            "metering_rolluppointer",
            f"{ROW} billing_guard_pointer()",
        ),
        take_rights("metering_rolluppointer", "DELETE"),
    ]
