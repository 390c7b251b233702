"""When credentials were last used: it follows the metered usage and never goes back."""

from datetime import UTC, datetime, timedelta

from provisioning.administration.services.credential_use import note_credential_uses

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def test_a_credential_says_when_it_was_last_used(api, credentials, cluster_id):
    made = api().post(credentials, {"name": "app", "role": "producer"}).json()
    path, key = f"{credentials}/{made['id']}", (cluster_id, made["principal"])
    before = api().get(path)
    assert before.json()["last_used_at"] is None
    others = {("cl_other", made["principal"]): NOON, (cluster_id, "User:alice"): NOON}
    assert note_credential_uses(used={key: NOON, **others}) == 1
    # Usage files may come in any order.
    assert note_credential_uses(used={key: NOON - MINUTE}) == 0
    after = api().get(path)
    assert after.json()["last_used_at"] == "2026-11-20T12:00:00Z"
    # The time of use is not part of the ETag.
    assert after["ETag"] == before["ETag"]
    (listed,) = api().get(credentials).json()["items"]
    assert listed["last_used_at"] == "2026-11-20T12:00:00Z"
