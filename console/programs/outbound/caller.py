"""Makes the calls of the worker, and turns whatever comes of them into an outcome."""

from __future__ import annotations

import logging
import time

from prometheus_client import Histogram

from brokers.settings.errors import SettingsError
from console.base.outbound.addresses import parse_networks
from console.base.outbound.calls import CallRules, fetch
from console.base.outbound.errors import CallError
from console.base.outbound.messages import Call, Outcome
from console.programs.outbound.slots import CallSlots
from console.settings.outbound import OutboundConfig

logger = logging.getLogger(__name__)

ANSWERED = "answered"
CALLS = Histogram(
    "freshet_outbound_call_seconds",
    "How long a call to an address of an organization took",
    ("outcome",),
)
FAULT = Outcome(
    code="call_failed", detail="The call failed for a reason of the service's own.", retry=True
)


class Caller:
    """Makes calls by one set of rules, each organization's within its share."""

    def __init__(self, rules: CallRules, slots: CallSlots) -> None:
        self._rules = rules
        self._slots = slots

    def make(self, organization_id: str, call: Call) -> Outcome:
        """Makes a call of an organization; returns what came of it, and raises nothing."""
        began = time.monotonic()
        outcome = self._make(organization_id, call)
        CALLS.labels(outcome.code or ANSWERED).observe(time.monotonic() - began)
        return outcome

    def _make(self, organization_id: str, call: Call) -> Outcome:
        try:
            with self._slots.take(organization_id):
                return Outcome(fetch(call, self._rules))
        except CallError as error:
            return Outcome.of_error(error)
        # Whatever a host brings about: whoever asked for the call must hear of it.
        except Exception:
            logger.exception("outbound.fault organization=%s", organization_id)
            return FAULT


def make_caller(config: OutboundConfig) -> Caller:
    """Returns what makes calls by the settings. Raises `SettingsError`."""
    try:
        refused = parse_networks(config.outbound.refused_networks)
    except ValueError as error:
        name = "outbound.refused_networks"
        message = f"{name}: {error}"
        raise SettingsError(message, name) from error
    rules = CallRules(local=config.local, refused=refused)
    queue = config.queue
    slots = CallSlots(config.outbound.calls_per_organization, queue.counters_url or queue.url)
    return Caller(rules, slots)
