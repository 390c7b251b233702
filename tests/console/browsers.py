"""A client of the API that acts as a browser: it has cookies, and sends the CSRF token."""

from __future__ import annotations

from typing import Any

from django.test import Client

from console.base.accounts.models import User
from tests.console.clients import ApiClient
from tests.console.factories import PASSWORD, make_user, with_second_factor


class Browser(ApiClient):
    """Keeps cookies, and sends the CSRF token that signing in returned with every request."""

    def __init__(self) -> None:
        super().__init__(client=Client(enforce_csrf_checks=True, raise_request_exception=False))
        self.csrf_token = ""

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: dict[str, object] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Any:  # noqa: ANN401 - Django's test response has no public type
        """Sends a request with the CSRF token; returns Django's response."""
        all_headers = {"X-CSRFToken": self.csrf_token, **(headers or {})}
        return super().request(method, path, body, query=query, headers=all_headers)

    def sign_in(
        self,
        user: User,
        password: str = PASSWORD,
        *,
        code: str | None = None,
    ) -> Any:  # noqa: ANN401 - as above
        """Signs in; returns the response, which may be a refusal."""
        body = {"email": user.email, "password": password}
        if code is not None:
            body["code"] = code
        response = self.post("/session", body)
        if response.status_code == 200:
            self.csrf_token = response.json()["csrf_token"]
        return response

    @property
    def user_id(self) -> str | None:
        """The id of the signed-in user; None if nobody is."""
        user = self.get("/session").json()["user"]
        return user["id"] if user else None


def signed_in(user: User, password: str = PASSWORD, code: str | None = None) -> Browser:
    """Returns a new browser in which a user has signed in."""
    browser = Browser()
    response = browser.sign_in(user, password, code=code)
    assert response.status_code == 200, response.content
    return browser


def staff_browser() -> Browser:
    """Returns a browser in which a member of staff is signed in, with a second factor.

    The user belongs to no organization.
    """
    user = make_user("staff@freshet.example")
    User.objects.filter(pk=user.pk).update(is_staff=True)
    browser = Browser()
    assert browser.sign_in(user).status_code == 200
    with_second_factor(user)
    return browser
