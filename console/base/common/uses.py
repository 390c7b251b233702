"""A signal that says when principals of clusters last moved records.

Metering sends it, and the package with Kafka credentials receives it; neither imports the other.
"""

from __future__ import annotations

from django.dispatch import Signal

# Sent after metered usage has committed. It is lost if the process ends just then; the next use
# sends it again. Arguments: `used`, a mapping from cluster id and principal to the beginning of the
# minute of the last use.
principals_used = Signal()
