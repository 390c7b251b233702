"""The parser of JSON bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser as FrameworkJSONParser

from console.base.common.json_texts import parse_json


class JSONParser(FrameworkJSONParser):
    """The framework's parser, which here refuses a body that is nested too deeply, or names a
    member of an object twice, as malformed."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Returns the body's value. Raises `ParseError`."""
        encoding = (parser_context or {}).get("encoding", settings.DEFAULT_CHARSET)
        try:
            return parse_json(stream.read().decode(encoding))
        except ValueError as error:
            message = f"JSON parse error - {error}"
            raise ParseError(message) from error
