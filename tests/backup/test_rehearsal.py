"""Restored from backups: what must hold after PostgreSQL and the metadata were lost."""

import tempfile
from pathlib import Path

import pytest

from tests.service.api import Api
from tests.supervisor.run import Run

from . import rehearsal

# Two whole starts, and usage that goes its way twice, on a machine that may be slow.
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
    before = rehearsal.produce(connection, "orders", "before")
    # What an invoice of an open month says depends on the first day that was metered.
    rehearsal.put_to_sleep(api, cluster_id)
    written = rehearsal.stored_bytes(run, cluster_id, {"orders": PARTITIONS})
    rehearsal.wait_metered(api, cluster_id, written)
    first_number = rehearsal.issue_invoice(run, api)
    backup = run.home.parent / "backup"
    back_up(run, backup)

    # Things go on.
    after = rehearsal.produce(connection, "orders", "after")
    api.create_topic(cluster_id, "younger", 1)
    young = rehearsal.produce(connection, "younger", "young")
    lost_number = rehearsal.issue_invoice(run, invoiced)
    rehearsal.suspend(api, cluster_id)
    received = rehearsal.stored_bytes(run, cluster_id, TOPICS)
    rehearsal.wait_metered(api, cluster_id, received)
    used = rehearsal.numbers(run, cluster_id, "orders")
    lose_and_restore(run, backup)

    # The same key, the same credential, and every record that was ever acknowledged.
    rehearsal.wake(api, cluster_id)
    rehearsal.wait_for_orphans(api, cluster_id, 1)
    (orphan,) = rehearsal.orphans(api, cluster_id)
    assert (orphan["name"], orphan["partitions"]) == ("younger", 1)
    rehearsal.read_all(connection, "orders", "all", before | after)
    path = f"/clusters/{cluster_id}/orphaned-topics/{orphan['id']}:attach?validate_only=true"
    assert api.call("POST", path, {})["name"] == "younger"
    assert rehearsal.attach(api, cluster_id, orphan["id"])["name"] == "younger"
    rehearsal.read_all(connection, "younger", "young", young)
    assert rehearsal.orphans(api, cluster_id) == []

    # No number of a broker or a leader twice.
    now = rehearsal.numbers(run, cluster_id, "orders")
    assert max(now.incarnations) > max(used.incarnations)
    assert all(new > old for new, old in zip(now.epochs, used.epochs, strict=True))
    # Nor of an invoice: and the one that was lost comes again, as its reader has it.
    assert rehearsal.invoice_numbers(api) == [first_number]
    third = Api.sign_up(run.address)
    assert rehearsal.issue_invoice(run, third) not in {first_number, lost_number}
    assert rehearsal.issue_invoice(run, invoiced) == lost_number

    # What was metered after the backup is metered again, once; what comes now is added.
    later = rehearsal.produce(connection, "orders", "later")
    rehearsal.suspend(api, cluster_id)
    added = rehearsal.stored_bytes(run, cluster_id, TOPICS)
    assert added > received
    rehearsal.wait_metered(api, cluster_id, added)
    writers = rehearsal.writers(run, cluster_id, "orders", PARTITIONS)
    assert sorted(map(sorted, writers.values())) == [["after"], ["before"], ["later"]]
    assert rehearsal.values(run, cluster_id, "orders") == before | after | later
    for client in (api, invoiced, third):
        client.close()


def back_up(run, backup):
    """While the service runs; nobody else can read what it makes."""
    said = rehearsal.manage(run, "backup", "--to", str(backup))
    assert "is whole" in said
    assert "It holds secret_key" in said
    assert {rehearsal.mode_of(file) for file in backup.iterdir()} == {0o600}
    assert rehearsal.mode_of(backup) == 0o700
    said = rehearsal.manage(run, "backup", "--to", str(backup), status=1)
    assert "name a new folder" in said


def lose_and_restore(run, backup):
    """Everything dies at once, and the machine's own state with it."""
    said = rehearsal.manage(run, "restore", "--from", str(backup), status=1)
    assert "already runs" in said
    run.kill_everything()
    rehearsal.lose_everything_but_storage(run)
    said = rehearsal.manage(run, "restore", "--from", str(backup))
    assert "Restored" in said
    run.up()
