"""Headers of any bytes, and bodies of any depth, are answered and no failure, on open routes."""

import pytest
from django.test import Client

OPEN = [
    ("GET", "/api/v1/session"),
    ("POST", "/api/v1/session"),
    ("POST", "/api/v1/signup"),
    ("POST", "/api/v1/signup/verify"),
    ("POST", "/api/v1/password-reset"),
    ("POST", "/api/v1/password-reset/confirm"),
    ("POST", "/api/v1/invitations/accept"),
    ("POST", "/api/v1/webhooks/stripe"),
    ("GET", "/api/v1/clusters"),
    ("POST", "/api/v1/budgets"),
    ("GET", "/mail"),
]
HEADERS = [
    "Authorization",
    "Cookie",
    "X-CSRFToken",
    "Idempotency-Key",
    "If-Match",
    "If-None-Match",
    "Stripe-Signature",
    "X-Forwarded-For",
    "X-Request-ID",
    "Last-Event-ID",
    "Accept",
    "Accept-Encoding",
    "User-Agent",
    "Origin",
    "Referer",
]
# As the server has a byte beyond ASCII, in the shapes that readers of these headers look for.
VALUES = ["\xe9\xff", "Bearer fk_\xe9", "t=1,v1=\xff", "csrftoken=\xe9; sessionid=\xff", '"\xe9"']
DEEP = ["[" * 100_000, "[" * 500 + "]" * 500, '{"a":' * 500 + "1" + "}" * 500]


@pytest.mark.parametrize(("method", "path"), OPEN)
def test_bytes_beyond_ascii_in_a_header(db, method, path):
    client = Client(raise_request_exception=False)
    for name in HEADERS:
        for value in VALUES:
            answer = client.generic(
                method, path, "{}", content_type="application/json", headers={name: value}
            )
            assert answer.status_code < 500, (name, value, answer.content)


@pytest.mark.parametrize(("method", "path"), [route for route in OPEN if route[0] == "POST"])
def test_a_body_of_any_depth(db, method, path):
    client = Client(raise_request_exception=False)
    for body in DEEP:
        answer = client.generic(method, path, body, content_type="application/json")
        assert 400 <= answer.status_code < 500, answer.content
