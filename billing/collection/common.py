"""What the parts of collection share: names of tasks, the page to pay at, pauses."""

from __future__ import annotations

from datetime import timedelta

from console.base.common.conf import config

COLLECT = "billing.collect_organization"
SEND_ATTEMPT = "billing.send_attempt"
SEND_REFUND = "billing.send_refund"
HANDLE_EVENT = "billing.handle_stripe_event"
SEND_NOTICE = "billing.send_dunning_mail"
BY = "freshet"
# The page of the console that shows what is owed, and where it is paid.
PAGE = "/billing"

STRIPE, TRANSFER = "stripe", "transfer"
# After a call that said nothing the next one waits for this long, and twice as long each time.
ASK_AGAIN_AFTER = timedelta(seconds=30)
ASK_AGAIN_AFTER_MAX = timedelta(hours=1)


def takes_cards() -> bool:
    """Whether invoices are charged to cards."""
    return config().billing.collector == STRIPE


def wait_after(calls: int) -> timedelta:
    """How long to wait after so many calls of which none said what became of it."""
    doublings = min(max(calls, 1) - 1, 16)
    return min(ASK_AGAIN_AFTER * (1 << doublings), ASK_AGAIN_AFTER_MAX)
