"""Terraform configuration as text, laid out as `terraform fmt` does it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SPECIAL = re.compile(r'["\\\x00-\x1f\x7f]|[$%](?=\{)')
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]+")


class Expression(str):
    """Text that stands for itself, such as `freshet_cluster.orders.id`."""

    __slots__ = ()


Value = str | bool | int | float | Sequence[object] | Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource, and the id that Terraform takes it over by. Attributes that are None stay out."""

    type: str
    name: str
    import_id: str
    attributes: Mapping[str, Value] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """How others refer to it."""
        return f"{self.type}.{self.name}"

    def refer(self, attribute: str) -> Expression:
        """An attribute of it."""
        return Expression(f"{self.address}.{attribute}")

    def text(self) -> str:
        """The import and the resource."""
        head = block("import", {"to": Expression(self.address), "id": self.import_id})
        return head + "\n" + block(f'resource "{self.type}" "{self.name}"', self.attributes)


def block(head: str, attributes: Mapping[str, Value]) -> str:
    """A block with its attributes: those of one line first, their equals signs below each other."""
    given = {name: value for name, value in attributes.items() if value is not None}
    short = {name: value for name, value in given.items() if not _is_long(value)}
    lines = _aligned(short.items(), "  ")
    for name, value in given.items():
        if isinstance(value, Mapping) and name not in short:
            pairs = [(quoted(key), each) for key, each in value.items()]
            lines += [f"  {name} = {{", *_aligned(pairs, "    "), "  }"]
    return "\n".join([f"{head} {{", *lines, "}", ""])


def _is_long(value: object) -> bool:
    return isinstance(value, Mapping) and bool(value)


def _aligned(pairs: Iterable[tuple[str, object]], indent: str) -> list[str]:
    written = [(name, rendered(value)) for name, value in pairs]
    width = max((len(name) for name, _ in written), default=0)
    return [f"{indent}{name.ljust(width)} = {value}" for name, value in written]


def rendered(value: object) -> str:
    """A value on one line."""
    if isinstance(value, Expression):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(int(value) if value == int(value) else value)
    if isinstance(value, Mapping):
        inner = ", ".join(f"{quoted(key)} = {rendered(each)}" for key, each in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(rendered(each) for each in value)}]"
    return quoted(str(value))


def quoted(text: str) -> str:
    """A string in which nothing is a template."""
    return f'"{_SPECIAL.sub(_escaped, text)}"'


def _escaped(found: re.Match[str]) -> str:
    mark = found[0]
    if mark in "$%":
        return mark * 2
    return _ESCAPES.get(mark) or f"\\u{ord(mark):04x}"


@dataclass(slots=True)
class Names:
    """Names of resources that are new in their type, made from what people called the things."""

    _taken: set[tuple[str, str]] = field(default_factory=set)

    def take(self, kind: str, *words: str) -> str:
        """A name of letters, digits, `_` and `-` from the words, new for resources of its kind."""
        base = _NO_NAME.sub("_", "_".join(words)).strip("_-") or kind.removeprefix("freshet_")
        base = f"_{base}" if base[0].isdigit() else base
        name, number = base, 1
        while (kind, name) in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add((kind, name))
        return name
