"""Calls of Stripe: the only module that imports `stripe`.

No call is made within a transaction. What a call did is never guessed: it raises `Declined`,
`Refused` or `NotDone` only where Stripe says so, and `OutcomeUnknown` for everything else, such as
a time-out, after which the caller asks again by the same idempotency key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from console.base.common.away import Answering
from console.base.common.conf import config
from console.base.common.json_texts import parse_json
from console.base.common.transactions import current_transaction, outside_transaction

if TYPE_CHECKING:
    import stripe

# Seconds to connect, and to wait for an answer. Stripe itself gives a charge up to 80 s, but what
# takes longer than this is asked again by its key, so nothing is lost.
TIMEOUT_S = (5.0, 30.0)
NETWORK_RETRIES = 2
# How old a webhook's signature may be, by the machine's clock.
TOLERANCE_S = 300
# A customer has few intents, a charge few refunds.
LISTED_MAX = 500
PAGE_SIZE = 100
SERVER = "Stripe"
# Codes of a request that names a card or customer which is not there any more.
_GONE = frozenset({"resource_missing", "payment_method_unexpected_state"})
Result = TypeVar("Result")


class GatewayError(Exception):
    """A call did not do what it was to do. `code` is Stripe's, or empty."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class Declined(GatewayError):
    """The card was declined, or the bank asks for the customer: the intent says what it is now."""

    def __init__(self, message: str, code: str, intent: Intent | None) -> None:
        super().__init__(message, code)
        self.intent = intent


class Refused(GatewayError):
    """Stripe refused the request as such: repeating it is refused too. Nothing was done."""

    @property
    def is_gone(self) -> bool:
        """Whether it names a card or a customer that is not there any more."""
        return self.code in _GONE


class KeyRefused(GatewayError):
    """The key of the API is wrong, expired, or may not do this. Nothing was done."""


class NotDone(GatewayError):
    """Stripe has too much to do. Nothing was done; the same request may work later."""


class OutcomeUnknown(GatewayError):
    """Nobody knows whether it was done. The same request with the same key says so later."""


class SignatureWrong(GatewayError):
    """A webhook is not from Stripe, or is too old."""


@dataclass(frozen=True, slots=True)
class Intent:
    """A PaymentIntent."""

    id: str
    status: str
    amount_minor: int
    received_minor: int
    currency: str
    customer_id: str
    created_at: datetime
    metadata: Mapping[str, str] = field(default_factory=dict)
    error_code: str = ""
    decline_code: str = ""
    error_message: str = ""
    # Where the customer authenticates.
    action_url: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """A payment method that is a card."""

    id: str
    brand: str
    last4: str
    expires_month: int
    expires_year: int
    fingerprint: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Setup:
    """A Checkout session in setup mode. `status`: open, complete or expired."""

    id: str
    url: str
    status: str
    customer_id: str
    # The card that was given; empty before.
    method_id: str


@dataclass(frozen=True, slots=True)
class StripeRefund:
    """A refund. `status`: pending, requires_action, succeeded, failed or canceled."""

    id: str
    status: str
    amount_minor: int
    currency: str
    intent_id: str
    created_at: datetime
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StripeDispute:
    """A dispute. One whose status begins with `warning_` took no money."""

    id: str
    status: str
    amount_minor: int
    currency: str
    intent_id: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Event:
    """What happened, by its ids: the rest is asked for anew."""

    id: str
    type: str
    object_id: str
    created_at: datetime


