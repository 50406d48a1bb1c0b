"""Text files that may be packed, and what to say of a damaged one."""

from __future__ import annotations

import bz2
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from rebalance_core.contracts.paths import CODECS
from rebalance_core.model.errors import InputRefused

_CHECKSUM = "damaged gzip (gzip stream CRC failure)"
"""Hadoop's words for it."""


@contextmanager
def open_unpacked(path: str) -> Iterator[BinaryIO]:
    """The file's content, unpacked if its suffix says that it is packed.

    Raises:
        InputRefused: it cannot be read to its end; raised while it is read, too.
    """
    codec = CODECS.get(Path(path).suffix)
    try:
        with _opened(path, codec) as file:
            yield file
    except EOFError as error:
        raise InputRefused(f"{path} cannot be read: truncated {codec or 'file'}") from error
    except gzip.BadGzipFile as error:
        wrong = "not a gzip" if "Not a gzipped" in str(error) else _CHECKSUM
        raise InputRefused(f"{path} cannot be read: {wrong}") from error
    except zlib.error as error:
        cause = str(error).rpartition(": ")[2]
        raise InputRefused(f"{path} cannot be read: damaged gzip ({cause})") from error
    except OSError as error:
        cause = error.strerror or str(error)
        wrong = f"damaged {codec} ({cause})" if codec else cause
        raise InputRefused(f"{path} cannot be read: {wrong}") from error


def _opened(path: str, codec: str | None) -> BinaryIO:
    if codec is None:
        return Path(path).open("rb")
    if codec == "gzip":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if codec == "bzip2":
        return cast(BinaryIO, bz2.open(path, "rb"))
    raise InputRefused(f"{path} is packed as {codec}, which only Spark reads here; use .gz")
