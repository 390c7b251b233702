"""Answers as JSON, written by a library that does it fast: long lists are most of what is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from rest_framework import renderers

# Dates and dataclasses go through the framework's encoder: they look the same whoever writes them.
OPTIONS = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS


class JSONRenderer(renderers.JSONRenderer):
    """The framework's, but for how the bytes are made."""

    # Half a surrogate, which a refusal may quote, is no UTF-8: it goes as it came, escaped.
    ensure_ascii = True

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """UTF-8. What the library refuses (integers beyond 64 bits, lone surrogates) it does not
        write: the framework does.
        """
        if data is None:
            return b""
        try:
            return orjson.dumps(data, default=self.encoder_class().default, option=OPTIONS)
        except orjson.JSONEncodeError:
            return super().render(data, accepted_media_type, renderer_context)
