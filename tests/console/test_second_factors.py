"""Second factors: enrolment, sign-in with a code, recovery codes, and what the database has."""

import pyotp
import pytest
from django.core import mail
from django.core.management import CommandError, call_command

from console.base.accounts.models import RecoveryCode, SecondFactor
from console.base.common.clock import now
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from tests.console.browsers import Browser, signed_in
from tests.console.cases import assert_problem
from tests.console.factories import AGAIN, PASSWORD
from tests.console.outbox import run_outbox

# The clock moves only when a test says so, so that a slow machine does not change codes or waits.
pytestmark = pytest.mark.usefixtures("later")


class App:
    """An authenticator app."""

    def __init__(self, secret):
        self.totp = pyotp.TOTP(secret)

    def code(self, offset=0):
        return self.totp.at(now(), counter_offset=offset)


def enrol(browser):
    """Enrols an authenticator app; returns the app and the recovery codes."""
    begun = browser.post("/session/totp", AGAIN)
    assert begun.status_code == 200, begun.content
    app = App(begun.json()["secret"])
    confirmed = browser.post("/session/totp/confirm", {"code": app.code()})
    assert confirmed.status_code == 200, confirmed.content
    browser.csrf_token = browser.get("/session").json()["csrf_token"]
    return app, confirmed.json()["recovery_codes"]


def actions(tenant):
    with organization_scope(tenant.id):
        return list(AuditEntry.objects.order_by("created_at").values_list("action", flat=True))


def subjects():
    run_outbox()
    return [message.subject for message in mail.outbox]


def test_an_enrolment_shows_a_secret_that_an_app_takes(tenant):
    browser = signed_in(tenant.owner)
    shown = browser.post("/session/totp", AGAIN).json()
    parsed = pyotp.parse_uri(shown["otpauth_uri"])
    assert (parsed.secret, parsed.name, parsed.issuer) == (
        shown["secret"],
        tenant.owner.email,
        "Freshet",
    )
    assert shown["qr_svg"].startswith("<svg xmlns=")
    # The secret has no effect before a code of it was sent.
    assert browser.get("/session").json()["user"]["two_factor"] is False
    assert signed_in(tenant.owner).user_id == tenant.owner.pk


def test_signing_in_asks_for_a_code_from_the_enrolment_on(tenant, later):
    browser, other = signed_in(tenant.owner), signed_in(tenant.owner)
    app, codes = enrol(browser)
    assert len(set(codes)) == 10
    assert browser.get("/session").json()["user"]["two_factor"] is True
    assert other.user_id is None
    assert "second_factor.add" in actions(tenant)
    assert subjects() == ["A second factor was added to your account"]

    other_browser = Browser()
    assert_problem(other_browser.sign_in(tenant.owner), 401, "code_required")
    assert_problem(other_browser.sign_in(tenant.owner, code=""), 422, "validation_failed")
    assert_problem(other_browser.sign_in(tenant.owner, code="abc"), 401, "code_wrong")
    assert other_browser.user_id is None
    later(seconds=30)
    assert other_browser.sign_in(tenant.owner, code=app.code()).status_code == 200


def test_the_code_reveals_nothing_without_the_password(tenant, later):
    app, _ = enrol(signed_in(tenant.owner))
    later(seconds=30)
    response = Browser().sign_in(tenant.owner, "wrong", code=app.code())
    assert_problem(response, 401, "invalid_credentials")
    # The code was not used up either.
    assert Browser().sign_in(tenant.owner, code=app.code()).status_code == 200


def test_a_code_is_good_once_and_never_after_a_later_one(tenant, later):
    app, _ = enrol(signed_in(tenant.owner))
    # The code of the enrolment, and the one before it, which the window would still allow.
    for offset in (0, -1):
        response = Browser().sign_in(tenant.owner, code=app.code(offset))
        assert_problem(response, 401, "code_wrong")
    later(seconds=60)
    before, present = app.code(-1), app.code()
    assert Browser().sign_in(tenant.owner, code=present).status_code == 200
    assert_problem(Browser().sign_in(tenant.owner, code=present), 401, "code_wrong")
    assert_problem(Browser().sign_in(tenant.owner, code=before), 401, "code_wrong")


@pytest.mark.parametrize(("offset", "status"), [(-2, 401), (-1, 200), (1, 200), (2, 401)])
def test_clocks_may_differ_by_half_a_minute(tenant, later, offset, status):
    app, _ = enrol(signed_in(tenant.owner))
    later(seconds=600)
    assert Browser().sign_in(tenant.owner, code=app.code(offset)).status_code == status


