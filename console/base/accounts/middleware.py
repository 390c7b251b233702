"""Django's sessions, but for when a browser is told to forget its cookie."""

from __future__ import annotations

from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers


class CookieKeepingSessionMiddleware(SessionMiddleware):
    """Has a cookie forgotten only by the request that ended its session.

    Django has it forgotten wherever the cookie's key is unknown. A session that gets another key
    (a password or a second factor was set) may have requests under way that bear the one before;
    their answers come after the new cookie, and would sign the person out.
    """

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """As Django's, but that an unknown key's cookie stays."""
        session = request.session
        if session.is_empty() and not session.modified:
            patch_vary_headers(response, ("Cookie",))
            return response
        return super().process_response(request, response)