class Gateway:
    """Stripe's API with one key."""

    def __init__(self, key: str, base: str) -> None:
        import stripe  # noqa: PLC0415 (it takes 0.2 s, and most processes never call Stripe)

        # It would write an id into the home folder, and send it with timings of earlier calls.
        stripe.enable_telemetry = False
        addresses: Any = {"api": base} if base else {}
        self._client = stripe.StripeClient(
            key,
            max_network_retries=NETWORK_RETRIES,
            base_addresses=addresses,
            http_client=stripe.RequestsClient(timeout=TIMEOUT_S),
        )

    # Customers and cards.

    def create_customer(
        self, *, name: str, email: str, metadata: Mapping[str, str], key: str
    ) -> str:
        """Creates a customer; returns its id."""
        params: Any = {"name": name, "metadata": dict(metadata)}
        if email:
            params["email"] = email
        raw = self._ask(lambda: self._client.v1.customers.create(params, _once(key)))
        return str(raw["id"])

    def default_card(self, customer_id: str) -> str:
        """The id of the card that a customer chose as the default; empty where it chose none."""
        customer = self._ask(lambda: self._client.v1.customers.retrieve(customer_id))
        settings = customer.get("invoice_settings") or {}
        return _id_of(settings.get("default_payment_method"))

    def set_default_card(self, customer_id: str, method_id: str) -> None:
        """Has the portal show a card as the default."""
        params: Any = {"invoice_settings": {"default_payment_method": method_id}}
        self._ask(lambda: self._client.v1.customers.update(customer_id, params))

    def cards_of(self, customer_id: str) -> list[Card]:
        """A customer's cards, newest first."""
        params: Any = {"customer": customer_id, "type": "card", "limit": PAGE_SIZE}
        cards = self._list(lambda: self._client.v1.payment_methods.list(params))
        return sorted(map(_card, cards), key=lambda card: card.created_at, reverse=True)

    def customer_of_card(self, method_id: str) -> str:
        """The id of the customer that a card belongs to; empty where it belongs to none."""
        card = self._ask(lambda: self._client.v1.payment_methods.retrieve(method_id))
        return _id_of(card.get("customer"))

    def create_setup(
        self,
        *,
        customer_id: str,
        currency: str,
        success_url: str,
        cancel_url: str,
        metadata: Mapping[str, str],
    ) -> Setup:
        """Begins a Checkout session in which the customer gives a card."""
        params: Any = {
            "mode": "setup",
            "customer": customer_id,
            "currency": currency.lower(),
            "success_url": success_url,
            "cancel_url": cancel_url,
            "allowed_payment_method_types": ["card"],
            "metadata": dict(metadata),
        }
        return _setup(self._ask(lambda: self._client.v1.checkout.sessions.create(params)))

    def setup(self, setup_id: str) -> Setup:
        """A Checkout session as it is now."""
        params: Any = {"expand": ["setup_intent"]}
        return _setup(
            self._ask(lambda: self._client.v1.checkout.sessions.retrieve(setup_id, params))
        )

    def portal_url(self, *, customer_id: str, return_url: str) -> str:
        """The address of a portal in which the customer changes or removes their card."""
        params: Any = {"customer": customer_id, "return_url": return_url}
        portal = self._ask(lambda: self._client.v1.billing_portal.sessions.create(params))
        return str(portal["url"])

    # Charges.

    def create_intent(  # noqa: PLR0913 (what a charge is, by name)
        self,
        *,
        key: str,
        amount_minor: int,
        currency: str,
        customer_id: str,
        method_id: str,
        description: str,
        metadata: Mapping[str, str],
        return_url: str = "",
    ) -> Intent:
        """Charges a card. With a `return_url` the customer is there and may authenticate."""
        params: Any = {
            "amount": amount_minor,
            "currency": currency.lower(),
            "customer": customer_id,
            "payment_method": method_id,
            "allowed_payment_method_types": ["card"],
            "confirm": True,
            "description": description,
            "metadata": dict(metadata),
        }
        if return_url:
            params["return_url"] = return_url
        else:
            params["off_session"] = True
        return _intent(
            self._ask(lambda: self._client.v1.payment_intents.create(params, _once(key)))
        )

    def intent(self, intent_id: str) -> Intent:
        """A PaymentIntent as it is now."""
        return _intent(self._ask(lambda: self._client.v1.payment_intents.retrieve(intent_id)))

    def intent_of(self, attempt_id: str, *, customer_id: str) -> Intent | None:
        """The intent of an attempt, by its metadata; None where there is none.

        It reads the list of the customer's intents, which is current, and not Stripe's search,
        which is some minutes behind.
        """
        params: Any = {"customer": customer_id, "limit": PAGE_SIZE}
        for raw in self._list(lambda: self._client.v1.payment_intents.list(params)):
            intent = _intent(raw)
            if intent.metadata.get("attempt") == attempt_id:
                return intent
        return None

    def cancel_intent(self, intent_id: str) -> Intent:
        """Makes sure that an intent charges nothing from now on; returns it as it is then.

        One that cannot be canceled any more, as it has succeeded meanwhile, is returned as it is.
        """
        try:
            return _intent(self._ask(lambda: self._client.v1.payment_intents.cancel(intent_id)))
        except Refused:
            return self.intent(intent_id)

    def intents_since(self, begins_at: datetime, ends_at: datetime) -> list[Intent]:
        """Every customer's intents that were made in a time."""
        params = _between(begins_at, ends_at)
        raw = self._list(lambda: self._client.v1.payment_intents.list(params), most=None)
        return [_intent(one) for one in raw]

    # Refunds and disputes.

    def create_refund(
        self,
        *,
        key: str,
        intent_id: str,
        amount_minor: int,
        metadata: Mapping[str, str],
    ) -> StripeRefund:
        """Gives back a part of a charge, or all of it."""
        params: Any = {
            "payment_intent": intent_id,
            "amount": amount_minor,
            "metadata": dict(metadata),
        }
        return _refund(self._ask(lambda: self._client.v1.refunds.create(params, _once(key))))

    def refund(self, refund_id: str) -> StripeRefund:
        """A refund as it is now."""
        return _refund(self._ask(lambda: self._client.v1.refunds.retrieve(refund_id)))

    def refunds_of(self, intent_id: str) -> list[StripeRefund]:
        """The refunds of a charge."""
        params: Any = {"payment_intent": intent_id, "limit": PAGE_SIZE}
        return [_refund(one) for one in self._list(lambda: self._client.v1.refunds.list(params))]

    def refunds_since(self, begins_at: datetime, ends_at: datetime) -> list[StripeRefund]:
        """Every customer's refunds that were made in a time."""
        params = _between(begins_at, ends_at)
        raw = self._list(lambda: self._client.v1.refunds.list(params), most=None)
        return [_refund(one) for one in raw]

    def dispute(self, dispute_id: str) -> StripeDispute:
        """A dispute as it is now."""
        return _dispute(self._ask(lambda: self._client.v1.disputes.retrieve(dispute_id)))

    def disputes_since(self, begins_at: datetime, ends_at: datetime) -> list[StripeDispute]:
        """Every customer's disputes that began in a time."""
        params = _between(begins_at, ends_at)
        raw = self._list(lambda: self._client.v1.disputes.list(params), most=None)
        return [_dispute(one) for one in raw]

    # Events.

    def events_since(
        self, begins_at: datetime, ends_at: datetime, *, types: Sequence[str]
    ) -> list[Event]:
        """What happened in a time, of at most 20 types, oldest first. It is kept for 30 days."""
        params: Any = {**_between(begins_at, ends_at), "types": list(types)}
        raw = self._list(lambda: self._client.v1.events.list(params), most=None)
        return sorted(map(_event, raw), key=lambda event: event.created_at)

    def _ask(self, call: Callable[[], Any]) -> dict[str, Any]:
        """Calls Stripe outside of the transaction; returns the object as plain values."""
        with outside_transaction(SERVER), _mapped_errors(), _asking():
            raw: dict[str, Any] = call().to_dict()
            return raw

    def _list(
        self, call: Callable[[], Any], *, most: int | None = LISTED_MAX
    ) -> list[dict[str, Any]]:
        """All objects of a list, page after page; of `most` the first ones."""
        with outside_transaction(SERVER), _mapped_errors(), _asking():
            pages: Iterator[Any] = iter(call().auto_paging_iter())
            return [one.to_dict() for one in islice(pages, most)]


