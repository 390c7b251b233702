"""Restored from backups: what must hold after PostgreSQL and the metadata were lost."""

import tempfile
from pathlib import Path

import pytest

from tests.service.api import Api
from tests.supervisor.run import Run

from . import rehearsal

# It starts the service twice and waits for usage twice, on a machine that may be slow.
pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]
PARTITIONS = 3
TOPICS = {"orders": PARTITIONS, "younger": 1}
FAST = {"FRESHET_USAGE_AGENT_PERIOD_S": "1"}


@pytest.fixture
def run():
    """A service that is not up yet, stopped at the end whatever happens."""
    # Not below pytest's own folder: see tests/supervisor/conftest.py.
    with tempfile.TemporaryDirectory(prefix="freshet-test-", ignore_cleanup_errors=True) as folder:
        run = Run(Path(folder) / "home", extra=FAST)
        try:
            yield run
        finally:
            if run.started:
                run.kill_everything()


def test_a_restore_loses_nothing_and_uses_nothing_twice(run):
    run.up()
    api, invoiced = Api.sign_up(run.address), Api.sign_up(run.address)
    cluster_id = api.create_cluster("first")
    api.create_topic(cluster_id, "orders", PARTITIONS)
    connection = api.connect(cluster_id)
    before = rehearsal.produce_records(connection, "orders", "before")
    # What an invoice of an open month says depends on the first day that was metered.
    rehearsal.put_cluster_to_sleep(api, cluster_id)
    written = rehearsal.stored_bytes(run, cluster_id, {"orders": PARTITIONS})
    rehearsal.wait_metered(api, cluster_id, written)
    first_number = rehearsal.issue_invoice(run, api)
    backup = run.home.parent / "backup"
    back_up(run, backup)

    # The service goes on after the backup.
    after = rehearsal.produce_records(connection, "orders", "after")
    api.create_topic(cluster_id, "younger", 1)
    young = rehearsal.produce_records(connection, "younger", "young")
    lost_number = rehearsal.issue_invoice(run, invoiced)
    rehearsal.suspend_cluster(api, cluster_id)
    received = rehearsal.stored_bytes(run, cluster_id, TOPICS)
    rehearsal.wait_metered(api, cluster_id, received)
    used = rehearsal.used_numbers(run, cluster_id, "orders")
    lose_and_restore(run, backup)

    # The same API key and credential work, and every acknowledged record is there.
    rehearsal.wake_cluster(api, cluster_id)
    rehearsal.wait_for_orphans(api, cluster_id, 1)
    (orphan,) = rehearsal.orphaned_topics(api, cluster_id)
    assert (orphan["name"], orphan["partitions"]) == ("younger", 1)
    rehearsal.read_all(connection, "orders", "all", before | after)
    path = f"/clusters/{cluster_id}/orphaned-topics/{orphan['id']}:attach?validate_only=true"
    assert api.call("POST", path, {})["name"] == "younger"
    assert rehearsal.attach_topic(api, cluster_id, orphan["id"])["name"] == "younger"
    rehearsal.read_all(connection, "younger", "young", young)
    assert rehearsal.orphaned_topics(api, cluster_id) == []

    # No incarnation and no leader epoch is used twice.
    now = rehearsal.used_numbers(run, cluster_id, "orders")
    assert max(now.incarnations) > max(used.incarnations)
    assert all(new > old for new, old in zip(now.epochs, used.epochs, strict=True))
    # Nor is an invoice number: and the lost invoice gets the number again that its reader knows.
    assert rehearsal.invoice_numbers(api) == [first_number]
    third = Api.sign_up(run.address)
    assert rehearsal.issue_invoice(run, third) not in {first_number, lost_number}
    assert rehearsal.issue_invoice(run, invoiced) == lost_number

    # Usage after the backup is metered again, once, and new usage is added to it.
    later = rehearsal.produce_records(connection, "orders", "later")
    rehearsal.suspend_cluster(api, cluster_id)
    added = rehearsal.stored_bytes(run, cluster_id, TOPICS)
    assert added > received
    rehearsal.wait_metered(api, cluster_id, added)
    writers = rehearsal.writers_of(run, cluster_id, "orders", PARTITIONS)
    assert sorted(map(sorted, writers.values())) == [["after"], ["before"], ["later"]]
    assert rehearsal.values_of(run, cluster_id, "orders") == before | after | later
    for client in (api, invoiced, third):
        client.close()


def back_up(run, backup):
    """Makes a backup while the service runs; checks that only its owner can read it."""
    said = rehearsal.run_manage(run, "backup", "--to", str(backup))
    assert "is complete" in said
    assert "It holds secret_key" in said
    assert {rehearsal.mode_of(file) for file in backup.iterdir()} == {0o600}
    assert rehearsal.mode_of(backup) == 0o700
    said = rehearsal.run_manage(run, "backup", "--to", str(backup), status=1)
    assert "name a new folder" in said


def lose_and_restore(run, backup):
    """Kills the service, deletes all but storage, restores the backup and starts again."""
    said = rehearsal.run_manage(run, "restore", "--from", str(backup), status=1)
    assert "already runs" in said
    run.kill_everything()
    rehearsal.lose_everything_but_storage(run)
    said = rehearsal.run_manage(run, "restore", "--from", str(backup))
    assert "Restored" in said
    run.up()
