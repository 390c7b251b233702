"""Asks for a call to an address that an organization chose; a worker of its own makes it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from console.base.common.models import OutboxEntry
from console.base.common.outbox import enqueue_task
from console.base.outbound.messages import Call
from console.settings.schedule import OUTBOUND_TASK


def enqueue_call(
    *, organization_id: str, call: Call, reply: str, reference: Mapping[str, str]
) -> OutboxEntry:
    """Stores a call to be made after the surrounding transaction has committed.

    `reply` is the task that takes what came of it, with the arguments `organization_id`, `outcome`
    (`Outcome.from_text` reads it) and those of `reference`, which are ids. A call may be made
    twice, and its reply may be lost: the caller keeps a row of it, and a sweep that gives up or
    asks again. The call is stored and queued as it is, so a header holds a signature and no key.
    """
    return enqueue_task(
        task=OUTBOUND_TASK,
        organization_id=organization_id,
        arguments={
            "organization_id": organization_id,
            "call": call.to_text(),
            "reply": reply,
            "reference": json.dumps(dict(reference)),
        },
    )
