"""Examples of a person's sessions, password and second factor, for the OpenAPI file."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample

from console.base.accounts.api.examples import ORGANIZATION

SESSIONS = [
    OpenApiExample(
        "A session",
        response_only=True,
        status_codes=["200"],
        value={
            "id": "ses_k3zv5n7x2mwl4ahdtc6y",
            "created_at": "2026-03-01T09:30:00Z",
            "last_seen_at": "2026-03-01T11:05:00Z",
            "address": "192.0.2.17",
            "user_agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
            "current": True,
        },
    ),
]
PASSWORD_CHANGE = [
    OpenApiExample(
        "Change it",
        request_only=True,
        value={
            "current_password": "a sentence that only Ada knows",
            "new_password": "another sentence that only Ada knows",
        },
    ),
]
PASSWORD_RESET = [
    OpenApiExample("Forgotten", request_only=True, value={"email": "ada@example.com"}),
]
PASSWORD_RESET_CONFIRM = [
    OpenApiExample(
        "Set it",
        request_only=True,
        value={
            "token": "usr_7mwl5zc2kq3xv4ahdn6t.d2x8ft-3f1c9a5e7b4d2086f1c9a5e7b4d20861",
            "password": "another sentence that only Ada knows",
        },
    ),
]
SENTENCE = "a sentence that only Ada knows"
ENROLMENT = [
    OpenApiExample("The password again", request_only=True, value={"password": SENTENCE}),
    OpenApiExample(
        "A new secret",
        response_only=True,
        status_codes=["200"],
        value={
            "secret": "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP",
            "otpauth_uri": "otpauth://totp/Freshet:ada%40example.com"
            "?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=Freshet",
            "qr_svg": '<svg xmlns="http://www.w3.org/2000/svg" width="164" height="164">…</svg>',
        },
    ),
]
TOTP_CONFIRM = [
    OpenApiExample("The app's code", request_only=True, value={"code": "492039"}),
    OpenApiExample(
        "Recovery codes",
        response_only=True,
        status_codes=["200"],
        value={"recovery_codes": ["k3zv-5n7x-2mwl-4ahd", "tc6y-b3e7-fgu5-ijo2"]},
    ),
]
PASSWORD_AND_CODE = [
    OpenApiExample("Both again", request_only=True, value={"password": SENTENCE, "code": "492039"}),
]
CLOSE = [
    OpenApiExample("Close Acme", request_only=True, value={"name": "Acme", "code": "492039"}),
    OpenApiExample(
        "Closed",
        response_only=True,
        status_codes=["200"],
        value={**ORGANIZATION, "closed_at": "2026-11-22T09:30:00Z", "generation": 2},
    ),
]
