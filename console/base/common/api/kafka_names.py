"""Names at Kafka: of topics, groups, users, client ids and the like, and the values of configs."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class KafkaNameField(serializers.CharField):
    """A name, unchanged: Kafka's clients know `"g "` as another name than `"g"`."""

    def __init__(self, **options: Any) -> None:
        """Takes what `CharField` takes."""
        super().__init__(trim_whitespace=False, **options)


class KafkaPatternField(serializers.RegexField):
    """As `KafkaNameField`, of a pattern."""

    def __init__(self, pattern: str, **options: Any) -> None:
        """Takes what `RegexField` takes."""
        super().__init__(pattern, trim_whitespace=False, **options)
