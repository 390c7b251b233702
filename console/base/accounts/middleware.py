"""Django's session middleware, except for when an answer deletes the session cookie."""

from __future__ import annotations

from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers


class CookieKeepingSessionMiddleware(SessionMiddleware):
    """Deletes the session cookie only in the answer to the request that ended the session.

    Django deletes it in every answer to a request whose session key is unknown. A session gets a
    new key when a password or a second factor is set, and requests with the earlier key may still
    be under way. Their answers would arrive after the new cookie, delete it, and sign the person
    out.
    """

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Sets the cookie as Django does, but leaves one with an unknown key alone."""
        session = request.session
        if session.is_empty() and not session.modified:
            patch_vary_headers(response, ("Cookie",))
            return response
        return super().process_response(request, response)
