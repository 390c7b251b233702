"""Values that columns of limits may have."""

from __future__ import annotations

from django.db import models


class LimitScope(models.TextChoices):
    """What a limit is counted for."""

    ORGANIZATION = "organization", "Organization"
    CLUSTER = "cluster", "Cluster"
    ADDRESS = "address", "Address"


class LimitRequestState(models.TextChoices):
    """How far a request for more is. The last two are final."""

    OPEN = "open", "Open"
    GRANTED = "granted", "Granted"
    REFUSED = "refused", "Refused"
