"""What becomes of Kafka credentials where the owner of an address takes an account over."""

from django.core import mail

from console.base.accounts.models import Organization, User
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from tests.console.clients import ApiClient
from tests.console.outbox import run_outbox


def test_every_kafka_credential_of_the_organization_ends(tenant, api, credentials, store):
    made = [api().post(credentials, {"name": name, "role": "producer"}).json() for name in "ab"]
    assert {user.user for user in store.list_users()} == {row["username"] for row in made}
    User.objects.filter(pk=tenant.owner.pk).update(email_verified_at=None)
    with organization_scope(tenant.id):
        Organization.objects.update(verified_at=None)
    anybody = ApiClient()
    assert anybody.post("/password-reset", {"email": tenant.owner.email}).status_code == 204
    run_outbox()
    token = str(mail.outbox[-1].body).split("/password-reset#")[1].split()[0]
    body = {"token": token, "password": "an own and longer sentence"}
    assert anybody.post("/password-reset/confirm", body).status_code == 204
    run_outbox()
    assert store.list_users() == []
    with organization_scope(tenant.id):
        actions = AuditEntry.objects.values_list("action", flat=True)
        assert list(actions).count("credential.expire") == 2


def test_a_reset_of_a_proved_address_ends_none(tenant, api, credentials, store):
    made = api().post(credentials, {"name": "a", "role": "producer"}).json()
    anybody = ApiClient()
    anybody.post("/password-reset", {"email": tenant.owner.email})
    run_outbox()
    token = str(mail.outbox[-1].body).split("/password-reset#")[1].split()[0]
    body = {"token": token, "password": "an own and longer sentence"}
    assert anybody.post("/password-reset/confirm", body).status_code == 204
    run_outbox()
    assert {user.user for user in store.list_users()} == {made["username"]}
