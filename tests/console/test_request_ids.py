"""The id of a request goes through outbox, Celery and operations, and into log lines."""

import json
import logging

import pytest
from celery import current_app, shared_task

from console.base.common import outbox
from console.base.common.logs import JsonFormatter, TextFormatter
from console.base.common.models import OutboxEntry
from console.base.common.requests import RequestIdFilter, current_request_id, in_request
from console.base.common.task_requests import add_request_id
from console.base.common.tenancy import organization_scope, system_scope

ORGANIZATION = "org_aaaaaaaaaaaaaaaaaaaa"
REQUEST = "req_of_this_test"
OPERATION = "op_aaaaaaaaaaaaaaaaaaaa"


def record(**extra):
    log_record = logging.LogRecord("a.logger", logging.INFO, __file__, 1, "it.happened", None, None)
    vars(log_record).update(extra)
    RequestIdFilter().filter(log_record)
    return log_record


@shared_task(name="tests.return_request_id")
def return_request_id():
    """Returns the id of the request that the task runs for."""
    return current_request_id()


def test_a_line_of_text_has_ids_and_fields():
    formatter = TextFormatter()
    assert formatter.format(record()) == "INFO a.logger [-] it.happened"
    with in_request(REQUEST, OPERATION):
        line = formatter.format(record(cluster="cl_x", error="no such thing"))
    expected = (
        f'INFO a.logger [{REQUEST} {OPERATION}] it.happened cluster=cl_x error="no such thing"'
    )
    assert line == expected


def test_a_line_of_json_has_them_as_members():
    with in_request(REQUEST, OPERATION):
        line = json.loads(JsonFormatter().format(record(files=3)))
    assert line.pop("at").endswith("+00:00")
    assert line == {
        "level": "info",
        "logger": "a.logger",
        "message": "it.happened",
        "request_id": REQUEST,
        "operation_id": OPERATION,
        "files": 3,
    }


def test_an_id_that_is_none_is_not_taken_over():
    with in_request("two lines\nof nonsense"):
        assert current_request_id() == "-"
    with in_request(REQUEST):
        assert current_request_id() == REQUEST
    assert current_request_id() == "-"


@pytest.mark.django_db(transaction=True)
def test_the_outbox_keeps_it_for_whoever_hands_over(monkeypatch):
    sent = []
    with monkeypatch.context() as patch:
        patch.setattr(outbox, "dispatch_entry", lambda entry_id: False)
        with in_request(REQUEST), organization_scope(ORGANIZATION):
            entry = outbox.enqueue_task(task="x.y", organization_id=ORGANIZATION, arguments={})
    with system_scope():
        assert OutboxEntry.objects.get(pk=entry.pk).request_id == REQUEST

    def send_task(name, **_):
        headers: dict[str, str] = {}
        add_request_id(headers=headers)
        sent.append((name, headers))

    monkeypatch.setattr(current_app, "send_task", send_task)
    assert outbox.dispatch_entry(entry.pk)
    assert sent == [("x.y", {"request_id": REQUEST})]


def test_a_worker_goes_on_under_it():
    assert return_request_id.apply(headers={"request_id": REQUEST}).get() == REQUEST
    assert current_request_id() == "-"
    assert return_request_id.apply().get() == "-"
