"""Notes when credentials were last used, from the metered usage of their principals."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db import connection

from console.base.common.tenancy import system_scope

USER = "User:"
# A row that somebody changes at this moment is skipped: the credential's next use is noted anyway.
NOTE = """
WITH used AS (
    SELECT * FROM unnest(%s::text[], %s::text[], %s::timestamptz[]) AS u (cluster_id, id, at)
), found AS (
    SELECT known.id, used.at FROM provisioning_credential AS known
    JOIN used ON used.id = known.id AND used.cluster_id = known.cluster_id
    WHERE known.kafka_user = ''
    UNION ALL
    SELECT known.id, used.at FROM provisioning_credential AS known
    JOIN used ON used.id = known.kafka_user AND used.cluster_id = known.cluster_id
    WHERE known.kafka_user <> ''
), free AS (
    SELECT known.id, found.at FROM provisioning_credential AS known
    JOIN found ON found.id = known.id
    WHERE known.last_used_at IS NULL OR known.last_used_at < found.at
    FOR UPDATE OF known SKIP LOCKED
)
UPDATE provisioning_credential AS known SET last_used_at = free.at
FROM free WHERE known.id = free.id
"""


def note_credential_uses(*, used: Mapping[tuple[str, str], datetime], **_: object) -> int:
    """Notes the minutes that are later than the stored ones; returns how many credentials changed.

    `used` maps (cluster id, principal) to the last minute of use. It receives the signal
    `principals_used`. Principals that are not credentials are ignored.
    """
    rows = [
        (cluster_id, principal.removeprefix(USER), at)
        for (cluster_id, principal), at in used.items()
        if principal.startswith(USER)
    ]
    if not rows:
        return 0
    with system_scope(), connection.cursor() as cursor:
        cursor.execute(NOTE, [list(column) for column in zip(*rows, strict=True)])
        noted: int = cursor.rowcount
    return noted
