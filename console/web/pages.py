"""Serves the built console: its files, and `index.html` for every address that it routes itself.

WhiteNoise knows the files, their compressed variants and how long each may be cached. They are
small, so a response holds a whole file (WhiteNoise's middleware streams, which under ASGI takes a
thread).
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from whitenoise.base import WhiteNoise

from console.base.common.conf import config

# Names of files that Vite builds with a hash of their content: these never change.
HASHED = re.compile(r"^/assets/.+-[A-Za-z0-9_-]{8}\.[a-z0-9.]+$")
FILE_SECONDS = 60
# Inline styles are allowed, since components set custom properties in `style`.
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
)
NOT_BUILT = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Freshet</title></head>
<body><h1>The console is not built</h1>
<p>The service runs, and its REST interface answers under <code>/api/v1</code>. The pages of the
console are built by <code>make up</code>, or by <code>npm run build</code> in
<code>frontend/</code>.</p></body></html>
"""


@cache
def _files_of_build(folder: Path, built_at_ns: int) -> WhiteNoise:
    """Returns the files of one build. A new build has another time, and so another cache entry."""
    return WhiteNoise(
        None,
        root=folder,
        max_age=FILE_SECONDS,
        allow_all_origins=False,
        immutable_file_test=lambda _, url: HASHED.match(url) is not None,
    )


@csrf_exempt
@require_safe
@transaction.non_atomic_requests
def console(request: HttpRequest) -> HttpResponse:
    """Answers with a file of the console, or with `index.html`, which shows all of its pages.

    It changes nothing and so needs no CSRF token: a POST is refused for its method alone.
    """
    folder = config().console.folder
    index = folder / "index.html"
    if not index.is_file():
        return _page_response(NOT_BUILT, status=503)
    path = unquote(request.path)
    files = _files_of_build(folder, index.stat().st_mtime_ns).files
    if path in files and path != "/index.html":
        return _file_response(files[path], request)
    if path.startswith("/assets/"):
        # A file of an older build: with a page in its place the browser would run it as a script.
        return HttpResponse(status=404)
    return _page_response(index.read_text(encoding="utf-8"))


def _file_response(static_file: object, request: HttpRequest) -> HttpResponse:
    answer = static_file.get_response(request.method, request.META)  # type: ignore[attr-defined]
    content = b""
    if answer.file is not None:
        with answer.file as stream:
            content = stream.read()
    response = HttpResponse(content, status=int(answer.status))
    del response["Content-Type"]
    for name, value in answer.headers:
        response[name] = value
    return response


def _page_response(text: str, *, status: int = 200) -> HttpResponse:
    headers = {"Cache-Control": "no-store", "Content-Security-Policy": POLICY}
    return HttpResponse(text, status=status, headers=headers)
