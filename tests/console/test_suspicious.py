"""What is logged of requests that Django refuses: one short line, at most one a second."""

import logging

import pytest
from django.core.exceptions import DisallowedHost, SuspiciousOperation

from console.base.common.logs import SUSPICIOUS_CHARS_MAX, SuspiciousFilter, TextFormatter


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def lines():
    """What a handler with the filter writes, and its clock."""
    written, clock = [], Clock()

    class Kept(logging.Handler):
        def emit(self, record):
            written.append(self.format(record))

    handler = Kept()
    handler.setFormatter(TextFormatter())
    handler.addFilter(SuspiciousFilter(clock=clock))
    logger = logging.getLogger("django.security")
    logger.addHandler(handler)
    yield written, clock
    logger.removeHandler(handler)


def test_a_foreign_host_is_answered_400_and_logged_in_one_line(client, lines):
    written, clock = lines
    for _ in range(50):
        answer = client.get("/api/v1/clusters", headers={"host": "evil.example"})
        assert answer.status_code == 400
    (line,) = written
    assert "evil.example" in line
    assert "Traceback" not in line
    assert "\n" not in line
    assert line.endswith("passed_over=0")
    clock.now += 1.0
    client.get("/", headers={"host": "evil.example"})
    assert written[1].endswith("passed_over=49")


def test_each_kind_is_counted_by_itself_and_long_texts_are_cut(lines):
    written, _ = lines
    for kind in (DisallowedHost, SuspiciousOperation):
        logger = logging.getLogger(f"django.security.{kind.__name__}")
        for _ in range(3):
            logger.error("%s", "x" * 5_000, exc_info=kind("x"))
    assert len(written) == 2
    assert max(map(len, written)) < SUSPICIOUS_CHARS_MAX + 100


def test_other_lines_are_as_they_were():
    record = logging.makeLogRecord({"name": "django.request", "msg": "x" * 5_000})
    assert SuspiciousFilter().filter(record)
    assert len(record.getMessage()) == 5_000


def test_the_service_logs_with_it(settings):
    assert "suspicious" in settings.LOGGING["handlers"]["stderr"]["filters"]
