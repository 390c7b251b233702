"""Tells other parts of the service that what an organization owes has changed."""

from __future__ import annotations

from django.dispatch import Signal

# Sent in the transaction of the change, with `organization_id`, after each change but the issue of
# an invoice. A receiver that raises rolls the change back.
receivables_changed = Signal()
