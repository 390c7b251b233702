"""When principals of clusters last moved records. Who meters tells; who keeps credentials listens.

Neither knows the other.
"""

from __future__ import annotations

from django.dispatch import Signal

# After the commit of what was metered; lost where the process ends just then: the next use tells
# anew. Arguments: `used`, a mapping of cluster id and principal to the minute (its beginning).
principals_used = Signal()
