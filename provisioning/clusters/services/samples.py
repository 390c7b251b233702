"""The newest sample of a cluster, which `sample_ingest` keeps.

While a cluster runs it is at most some 35 seconds old, and of a cluster that sleeps it is the last.
"""

from __future__ import annotations

import json

from provisioning.cell.sample_files import TakenSample
from provisioning.models import ClusterSample, SampleHour, SampleMinute


def newest_sample(*, organization_id: str, cluster_id: str) -> TakenSample | None:
    """The newest sample of an organization's cluster; None where there is none.

    It is read in the caller's tenancy scope.
    """
    rows = ClusterSample.objects.filter(organization_id=organization_id, pk=cluster_id)
    row = rows.only("pk", "taken_at_ms", "content").first()
    if row is None:
        return None
    return TakenSample(row.pk, row.taken_at_ms, json.loads(row.content))


def remove_samples(*, cluster_id: str) -> None:
    """Removes all samples of a cluster that is purged."""
    for model in (ClusterSample, SampleMinute, SampleHour):
        model.objects.filter(cluster_id=cluster_id).delete()
