"""Programs on their way to the processes, and values on their way back."""

from __future__ import annotations

import io
import linecache
import marshal
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from dectool._optional import require
from dectool.communicator import Settings
from dectool.errors import ArgumentTypeError, BackendError


def pack_job(program: Callable[..., Any], args: Sequence[Any], settings: Settings) -> bytes:
    """Return the bytes of a job.

    Raises:
        ArgumentTypeError: The program or an argument cannot be sent to another process.
    """
    parts: list[tuple[str, Any]] = [(_name_of(program), program)]
    parts += [(f"args[{index}]", argument) for index, argument in enumerate(args)]
    parts += [("what run or solve was given", settings)]
    with _by_value(program):
        try:
            return dumps((program, tuple(args), settings))
        except Exception as error:
            for name, part in parts:
                reason = _refusal(part)
                if reason:
                    raise ArgumentTypeError(
                        f"{name} cannot be sent to other processes: {reason}; make what it needs "
                        "inside the program, on each rank"
                    ) from error
            raise


def pack_value(value: Any, rank: int) -> bytes:
    """Return the bytes of what a program returned.

    Raises:
        ArgumentTypeError: It cannot be sent to another process.
    """
    try:
        return dumps(value)
    except Exception as error:
        raise ArgumentTypeError(
            f"the program's value on rank {rank}, a {type(value).__name__}, cannot be sent to "
            f"another process: {type(error).__name__}: {error}; return arrays, numbers and "
            "containers of them"
        ) from error


def unpack_values(packed: Sequence[bytes]) -> list[Any]:
    """Return what the program returned on each rank.

    Raises:
        BackendError: A value refers to what this process has not.
    """
    values = []
    for rank, content in enumerate(packed):
        try:
            values.append(pickle.loads(content))
        except Exception as error:
            raise BackendError(
                f"the value of rank {rank} cannot be read here: {type(error).__name__}: {error}"
            ) from error
    return values


def dumps(value: Any) -> bytes:
    """Return the bytes of any value; functions and classes of scripts and notebooks included."""
    file = io.BytesIO()
    _pickler()(file).dump(value)
    return file.getvalue()


@cache
def _pickler() -> Any:
    import cloudpickle

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        """Keeps the file names of code, which reports and tracebacks show."""

        def reducer_override(self, value: Any) -> Any:
            if isinstance(value, CodeType):
                return marshal.loads, (marshal.dumps(value),)
            return super().reducer_override(value)

    return Pickler


def source_of(program: Callable[..., Any]) -> dict[str, list[str]]:
    """Return the lines of a program that is in no file (of a notebook, say), by file name."""
    name = getattr(getattr(program, "__code__", None), "co_filename", "")
    return {} if Path(name).exists() else {name: linecache.getlines(name)}


def _refusal(value: Any) -> str | None:
    try:
        dumps(value)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _name_of(program: Callable[..., Any]) -> str:
    return f"program {getattr(program, '__name__', type(program).__name__)}"


@contextmanager
def _by_value(program: Any) -> Iterator[None]:
    """Ship the functions of a module that other processes cannot import, such as a test's."""
    cloudpickle = require("cloudpickle", extra="mpi", purpose="backend 'mpi'")
    name = getattr(program, "__module__", None) or "__main__"
    module = sys.modules.get(name)
    ships = module is not None and name != "__main__" and not _importable(name, module)
    if ships:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        if ships:
            cloudpickle.unregister_pickle_by_value(module)


def _importable(name: str, module: Any) -> bool:
    """Tell whether ``sys.path``, which the processes share, leads to the module's file."""
    if name.partition(".")[0] == "dectool" or getattr(module, "__file__", None) is None:
        return True
    file = Path(module.__file__).resolve()
    inside = Path(*name.split("."))
    places = [Path(entry).resolve() / inside for entry in sys.path]
    return any(file in (place.with_suffix(".py"), place / "__init__.py") for place in places)
