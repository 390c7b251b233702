"""Two transactions at once: one of them waits for the other, and sees what it did."""

import threading
from functools import partial

import pytest
from django.db import connection, connections, transaction

from billing.errors import NothingOpen, RefundTooLarge
from billing.models import Payment, Settlement
from billing.receivables import services
from console.base.common.tenancy import organization_scope
from tests.billing.receivables import ledgers
from tests.billing.receivables.test_credits import write_off
from tests.billing.receivables.test_payments import pay
from tests.billing.receivables.test_refunds import refund

pytestmark = pytest.mark.django_db(transaction=True)
WAITS_S = 20
# Not from `pg_stat_activity`, which stays the same within a transaction.
BLOCKED = (
    "SELECT EXISTS (SELECT FROM pg_locks"
    " WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid)))"
)


def is_blocked():
    """Whether another transaction waits for a lock of this one."""
    with connection.cursor() as cursor:
        cursor.execute(BLOCKED)
        return cursor.fetchone()[0]


def run_behind(first, second):
    """Calls `first`; with its transaction still open calls `second` in a thread, and commits the
    first once the second one waits for it. Returns the outcome of the second: a result, or an
    error."""
    outcome = []

    def run():
        try:
            outcome.append(second())
        except Exception as error:
            outcome.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    with transaction.atomic():
        first()
        thread.start()
        deadline = threading.Event()
        for _ in range(WAITS_S * 100):
            if is_blocked():
                break
            assert not outcome, f"it did not wait: {outcome}"
            deadline.wait(0.01)
        else:
            pytest.fail("it never waited")
    thread.join(timeout=WAITS_S)
    assert not thread.is_alive()
    return outcome[0]


def test_a_payment_behind_a_write_off_is_for_a_written_off_invoice(owner):
    invoice = ledgers.issue_amount(owner, 100)
    payment = run_behind(
        lambda: write_off(owner, invoice), lambda: pay(owner, 60, invoices=[invoice])
    )
    assert payment.unapplied_minor == 0
    assert ledgers.states(owner) == {invoice: (0, "uncollectible")}
    assert ledgers.accounts(owner) == {"bank": 60, "bad_debt": 40, "revenue": -100}
    ledgers.require_ledger_agrees(owner)


def test_a_write_off_behind_a_payment_writes_off_the_rest(owner):
    invoice = ledgers.issue_amount(owner, 100)
    row = run_behind(lambda: pay(owner, 60), lambda: write_off(owner, invoice))
    assert (row.open_minor, row.written_off_minor) == (0, 40)
    ledgers.require_ledger_agrees(owner)


def test_nothing_is_written_off_behind_the_whole_payment(owner):
    invoice = ledgers.issue_amount(owner, 100)
    outcome = run_behind(lambda: pay(owner, 100), lambda: write_off(owner, invoice))
    assert isinstance(outcome, NothingOpen)
    assert ledgers.states(owner) == {invoice: (0, "paid")}


def test_two_payments_of_one_invoice_pay_it_once(owner):
    invoice = ledgers.issue_amount(owner, 100)
    second = run_behind(
        lambda: pay(owner, 100, invoices=[invoice]),
        lambda: pay(owner, 100, "bank-2", invoices=[invoice], method="card"),
    )
    assert second.unapplied_minor == 100
    assert ledgers.accounts(owner) == {
        "bank": 100,
        "card_clearing": 100,
        "customer_credit": -100,
        "revenue": -100,
    }


def test_one_payment_entered_twice_at_once_is_one(owner):
    invoice = ledgers.issue_amount(owner, 100)
    results = []
    second = run_behind(lambda: results.append(pay(owner, 60)), lambda: pay(owner, 60))
    assert second.pk == results[0].pk
    assert ledgers.states(owner) == {invoice: (40, "open")}
    with organization_scope(owner):
        assert Payment.objects.count() == Settlement.objects.count() == 1


def test_two_refunds_give_back_what_there_is(owner):
    payment = pay(owner, 100)
    outcome = run_behind(
        lambda: refund(owner, payment, 60), lambda: refund(owner, payment, 60, "back-2")
    )
    assert isinstance(outcome, RefundTooLarge)
    assert ledgers.accounts(owner) == {"bank": 40, "customer_credit": -40}


def test_an_invoice_issued_behind_a_payment_uses_it(owner):
    results = []

    def issue():
        results.append(ledgers.issue_amount(owner, 100))

    outcome = run_behind(lambda: pay(owner, 70), issue)
    assert outcome is None
    assert ledgers.states(owner) == {results[0]: (30, "open")}
    assert ledgers.credit_of(owner) == 0


def test_a_credit_note_behind_a_payment_makes_credit_of_it(owner):
    invoice = ledgers.issue_amount(owner, 100)
    outcome = run_behind(lambda: pay(owner, 70), lambda: ledgers.void(invoice))
    assert isinstance(outcome, str)
    assert ledgers.states(owner) == {invoice: (0, "void")}
    assert ledgers.accounts(owner) == {"bank": 70, "customer_credit": -70}
    ledgers.require_ledger_agrees(owner)


def test_many_at_once_agree_in_the_end(owner):
    """Payments, credits, refunds and write-offs of one organization by eight threads."""
    invoices = [ledgers.issue_amount(owner, 50, ledgers.month_number(n)) for n in range(4)]
    base = pay(owner, 20)
    calls = [partial(pay, owner, 10 + n, f"many-{n}", invoices=[invoices[n % 4]]) for n in range(8)]
    calls += [partial(refund, owner, base, 5, f"back-{n}") for n in range(4)]
    calls += [partial(write_off, owner, invoice) for invoice in invoices]
    barrier, errors = threading.Barrier(8), []

    def run(part):
        try:
            barrier.wait(timeout=WAITS_S)
            for call in part:
                try:
                    call()
                except NothingOpen:
                    continue
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(calls[n::8],)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=WAITS_S)
    assert errors == []
    ledgers.require_ledger_agrees(owner)
    with organization_scope(owner):
        balance = services.balance_of(owner, currency="USD")
    assert not (balance.open_minor and balance.credit_minor)
    assert ledgers.accounts(owner)["bank"] == sum(10 + n for n in range(8))