def gateway() -> Gateway:
    """Stripe's API as the settings name it.

    Raises `KeyRefused` where they have no key.
    """
    billing = config().billing
    if not billing.stripe_api_key:
        message = "billing.stripe_api_key is not set"
        raise KeyRefused(message)
    return _gateway(billing.stripe_api_key, billing.stripe_api_base)


def verified_event(body: bytes, signature: str) -> Event:
    """The event of a webhook's body, if one of the secrets signed it and that was not long ago.

    `billing.stripe_webhook_secret` may have several secrets with commas between them, so that a new
    one works before the old one ends. Raises `SignatureWrong`.
    """
    if not is_signed(body, signature):
        message = "no secret signed it, or not just now"
        raise SignatureWrong(message)
    try:
        return _event(parse_json(body))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        message = "it is no event"
        raise SignatureWrong(message) from error


def is_signed(body: bytes, signature: str) -> bool:
    """Whether one of the secrets of `billing.stripe_webhook_secret` signed a webhook's body."""
    secrets = [one.strip() for one in config().billing.stripe_webhook_secret.split(",")]
    return any(_is_signed_by(secret, body, signature) for secret in secrets if secret)


def _is_signed_by(secret: str, body: bytes, signature: str) -> bool:
    import stripe  # noqa: PLC0415 (as in `Gateway`)

    # Signatures are hexadecimal digits. `compare_digest` takes no other text than ASCII.
    if not signature.isascii():
        return False
    try:
        stripe.WebhookSignature.verify_header(body, signature, secret, TOLERANCE_S)
    except (stripe.SignatureVerificationError, ValueError):
        return False
    return True


@lru_cache(maxsize=4)
def _gateway(key: str, base: str) -> Gateway:
    return Gateway(key, base)