def test_guessing_codes_makes_wait_as_guessing_passwords_does(tenant, later):
    app, _ = enrol(signed_in(tenant.owner))
    later(seconds=30)
    wrong = f"{(int(app.code()) + 500_000) % 1_000_000:06}"
    other_browser = Browser()
    for _ in range(5):
        assert_problem(other_browser.sign_in(tenant.owner, code=wrong), 401, "code_wrong")
    response = other_browser.sign_in(tenant.owner, code=app.code())
    assert_problem(response, 429, "too_many_requests")
    later(seconds=6)
    assert other_browser.sign_in(tenant.owner, code=app.code()).status_code == 200


def test_asking_for_the_code_forgives_no_guess(tenant):
    """A right password without a code must not reset the count of wrong codes."""
    enrol(signed_in(tenant.owner))
    other_browser = Browser()
    for _ in range(4):
        other_browser.sign_in(tenant.owner, code="abc")
    assert_problem(other_browser.sign_in(tenant.owner), 401, "code_required")
    assert_problem(other_browser.sign_in(tenant.owner, code="abc"), 401, "code_wrong")
    assert_problem(other_browser.sign_in(tenant.owner, code="abc"), 429, "too_many_requests")


def test_who_does_not_know_the_password_delays_no_code(tenant, later):
    app, _ = enrol(signed_in(tenant.owner))
    for _ in range(4):
        Browser().sign_in(tenant.owner, "wrong", code="abc")
    later(seconds=30)
    assert Browser().sign_in(tenant.owner, code=app.code()).status_code == 200


def test_guesses_of_a_code_from_many_networks_make_each_wait(tenant, later):
    app, _ = enrol(signed_in(tenant.owner))
    for number in range(5):
        browser = Browser()
        browser.client.defaults["REMOTE_ADDR"] = f"192.0.2.{number}"
        assert_problem(browser.sign_in(tenant.owner, code="abc"), 401, "code_wrong")
    refused = Browser().sign_in(tenant.owner, code=app.code())
    assert_problem(refused, 429, "too_many_requests")
    later(seconds=int(refused["Retry-After"]) + 30)
    assert Browser().sign_in(tenant.owner, code=app.code()).status_code == 200


def test_a_recovery_code_is_good_once(tenant):
    _, (first, second, *_) = enrol(signed_in(tenant.owner))
    # A person may type it in upper case.
    assert Browser().sign_in(tenant.owner, code=first.upper()).status_code == 200
    assert "A recovery code of your account was used" in subjects()
    assert_problem(Browser().sign_in(tenant.owner, code=first), 401, "code_wrong")
    assert Browser().sign_in(tenant.owner, code=second.replace("-", " ")).status_code == 200


def test_recovery_codes_are_made_anew_with_a_code(tenant, later):
    browser = signed_in(tenant.owner)
    app, old = enrol(browser)
    body = {"code": "000"}
    assert_problem(browser.post("/session/recovery-codes", body), 422, "code_wrong")
    later(seconds=30)
    renewed = browser.post("/session/recovery-codes", {"code": app.code()})
    assert renewed.status_code == 200
    new = renewed.json()["recovery_codes"]
    assert not set(new) & set(old)
    assert_problem(Browser().sign_in(tenant.owner, code=old[0]), 401, "code_wrong")
    assert Browser().sign_in(tenant.owner, code=new[0]).status_code == 200
    assert "second_factor.renew_recovery_codes" in actions(tenant)


def test_a_second_factor_is_removed_with_a_code(tenant):
    browser = signed_in(tenant.owner)
    _, codes = enrol(browser)
    assert_problem(
        browser.delete("/session/totp", body={**AGAIN, "code": "123"}), 422, "code_wrong"
    )
    assert browser.delete("/session/totp", body={**AGAIN, "code": codes[0]}).status_code == 204
    assert browser.get("/session").json()["user"]["two_factor"] is False
    assert Browser().sign_in(tenant.owner).status_code == 200
    assert "The second factor of your account was removed" in subjects()
    assert_problem(browser.delete("/session/totp", body={**AGAIN, "code": codes[1]}), 409)
    assert not RecoveryCode.objects.exists()


def test_guesses_of_who_is_signed_in_are_limited(tenant):
    browser = signed_in(tenant.owner)
    _, codes = enrol(browser)
    for _ in range(5):
        assert browser.delete("/session/totp", body={**AGAIN, "code": "123"}).status_code == 422
    response = browser.delete("/session/totp", body={**AGAIN, "code": codes[0]})
    assert_problem(response, 429, "too_many_requests")


