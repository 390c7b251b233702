"""The mail folder of local mode: one file a mail, and the endpoint that lists them."""

import dataclasses

import pytest
from django.conf import settings
from django.core.mail import EmailMessage, EmailMultiAlternatives, get_connection

from console.base.common.conf import config
from console.settings.home import derive_mail_token
from console.web.local_mail import COOKIE
from tests.console.browsers import signed_in
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient

BACKEND = "console.base.common.mail.FolderBackend"


@pytest.fixture
def configure(tmp_path, settings):
    """Returns a function that changes settings; mails go to a folder of this test."""

    def change(**changes):
        mail = dataclasses.replace(
            config().mail, folder=tmp_path / "mail", backend=changes.pop("backend", "folder")
        )
        new = dataclasses.replace(config(), mail=mail, **changes)
        settings.FRESHET = new

    change()
    return change


@pytest.fixture
def connection(configure):
    return get_connection(BACKEND)


@pytest.fixture
def reader(db, configure):
    """A browser that has shown the token of the service's start."""
    client = ApiClient()
    token = derive_mail_token(str(settings.SECRET_KEY))
    assert client.post("/local-mail", {"token": token}).status_code == 204
    return client


def test_a_folder_that_is_not_there_yet_has_no_mail(reader):
    assert reader.get("/local-mail").json() == {"items": [], "next_cursor": None}


def test_without_the_token_nobody_reads_a_mail(tenant, configure, connection):
    connection.send_messages([EmailMessage("Secret", "a link", to=["ada@acme.example"])])
    for client in (ApiClient(), ApiClient(tenant.key), signed_in(tenant.owner)):
        for token in ("", "x", derive_mail_token("another key")):
            refused = client.post("/local-mail", {"token": token or "-"})
            assert_problem(refused, 403, "mail_token_required")
            assert COOKIE not in refused.cookies
            client.client.cookies[COOKIE] = token
            answer = client.get("/local-mail")
            assert_problem(answer, 403, "mail_token_required")
            assert b"Secret" not in answer.content


def test_the_cookie_is_for_this_service_and_no_script(reader):
    cookie = reader.client.cookies[COOKIE]
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Strict")


def test_each_mail_is_a_file(reader, connection):
    mails = [
        EmailMessage(f"Number {number}", "Grüße\n", to=["ada@acme.example"]) for number in range(3)
    ]
    assert connection.send_messages(mails) == 3
    files = sorted(config().mail.folder.iterdir())
    assert [file.suffix for file in files] == [".eml"] * 3
    items = reader.get("/local-mail").json()["items"]
    assert [item["subject"] for item in items] == ["Number 2", "Number 1", "Number 0"]
    assert items[0]["to"] == "ada@acme.example"
    assert items[0]["text"] == "Grüße\n"
    assert items[0]["id"] == files[-1].stem
    assert items[0]["sent_at"].endswith("Z")


def test_a_mail_with_two_forms_is_shown_as_text(reader, connection):
    message = EmailMultiAlternatives("Both", "plain", to=["ada@acme.example"])
    message.attach_alternative("<b>rich</b>", "text/html")
    connection.send_messages([message])
    assert reader.get("/local-mail").json()["items"][0]["text"].strip() == "plain"


@pytest.mark.parametrize("changes", [{"mode": "production"}, {"backend": "smtp"}])
def test_elsewhere_there_is_no_such_address(db, configure, changes):
    configure(**changes)
    assert_problem(ApiClient().get("/local-mail"), 404, "not_found")
    token = {"token": derive_mail_token(str(settings.SECRET_KEY))}
    assert_problem(ApiClient().post("/local-mail", token), 404, "not_found")
