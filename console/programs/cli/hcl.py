"""Writes Terraform configuration as text, laid out as by `terraform fmt`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SPECIAL = re.compile(r'["\\\x00-\x1f\x7f]|[$%](?=\{)')
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]+")


class Expression(str):
    """An expression, which is written without quotes, such as `freshet_cluster.orders.id`."""

    __slots__ = ()


Value = str | bool | int | float | Sequence[object] | Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of Terraform. Attributes that are None are left out.

    `import_id`: the id by which Terraform imports it.
    """

    type: str
    name: str
    import_id: str
    attributes: Mapping[str, Value] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The address of the resource in the configuration."""
        return f"{self.type}.{self.name}"

    def refer(self, attribute: str) -> Expression:
        """Returns an expression that refers to an attribute of the resource."""
        return Expression(f"{self.address}.{attribute}")

    def text(self) -> str:
        """Returns the import block and the resource block."""
        head = render_block("import", {"to": Expression(self.address), "id": self.import_id})
        return head + "\n" + render_block(f'resource "{self.type}" "{self.name}"', self.attributes)


def render_block(head: str, attributes: Mapping[str, Value]) -> str:
    """Returns a block. Attributes of one line come first, with their equals signs aligned."""
    present = {name: value for name, value in attributes.items() if value is not None}
    short = {name: value for name, value in present.items() if not _is_long(value)}
    lines = _align_pairs(short.items(), "  ")
    for name, value in present.items():
        if isinstance(value, Mapping) and name not in short:
            pairs = [(quote_text(key), member) for key, member in value.items()]
            lines += [f"  {name} = {{", *_align_pairs(pairs, "    "), "  }"]
    return "\n".join([f"{head} {{", *lines, "}", ""])


def _is_long(value: object) -> bool:
    return isinstance(value, Mapping) and bool(value)


def _align_pairs(pairs: Iterable[tuple[str, object]], indent: str) -> list[str]:
    written = [(name, render_value(value)) for name, value in pairs]
    width = max((len(name) for name, _ in written), default=0)
    return [f"{indent}{name.ljust(width)} = {value}" for name, value in written]


def render_value(value: object) -> str:
    """Returns a value as Terraform writes it on one line."""
    if isinstance(value, Expression):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(int(value) if value == int(value) else value)
    if isinstance(value, Mapping):
        inner = ", ".join(
            f"{quote_text(key)} = {render_value(item)}" for key, item in value.items()
        )
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(render_value(item) for item in value)}]"
    return quote_text(str(value))


def quote_text(text: str) -> str:
    """Returns a quoted string, in which nothing is a template of Terraform."""
    return f'"{_SPECIAL.sub(_escape_match, text)}"'


def _escape_match(match: re.Match[str]) -> str:
    mark = match[0]
    if mark in "$%":
        return mark * 2
    return _ESCAPES.get(mark) or f"\\u{ord(mark):04x}"


@dataclass(slots=True)
class Names:
    """Makes unique names of resources from the names that people gave the items."""

    _taken: set[tuple[str, str]] = field(default_factory=set)

    def take(self, kind: str, *words: str) -> str:
        """Returns a new name for a resource of a kind, of letters, digits, `_` and `-`."""
        base = _NO_NAME.sub("_", "_".join(words)).strip("_-") or kind.removeprefix("freshet_")
        base = f"_{base}" if base[0].isdigit() else base
        name, number = base, 1
        while (kind, name) in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add((kind, name))
        return name
