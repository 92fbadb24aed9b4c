"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary name beside ``path``, renamed to ``path`` if the block succeeds.

    If it fails, the temporary file is removed and what was at ``path`` stays. The temporary name
    has the same suffix, since writers of pictures choose their format by it. The content reaches
    the disk before the name does, so that a machine that stops leaves the old file or the new.

    Raises:
        FileNotFoundError: The folder does not exist.

    Example:
        >>> target = Path(tempfile.mkdtemp()) / "note.txt"
        >>> with written_whole(target) as temporary:
        ...     _ = temporary.write_text("whole")
        >>> target.read_text(), [p.name for p in target.parent.iterdir()]
        ('whole', ['note.txt'])
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(
            errno.ENOENT, "there is no such folder to write to", str(target.parent)
        )
    handle, name = tempfile.mkstemp(
        dir=target.parent, prefix=f".{target.stem}.", suffix=target.suffix
    )
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes files that only their owner can read.
        temporary.chmod(0o666 & ~_umask())
        _flush(temporary)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
