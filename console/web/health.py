"""`/healthz` and `/readyz`, for probes and for the console's service dot."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from console.base.common.health import recent_parts

TIMEOUT_S = 3.0


@csrf_exempt
@never_cache
@require_safe
@transaction.non_atomic_requests
def healthz(request: HttpRequest) -> JsonResponse:
    """Answers 200 as long as the process serves.

    It checks no other part: where one fails, a restart of this process would not help.
    """
    return JsonResponse({"status": "ok"})


@csrf_exempt
@never_cache
@require_safe
@transaction.non_atomic_requests
def readyz(request: HttpRequest) -> JsonResponse:
    """Answers with the state of each part by name: 200 where all are ready, otherwise 503.

    The checks run once a second at most, however many ask.
    """
    parts = recent_parts(timeout_s=TIMEOUT_S)
    ready = all(part.ready for part in parts)
    body = {
        "ready": ready,
        "parts": {part.name: {"ready": part.ready, "message": part.message} for part in parts},
    }
    return JsonResponse(body, status=200 if ready else 503)
