"""What the fake and those who call it know of each other: version, keys, address."""

from __future__ import annotations

# The version of the API that the pinned `stripe` package sends (a test compares them).
API_VERSION = "2026-10-28.endive"

SECRET_KEY = "sk_test_freshet_fake"  # noqa: S105 (a key that opens nothing but the fake)
WEBHOOK_SECRET = "whsec_freshet_fake"  # noqa: S105 (signs nothing but the fake's webhooks)
CONTROL_TOKEN = "fake_control"  # noqa: S105 (keeps pages of other origins from the control API)

PORT = 12_111
WEBHOOK_PATH = "/api/v1/webhooks/stripe"
