"""What others may do when something happens here, without accounts knowing them.

Receivers run in the transaction of the change and must be quick: they write rows and enqueue tasks.
What they raise takes the change back.
"""

from __future__ import annotations

from django.dispatch import Signal

# A new organisation. Arguments: `actor` (its owner), `from_console` (the person signed up in the
# console and expects a first cluster with a sample topic).
organization_signed_up = Signal()
# An address of one of its owners was verified: it may get public endpoints.
# Arguments: `organization_id`.
organization_verified = Signal()
# Billing suspended it or let it go on. Arguments: `organization_id`, `account_status`.
account_status_changed = Signal()
# Its clusters are to refuse produce, or to take records again. Arguments: `organization_id`.
produce_suspension_changed = Signal()
# Its owner closed it for good. Arguments: `actor` (the owner), whose organisation it is.
organization_closed = Signal()
# A project is to go: who keeps something in it raises. Arguments: `project`, whose row is locked.
project_deleting = Signal()