@lru_cache(maxsize=1)
def _answers() -> Answering:
    import stripe  # noqa: PLC0415 (as in `Gateway`)

    return Answering(
        "stripe",
        failures=(stripe.APIConnectionError,),
        refusal=lambda: NotDone("Stripe hung a moment ago."),
    )


def _asking() -> Any:  # noqa: ANN401 (a context manager of either kind)
    """Keeps tasks from waiting one after the other for a Stripe that hangs; requests ask always."""
    running = current_transaction()
    return nullcontext() if running is not None and not running.of_task else _answers().asking()


@contextmanager
def _mapped_errors() -> Iterator[None]:
    import stripe  # noqa: PLC0415 (as in `Gateway`)

    try:
        yield
    except stripe.CardError as error:
        raise _declined(error) from error
    except stripe.RateLimitError as error:
        raise NotDone(_text(error), error.code or "") from error
    except (stripe.AuthenticationError, stripe.PermissionError) as error:
        raise KeyRefused(_text(error), error.code or "") from error
    except stripe.InvalidRequestError as error:
        raise Refused(_text(error), error.code or "") from error
    except stripe.StripeError as error:
        # Also the same key with other parameters: it was used, and only a look-up says for what.
        raise OutcomeUnknown(_text(error), error.code or "") from error


def _declined(error: stripe.CardError) -> Declined:
    body: Any = error.json_body or {}
    raw = (body.get("error") or {}).get("payment_intent")
    return Declined(_text(error), error.code or "", _intent(raw) if raw else None)


def _text(error: stripe.StripeError) -> str:
    return str(error.user_message or error)


def _once(key: str) -> Any:  # noqa: ANN401 (a typed dictionary of the library)
    return {"idempotency_key": key}


def _between(begins_at: datetime, ends_at: datetime) -> Any:  # noqa: ANN401 (as `_once`)
    created = {"gte": int(begins_at.timestamp()), "lt": int(ends_at.timestamp())}
    return {"created": created, "limit": PAGE_SIZE}


def _time(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _id_of(value: object) -> str:
    """The id of what is either an id, an expanded object, or nothing."""
    if isinstance(value, Mapping):
        return str(value["id"])
    return str(value or "")


def _intent(raw: Mapping[str, Any]) -> Intent:
    error = raw.get("last_payment_error") or {}
    action = raw.get("next_action") or {}
    redirect = action.get("redirect_to_url") or {}
    return Intent(
        id=raw["id"],
        status=raw["status"],
        amount_minor=raw["amount"],
        received_minor=raw.get("amount_received") or 0,
        currency=raw["currency"].upper(),
        customer_id=_id_of(raw.get("customer")),
        created_at=_time(raw["created"]),
        metadata=dict(raw.get("metadata") or {}),
        error_code=error.get("code") or "",
        decline_code=error.get("decline_code") or "",
        error_message=error.get("message") or "",
        action_url=redirect.get("url") or "",
    )


def _card(raw: Mapping[str, Any]) -> Card:
    card = raw["card"]
    return Card(
        id=raw["id"],
        brand=card.get("brand") or "",
        last4=card.get("last4") or "",
        expires_month=card["exp_month"],
        expires_year=card["exp_year"],
        fingerprint=card.get("fingerprint") or "",
        created_at=_time(raw["created"]),
    )


def _setup(raw: Mapping[str, Any]) -> Setup:
    intent = raw.get("setup_intent")
    method = intent.get("payment_method") if isinstance(intent, Mapping) else None
    return Setup(
        id=raw["id"],
        url=raw.get("url") or "",
        status=raw.get("status") or "",
        customer_id=_id_of(raw.get("customer")),
        method_id=_id_of(method),
    )


def _refund(raw: Mapping[str, Any]) -> StripeRefund:
    return StripeRefund(
        id=raw["id"],
        status=raw.get("status") or "",
        amount_minor=raw["amount"],
        currency=raw["currency"].upper(),
        intent_id=_id_of(raw.get("payment_intent")),
        created_at=_time(raw["created"]),
        metadata=dict(raw.get("metadata") or {}),
    )


def _dispute(raw: Mapping[str, Any]) -> StripeDispute:
    return StripeDispute(
        id=raw["id"],
        status=raw["status"],
        amount_minor=raw["amount"],
        currency=raw["currency"].upper(),
        intent_id=_id_of(raw.get("payment_intent")),
        created_at=_time(raw["created"]),
    )


def _event(raw: Mapping[str, Any]) -> Event:
    about = (raw.get("data") or {}).get("object") or {}
    return Event(
        id=str(raw["id"]),
        type=str(raw["type"]),
        object_id=str(about.get("id") or ""),
        created_at=_time(int(raw["created"])),
    )
