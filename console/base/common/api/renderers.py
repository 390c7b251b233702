"""The renderer of JSON answers. It uses orjson, because most of what is read is long lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from rest_framework import renderers

# Dates and dataclasses go through the framework's encoder, so that both libraries write the same.
OPTIONS = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS


class JSONRenderer(renderers.JSONRenderer):
    """The framework's renderer, with orjson as the encoder."""

    # For the framework's encoder: a lone surrogate, which an error may quote, is not valid UTF-8,
    # and so is written escaped.
    ensure_ascii = True

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Returns the JSON in UTF-8, or no bytes for None.

        Values that orjson refuses (integers beyond 64 bits, lone surrogates) are written by the
        framework's encoder instead.
        """
        if data is None:
            return b""
        try:
            return orjson.dumps(data, default=self.encoder_class().default, option=OPTIONS)
        except orjson.JSONEncodeError:
            return super().render(data, accepted_media_type, renderer_context)
