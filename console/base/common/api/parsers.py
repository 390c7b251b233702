"""The parser of JSON bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser as FrameworkJSONParser


class JSONParser(FrameworkJSONParser):
    """The framework's parser, which here refuses a body that is nested too deeply as malformed."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Returns the body's value. Raises `ParseError`."""
        try:
            return super().parse(stream, media_type, parser_context)
        except RecursionError as error:
            message = "JSON parse error - nested too deeply"
            raise ParseError(message) from error
