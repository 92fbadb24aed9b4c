"""Compressors by name: ``name:value,key=value``, with ``|`` between and wrappers in front."""

from __future__ import annotations

import dataclasses
from typing import Any

from dectool._text import nearest
from dectool.compression._compressor import Compressor
from dectool.compression._stateful import StatefulCompressor
from dectool.errors import ArgumentError, ArgumentTypeError

COMPRESSORS: dict[str, type[Compressor] | type[StatefulCompressor]] = {}
"""Every compressor by the name that :func:`get` takes."""


def get(text: str | Compressor | StatefulCompressor) -> Compressor | StatefulCompressor:
    """Return the compressor that a text names; a compressor itself is returned as it is.

    A text is ``name``, ``name:value``, or ``name:value,key=value``; the parameters come in the
    order of the class, and a shape is written 64x100. ``a|b`` compresses with b the values that a
    keeps. A wrapper takes the text of what it wraps, ``ef:topk:0.01``, and its own parameters in
    brackets before that, ``difference:[rate=0.5]:qsgd:4``. The name of the class will do as well.

    Raises:
        ArgumentError: No compressor has that name, or it has no such parameter.

    Example:
        >>> get("topk:0.01"), get("qsgd:4,norm=max"), get("ef:sign")
        (TopK(k=0.01), QSGD(levels=4, norm='max', block=None, elias=False),
         ErrorFeedback(inner=ScaledSign()))
        >>> get("topk:0.01|cast:float16").name
        'topk:0.01|cast:float16'
    """
    if isinstance(text, (Compressor, StatefulCompressor)):
        return text
    if not isinstance(text, str):
        raise ArgumentTypeError(f"get({text!r}): give a name, such as 'topk:0.01', or a compressor")
    name, _, rest = (part.strip() for part in text.partition(":"))
    kind = _named(name.lower())
    if kind is not None and _wraps(kind):
        return _wrapped(kind, text, rest)
    if "|" in text:
        first, _, second = text.partition("|")
        return _plain(first) | _plain(second)
    if kind is None:
        raise ArgumentError(f"compressor {name!r} is unknown; {nearest(name, COMPRESSORS)}")
    made: Compressor | StatefulCompressor = kind(**_parameters(kind, name, rest))
    return made


def _named(name: str) -> type[Any] | None:
    """Return the class of a name, or one that is called so itself."""
    by_class = {kind.__name__.lower(): kind for kind in COMPRESSORS.values()}
    return COMPRESSORS.get(name) or by_class.get(name)


def _plain(text: str) -> Compressor:
    found = get(text)
    if isinstance(found, Compressor):
        return found
    raise ArgumentError(f"{text!r} has a memory, so '|' cannot join it; put it in front, ef:a|b")


def _wraps(kind: type[Any]) -> bool:
    return dataclasses.fields(kind)[:1] != () and dataclasses.fields(kind)[0].name == "inner"


def _wrapped(kind: type[Any], text: str, rest: str) -> Compressor | StatefulCompressor:
    if not rest:
        raise ArgumentError(
            f"{text!r} wraps a compressor: write it behind, {text.strip(':')}:topk:1"
        )
    options, closing, inner = rest.partition("]") if rest.startswith("[") else ("", "", rest)
    given = _parameters(kind, text, options.removeprefix("["), skip=1) if closing else {}
    made: Compressor | StatefulCompressor = kind(inner=get(inner.removeprefix(":")), **given)
    return made


def _parameters(kind: type[Any], name: str, text: str, skip: int = 0) -> dict[str, Any]:
    """Return the parameters that a text gives, by name."""
    fields = [field.name for field in dataclasses.fields(kind)][skip:]
    given: dict[str, Any] = {}
    for position, part in enumerate(part.strip() for part in text.split(",") if part.strip()):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            if position >= len(fields):
                most = f"at most {len(fields)} parameters" if fields else "no parameters"
                raise ArgumentError(f"{name}:{text}: {kind.__name__} takes {most}")
            key, value = fields[position], part
        if key not in fields:
            choices = nearest(key, fields) if fields else "it has none"
            raise ArgumentError(f"{name}: {kind.__name__} has no parameter {key!r}; {choices}")
        if key in given:
            raise ArgumentError(f"{name}: {key} is given twice")
        given[key] = _value(value)
    for field in dataclasses.fields(kind)[skip:]:
        if field.default is dataclasses.MISSING and field.name not in given:
            raise ArgumentError(f"{name}: {kind.__name__} needs {field.name}, as in {name}:1")
    return given


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    if "x" in text and all(part.isdigit() for part in text.split("x")):
        return tuple(int(part) for part in text.split("x"))
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


def spell(compressor: Compressor | StatefulCompressor) -> str:
    """Return the text of which :func:`get` makes the same compressor."""
    kind = type(compressor)
    name = next((key for key, known in COMPRESSORS.items() if known is kind), kind.__name__)
    fields = dataclasses.fields(kind)
    values = {field.name: getattr(compressor, field.name) for field in fields}
    inner = values.pop("inner", None)
    parts: list[str] = []
    for position, (field, value) in enumerate(
        (field, values[field.name]) for field in fields if field.name in values
    ):
        if value == field.default:
            continue
        positional = position == len(parts) and (inner is None)
        parts.append(_spelled(value) if positional else f"{field.name}={_spelled(value)}")
    text = ",".join(parts)
    if inner is not None:
        return f"{name}{f':[{text}]' if text else ''}:{inner.name}"
    return f"{name}:{text}" if text else name


def _spelled(value: Any) -> str:
    if isinstance(value, tuple):
        return "x".join(str(extent) for extent in value)
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
