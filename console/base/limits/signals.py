"""The signal of a granted limit, so that this package need not import those that act on it."""

from __future__ import annotations

from django.dispatch import Signal

# A limit was granted. Arguments: `organization_id`, `cluster_id` (empty: all of its clusters),
# `name`. Receivers run in the transaction of the change.
limit_granted = Signal()
