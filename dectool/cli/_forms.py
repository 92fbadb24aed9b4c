"""The grammar of text forms: ``name:value,key=value``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dectool._text import nearest
from dectool.errors import ArgumentError

Convert = Callable[[str], Any]


class Form(NamedTuple):
    """What a name stands for.

    Attributes:
        make: Makes it from keyword arguments.
        parameters: What the text may give, in order, and how each is read.
        example: A text that is right.
        required: Parameters without which it cannot be made.
        context: Arguments of ``make`` that come from other options.
    """

    make: Callable[..., Any]
    parameters: Mapping[str, Convert]
    example: str
    required: tuple[str, ...] = ()
    context: tuple[str, ...] = ()


def whole(text: str) -> int:
    """Return an integer."""
    try:
        return int(text)
    except ValueError:
        raise ArgumentError(f"{text!r} is not a whole number, such as 4") from None


def real(text: str) -> float:
    """Return a number."""
    try:
        return float(text)
    except ValueError:
        raise ArgumentError(f"{text!r} is not a number, such as 1e-3") from None


def value(text: str) -> Any:
    """Return a number, a tuple of them (commas between), true or false, or the text itself.

    Example:
        >>> value("3"), value("1e-2"), value("-0.5,0.9"), value("tight")
        (3, 0.01, (-0.5, 0.9), 'tight')
    """
    if "," in text:
        return tuple(value(part) for part in text.split(","))
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)


def yes_or_no(text: str) -> bool:
    """Return whether a text says so."""
    known = {"true": True, "false": False, "symmetric": True}
    if text.lower() not in known:
        raise ArgumentError(f"{text!r} must be true or false")
    return known[text.lower()]


def made(
    what: str, text: str, forms: Mapping[str, Form], context: Mapping[str, Any] | None = None
) -> Any:
    """Return what a text stands for.

    Args:
        what: What it is, for messages.
        text: Such as "name:value,key=value".
        forms: What may be named.
        context: Arguments that come from other options.

    Raises:
        ArgumentError: The name or a parameter is unknown, one is missing, or no number.
    """
    name, _, rest = text.partition(":")
    form = forms.get(plain(name))
    if form is None:
        raise ArgumentError(f"{what} {name!r} is unknown; {nearest(plain(name), forms)}")
    try:
        given = _arguments(form, rest)
        for key in form.required:
            if key not in given:
                raise ArgumentError(f"it needs {key}")
    except ArgumentError as error:
        raise ArgumentError(f"{what} {text!r}: {error} (example: {form.example})") from None
    known = {key: (context or {})[key] for key in form.context}
    return form.make(**{**known, **given})


def _arguments(form: Form, rest: str) -> dict[str, Any]:
    """Return the parameters that a text gives, by position first, then by name."""
    given: dict[str, Any] = {}
    order = [key for key in form.parameters if key != "weights"]
    for place, item in enumerate(rest.split(",") if rest else ()):
        key, equals, text = item.partition("=")
        if not equals:
            if place >= len(order):
                raise ArgumentError(f"{item!r} is one value too many")
            key, text = order[place], item
        if key not in form.parameters:
            known = nearest(key, form.parameters) if form.parameters else "it takes none"
            raise ArgumentError(f"there is no {key!r}; {known}")
        if key in given:
            raise ArgumentError(f"{key} is given twice")
        given[key] = form.parameters[key](text)
    return given


def plain(name: str) -> str:
    """Return a name as it is written in the tables."""
    return name.strip().lower().replace("-", "_")
