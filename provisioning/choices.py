"""The values that columns of provisioning's tables may have."""

from __future__ import annotations

from django.db import models


class Intent(models.TextChoices):
    """Whether a cluster is to exist."""

    ACTIVE = "active", "Active"
    # It has no brokers and can be restored.
    DELETED = "deleted", "Deleted"
    # Its data is being removed: it cannot be restored any more.
    PURGING = "purging", "Purging"
    # Only its row is left.
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
    """The state of an operation. The last three are final."""

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
    """The SCRAM mechanism that a credential's settings for clients name.

    The metadata store holds the keys for both, and a client may use either, or PLAIN.
    """

    SCRAM_SHA_512 = "SCRAM-SHA-512", "SCRAM-SHA-512"
    SCRAM_SHA_256 = "SCRAM-SHA-256", "SCRAM-SHA-256"


class BrokerPhase(models.TextChoices):
    """What a cluster's broker does, as people are shown it."""

    SERVING = "serving", "Serving"
    # It is started, for the first time or anew.
    STARTING = "starting", "Starting"
    STOPPED = "stopped", "Stopped"


class Phase(models.TextChoices):
    """The state of a cluster that people are shown."""

    PROVISIONING = "provisioning", "Provisioning"
    RUNNING = "running", "Running"
    ASLEEP = "asleep", "Asleep"
    SUSPENDED = "suspended", "Suspended"
    DELETING = "deleting", "Deleting"
    DELETED = "deleted", "Deleted"
    FAILED = "failed", "Failed"
    UNKNOWN = "unknown", "Unknown"


class SampleFileState(models.TextChoices):
    """Whether a file of samples could be read."""

    INGESTED = "ingested"
    DAMAGED = "damaged"