def test_the_password_is_asked_for_again(tenant):
    browser = signed_in(tenant.owner)
    wrong = {"password": "not the password"}
    document = assert_problem(browser.post("/session/totp", wrong), 422, "current_password_wrong")
    assert document["errors"][0]["pointer"] == "/password"
    assert_problem(browser.post("/session/totp", {}), 422)
    assert not SecondFactor.objects.exists()
    _, codes = enrol(browser)
    response = browser.delete("/session/totp", body={**wrong, "code": codes[0]})
    assert_problem(response, 422, "current_password_wrong")
    assert browser.get("/session").json()["user"]["two_factor"] is True
    # The code was not used up.
    assert browser.delete("/session/totp", body={**AGAIN, "code": codes[0]}).status_code == 204


def test_guesses_of_the_password_are_limited(tenant):
    browser = signed_in(tenant.owner)
    for _ in range(5):
        assert browser.post("/session/totp", {"password": "a guess"}).status_code == 422
    assert_problem(browser.post("/session/totp", AGAIN), 429, "too_many_requests")


def test_a_wrong_first_code_confirms_nothing(tenant):
    browser = signed_in(tenant.owner)
    assert_problem(browser.post("/session/totp/confirm", {"code": "123456"}), 409)
    browser.post("/session/totp", AGAIN)
    document = assert_problem(
        browser.post("/session/totp/confirm", {"code": "12345"}), 422, "code_wrong"
    )
    assert document["errors"][0]["pointer"] == "/code"
    assert signed_in(tenant.owner).user_id == tenant.owner.pk


def test_there_is_one_second_factor(tenant):
    browser = signed_in(tenant.owner)
    app, _ = enrol(browser)
    assert_problem(browser.post("/session/totp", AGAIN), 409, "second_factor_exists")
    response = browser.post("/session/totp/confirm", {"code": app.code(1)})
    assert_problem(response, 409, "second_factor_exists")


def test_an_enrolment_that_was_given_up_begins_anew(tenant):
    browser = signed_in(tenant.owner)
    old = App(browser.post("/session/totp", AGAIN).json()["secret"])
    new = App(browser.post("/session/totp", AGAIN).json()["secret"])
    assert_problem(browser.post("/session/totp/confirm", {"code": old.code()}), 422, "code_wrong")
    assert browser.post("/session/totp/confirm", {"code": new.code()}).status_code == 200


def test_the_database_alone_reveals_no_secret(tenant):
    app, codes = enrol(signed_in(tenant.owner))
    sealed = bytes(SecondFactor.objects.get().sealed_secret)
    assert app.totp.secret.encode() not in sealed
    assert app.totp.byte_secret() not in sealed
    verifiers = set(RecoveryCode.objects.values_list("verifier", flat=True))
    assert len(verifiers) == 10
    assert not verifiers & {code.replace("-", "") for code in codes}


def test_a_row_moved_to_another_user_lets_nobody_in(tenant, other_tenant, caplog):
    app, _ = enrol(signed_in(tenant.owner))
    enrol(signed_in(other_tenant.owner))
    stolen = SecondFactor.objects.get(user=tenant.owner).sealed_secret
    SecondFactor.objects.filter(user=other_tenant.owner).update(sealed_secret=stolen)
    response = Browser().sign_in(other_tenant.owner, code=app.code(1))
    assert_problem(response, 401, "code_wrong")
    assert "second_factor.seal_broken" in caplog.text


def test_a_new_password_by_mail_leaves_the_second_factor(tenant):
    _, codes = enrol(signed_in(tenant.owner))
    assert_problem(Browser().sign_in(tenant.owner), 401, "code_required")
    anybody = Browser()
    anybody.post("/password-reset", {"email": tenant.owner.email})
    run_outbox()
    (message,) = [sent for sent in mail.outbox if sent.subject == "Set a new password"]
    token = str(message.body).split("#")[1].split()[0]
    body = {"token": token, "password": "another long password"}
    assert anybody.post("/password-reset/confirm", body).status_code == 204
    assert_problem(Browser().sign_in(tenant.owner, body["password"]), 401, "code_required")
    response = Browser().sign_in(tenant.owner, body["password"], code=codes[0])
    assert response.status_code == 200


def test_who_lost_everything_is_helped_by_a_person(tenant, capsys):
    browser = signed_in(tenant.owner)
    enrol(browser)
    call_command("reset_second_factor", tenant.owner.email.upper(), reason="called back")
    assert browser.user_id is None
    assert Browser().sign_in(tenant.owner, PASSWORD).status_code == 200
    assert "second_factor.reset" in actions(tenant)
    with pytest.raises(CommandError, match="has no second factor"):
        call_command("reset_second_factor", tenant.owner.email, reason="again")
