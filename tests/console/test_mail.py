"""The mail folder of local mode: one file a mail, and the endpoint that lists them."""

import dataclasses

import pytest
from django.conf import settings
from django.core.mail import EmailMessage, EmailMultiAlternatives, get_connection

from console.base.common.conf import config
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient

BACKEND = "console.base.common.mail.FolderBackend"


@pytest.fixture
def configure(tmp_path, monkeypatch):
    """Returns a function that changes settings; mails go to a folder of this test."""

    def change(**changes):
        mail = dataclasses.replace(
            config().mail, folder=tmp_path / "mail", backend=changes.pop("backend", "folder")
        )
        new = dataclasses.replace(config(), mail=mail, **changes)
        monkeypatch.setattr(settings, "FRESHET", new)

    change()
    return change


@pytest.fixture
def connection(configure):
    return get_connection(BACKEND)


def test_a_folder_that_is_not_there_yet_has_no_mail(db, configure):
    assert ApiClient().get("/local-mail").json() == {"items": [], "next_cursor": None}


def test_each_mail_is_a_file(db, configure, connection):
    mails = [
        EmailMessage(f"Number {number}", "Grüße\n", to=["ada@acme.example"]) for number in range(3)
    ]
    assert connection.send_messages(mails) == 3
    files = sorted(config().mail.folder.iterdir())
    assert [file.suffix for file in files] == [".eml"] * 3
    items = ApiClient().get("/local-mail").json()["items"]
    assert [item["subject"] for item in items] == ["Number 2", "Number 1", "Number 0"]
    assert items[0]["to"] == "ada@acme.example"
    assert items[0]["text"] == "Grüße\n"
    assert items[0]["id"] == files[-1].stem
    assert items[0]["sent_at"].endswith("Z")


def test_a_mail_with_two_forms_is_shown_as_text(db, configure, connection):
    message = EmailMultiAlternatives("Both", "plain", to=["ada@acme.example"])
    message.attach_alternative("<b>rich</b>", "text/html")
    connection.send_messages([message])
    assert ApiClient().get("/local-mail").json()["items"][0]["text"].strip() == "plain"


@pytest.mark.parametrize("changes", [{"mode": "production"}, {"backend": "smtp"}])
def test_elsewhere_there_is_no_such_address(db, configure, changes):
    configure(**changes)
    assert_problem(ApiClient().get("/local-mail"), 404, "not_found")
