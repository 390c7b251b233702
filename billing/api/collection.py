"""Endpoints of payments: the card, paying now, what was paid and is owed; and Stripe's webhook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

from django.db.models import Prefetch
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from billing.allowances.payers import payer_of
from billing.allowances.refusals import refusal_of_card
from billing.api import collection_examples as examples
from billing.api import collection_serializers as shapes
from billing.choices import DunningStage
from billing.collection.advances import advance_asked, pay_in_advance
from billing.collection.cards import begin_setup, card_of, open_portal
from billing.collection.collecting import pay_invoice
from billing.collection.common import takes_cards
from billing.collection.dunning import what_follows
from billing.collection.errors import CollectorOff
from billing.collection.events import receive_event
from billing.collection.gateway import GatewayError, SignatureWrong, is_signed
from billing.models import (
    Dunning,
    Invoice,
    Payment,
    PriceVersion,
    Settlement,
    UnpaidInvoice,
)
from billing.periods import month_of
from billing.receivables.services import balance_of
from console.base.common.actor import Permission
from console.base.common.api.permissions import Anyone
from console.base.common.api.views import ApiView, ListAction
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.errors import BodyTooLarge, NotFound, Unavailable, UserError

# Stripe's events have a few kilobytes.
EVENT_BYTES_MAX = 256 * 1024
SIGNATURE = "Stripe-Signature"


class PaymentMethodView(ApiView):
    """How the organization pays."""

    permissions_required = {"GET": Permission.BILLING}
    serializer_class = shapes.PaymentMethodSerializer
    examples = {"GET": examples.PAYMENT_METHOD}

    @extend_schema(operation_id="payment_method_retrieve")
    def get(self, request: Request) -> Response:
        """The card that invoices are charged to, as Stripe last said."""
        account = card_of(self.organization_id)
        card = account if account is not None and account.method_id else None
        waits = card is not None and takes_cards() and payer_of(self.organization_id) is None
        return self.answer(
            {
                "collector": config().billing.collector,
                "card": card,
                "can_manage": bool(account and account.customer_id and takes_cards()),
                "refusal": (refusal_of_card(card) if card is not None and waits else None) or "",
                "advance_minor": None if card is None else advance_asked(card),
                "currency": PriceVersion.objects.in_force(month_of(now())).currency,
            }
        )


class PaymentMethodSetupView(ApiView):
    """A page of Stripe on which a card is given."""

    for_closed = ("POST",)
    permissions_required = {"POST": Permission.BILLING}
    serializer_class = shapes.RedirectSerializer
    examples = {"POST": examples.REDIRECT}
    # Each has a page of its own, which can be used once.
    idempotent: ClassVar[bool] = False

    @extend_schema(operation_id="payment_method_setup")
    def post(self, request: Request) -> Response:
        """Opens the page. Afterwards what is unpaid is charged to the new card."""
        _require_cards()
        with _stripe_asked():
            url = begin_setup(organization_id=self.organization_id)
        return self.answer({"url": url})


class PaymentMethodPortalView(ApiView):
    """A page of Stripe on which the card is changed or removed."""

    for_closed = ("POST",)
    permissions_required = {"POST": Permission.BILLING}
    serializer_class = shapes.RedirectSerializer
    examples = {"POST": examples.REDIRECT}
    idempotent: ClassVar[bool] = False

    @extend_schema(operation_id="payment_method_portal")
    def post(self, request: Request) -> Response:
        """Opens the page; 409 `no_payment_method` where no card was ever given."""
        _require_cards()
        with _stripe_asked():
            url = open_portal(organization_id=self.organization_id)
        return self.answer({"url": url})


class PaymentMethodAdvanceView(ApiView):
    """Paying in advance."""

    permissions_required = {"POST": Permission.BILLING}
    serializer_class = shapes.PaymentAttemptSerializer
    examples = {"POST": examples.ADVANCE}

    @extend_schema(operation_id="payment_method_advance", request=None)
    def post(self, request: Request) -> Response:
        """Charges the card with what was used so far, which then pays the next invoice.

        A card that has paid too little so far for what is used with it is charged in advance by
        itself; this is for one with which that failed, or whose bank asks the customer. The answer
        has the `url` of a page for that. 409 `nothing_open` while an invoice is to be paid first.
        """
        with _stripe_asked():
            attempt = pay_in_advance(actor=self.actor)
        return self.answer(attempt)


class InvoicePayView(ApiView):
    """Paying an invoice now."""

    for_closed = ("POST",)
    permissions_required = {"POST": Permission.BILLING}
    serializer_class = shapes.PaymentAttemptSerializer
    input_serializers = {"POST": shapes.PayInputSerializer}
    optional_bodies = ("POST",)
    examples = {"POST": examples.PAY}

    @extend_schema(operation_id="invoices_pay")
    def post(self, request: Request, id: str) -> Response:  # noqa: A002 (as in the path)
        """Charges the card with what is open of the invoice, and returns what became of it.

        Where the bank asks the customer to authenticate, the answer has the `url` of a page for it,
        which leads back to the invoice. A repeated request continues the same payment.
        """
        data = self.validated_input()
        ours = Invoice.objects.for_organization(self.organization_id).invoices().published()
        if not ours.filter(pk=id).exists():
            raise NotFound
        with _stripe_asked():
            attempt = pay_invoice(actor=self.actor, invoice_id=id, with_older=data["with_older"])
        return self.answer(attempt)


class PaymentViewSet(ListAction):
    """Money that came in, with the invoices that it paid."""

    queryset = Payment.objects.prefetch_related(
        Prefetch("settlements", Settlement.objects.select_related("receivable__invoice"))
    )
    serializer_class = shapes.PaymentSerializer
    permissions_required = {"list": Permission.BILLING}
    examples = examples.PAYMENTS


class AccountView(ApiView):
    """What the organization owes, and what happens next."""

    permissions_required = {"GET": Permission.BELONG}
    serializer_class = shapes.AccountSerializer
    examples = {"GET": examples.ACCOUNT}

    @extend_schema(operation_id="account_retrieve")
    def get(self, request: Request) -> Response:
        """Whether something is unpaid, since when, and what follows when.

        Everybody of the organization may see it, also with roles in projects alone: clusters are
        suspended because of it. Amounts and invoices are for those with a role in the organization;
        the others get null and none.
        """
        organization_id = self.organization_id
        sees_money = self.actor.may(Permission.READ)
        dunning = Dunning.objects.filter(pk=organization_id).select_related("announcement").first()
        rows = UnpaidInvoice.objects.filter(organization_id=organization_id, ended_at=None)
        unpaid = list(
            rows.exclude(since=None).select_related("invoice__receivable").order_by("since", "pk")
        )
        balance = balance_of(organization_id)
        follows = what_follows(dunning)
        step = {"stage": follows.stage, "at": follows.at} if follows.stage else None
        return self.answer(
            {
                "collector": config().billing.collector,
                "stage": dunning.stage if dunning else DunningStage.PAID.value,
                "currency": balance.currency,
                "open_minor": balance.open_minor if sees_money else None,
                "unpaid_minor": _open_of(unpaid) if sees_money else None,
                "credit_minor": balance.credit_minor if sees_money else None,
                "unpaid_since": unpaid[0].since if unpaid else None,
                "unpaid_invoice_ids": [row.pk for row in unpaid] if sees_money else [],
                "failure": unpaid[0].failure if unpaid else "",
                "next_step": step,
                "next_charge_at": follows.tries_at,
            }
        )


def _open_of(unpaid: Sequence[UnpaidInvoice]) -> int:
    return sum(row.invoice.receivable.open_minor for row in unpaid)


class StripeWebhookView(ApiView):
    """`POST /api/v1/webhooks/stripe`: for Stripe alone, and not in OpenAPI.

    What Stripe signed is stored by its id and answered at once; a worker asks Stripe for the rest.
    """

    schema = None
    authentication_classes = ()
    permission_classes = (Anyone,)
    serializer_class = None
    raw_bodies = True
    idempotent: ClassVar[bool] = False

    def post(self, request: Request) -> Response:
        """Takes an event. 400 for what Stripe did not sign, or not just now."""
        body = request._request.body
        if len(body) > EVENT_BYTES_MAX:
            raise BodyTooLarge
        try:
            receive_event(body=body, signature=self._signature())
        except SignatureWrong as error:
            detail = f"It is no webhook that Stripe signed: {error}."
            raise UserError(detail) from error
        return Response({})

    def is_counted(self) -> bool:
        """Stripe's own events count against no address, so that others cannot use its limit up."""
        body = self.request._request.body
        return len(body) > EVENT_BYTES_MAX or not is_signed(body, self._signature())

    def _signature(self) -> str:
        signature: str = self.request.headers.get(SIGNATURE, "")
        return signature


def _require_cards() -> None:
    if not takes_cards():
        raise CollectorOff


@contextmanager
def _stripe_asked() -> Iterator[None]:
    """Has the caller try again later where Stripe cannot be asked."""
    try:
        yield
    except GatewayError as error:
        message = "The payment service does not answer."
        raise Unavailable(message) from error
