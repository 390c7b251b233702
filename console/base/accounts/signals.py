"""Signals of changes in accounts, so that accounts need not import the packages that act on them.

Receivers run in the transaction of the change and must be quick: they write rows and enqueue tasks.
An error that a receiver raises rolls the change back.
"""

from __future__ import annotations

from django.dispatch import Signal

# An organization was created. Arguments: `actor` (its owner), `from_console` (whether the person
# signed up in the console, and so expects a first cluster with a sample topic).
organization_signed_up = Signal()
# An owner proved to own their e-mail address, so the organization may get public endpoints.
# Arguments: `organization_id`.
organization_verified = Signal()
# The owner of an address took over an organization that somebody else may have made: everything by
# which that person could still use it ends. Arguments: `organization_id`.
organization_taken_over = Signal()
# Billing suspended an organization or made it active again.
# Arguments: `organization_id`, `account_status`.
account_status_changed = Signal()
# What an organization's clusters do with the traffic of clients changed: they refuse it, slow it
# down, or serve it again. Arguments: `organization_id`.
traffic_limit_changed = Signal()
# An owner closed the organization. Arguments: `actor` (the owner, in that organization).
organization_closed = Signal()
# An organization did not pay: its clusters are to be deleted. Arguments: `organization_id`.
organization_clusters_forfeited = Signal()
# It paid after all: those that can be restored are to be. Arguments: `organization_id`.
organization_clusters_redeemed = Signal()
# A project is about to be deleted. A receiver that has rows in it raises an error to refuse.
# Arguments: `project`, whose row is locked.
project_deleting = Signal()
