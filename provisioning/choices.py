"""Values that columns of provisioning may have."""

from __future__ import annotations

from django.db import models


class Intent(models.TextChoices):
    """What is wanted of a cluster."""

    ACTIVE = "active", "Active"
    # Restorable; its brokers are gone.
    DELETED = "deleted", "Deleted"
    # Nothing is left of it but the row.
    PURGED = "purged", "Purged"


class SampleData(models.TextChoices):
    """Whether a cluster gets a topic with records to look at."""

    NONE = "none", "None"
    WANTED = "wanted", "Wanted"
    DONE = "done", "Done"


class OperationType(models.TextChoices):
    """What an operation does."""

    CREATE_CLUSTER = "create_cluster", "Create cluster"
    DELETE_CLUSTER = "delete_cluster", "Delete cluster"
    UNDELETE_CLUSTER = "undelete_cluster", "Undelete cluster"
    WAKE_CLUSTER = "wake_cluster", "Wake cluster"
    SLEEP_CLUSTER = "sleep_cluster", "Sleep cluster"
    SUSPEND_CLUSTER = "suspend_cluster", "Suspend cluster"
    RESUME_CLUSTER = "resume_cluster", "Resume cluster"


class OperationState(models.TextChoices):
    """How far an operation is. The last three are final."""

    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


UNFINISHED = (OperationState.QUEUED.value, OperationState.RUNNING.value)


class CredentialRole(models.TextChoices):
    """What a credential may do, as a template of ACLs."""

    FULL = "full", "Full"
    PRODUCER = "producer", "Producer"
    CONSUMER = "consumer", "Consumer"
    NONE = "none", "None"


class Mechanism(models.TextChoices):
    """How a credential's password is checked. PLAIN is checked against either."""

    SCRAM_SHA_512 = "SCRAM-SHA-512", "SCRAM-SHA-512"
    SCRAM_SHA_256 = "SCRAM-SHA-256", "SCRAM-SHA-256"


class Phase(models.TextChoices):
    """What people are shown of a cluster's state."""

    PROVISIONING = "provisioning", "Provisioning"
    RUNNING = "running", "Running"
    ASLEEP = "asleep", "Asleep"
    SUSPENDED = "suspended", "Suspended"
    DELETING = "deleting", "Deleting"
    DELETED = "deleted", "Deleted"
    FAILED = "failed", "Failed"
    UNKNOWN = "unknown", "Unknown"
