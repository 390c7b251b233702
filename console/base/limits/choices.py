"""Values that columns of limits may have."""

from __future__ import annotations

from django.db import models


class LimitScope(models.TextChoices):
    """What a limit is counted for."""

    ORGANIZATION = "organization", "Organization"
    CLUSTER = "cluster", "Cluster"
    ADDRESS = "address", "Address"


class LimitRequestState(models.TextChoices):
    """The state of a limit request. Granted and refused are final."""

    OPEN = "open", "Open"
    GRANTED = "granted", "Granted"
    REFUSED = "refused", "Refused"
