"""Text files that may be packed, and the message about a damaged file."""

import bz2
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from rebalance_core.checks.text_lines import BLOCK_BYTES
from rebalance_core.contracts.packed_files import CODECS
from rebalance_core.contracts.paths import is_local
from rebalance_core.contracts.unpacking import bomb
from rebalance_core.model.errors import InputRefused
from rebalance_core.storage.place import place_of
from rebalance_core.storage.store_answers import is_of_store, refusal

_CHECKSUM = "damaged gzip (gzip stream CRC failure)"
"""The names that Hadoop uses for these faults."""


@contextmanager
def open_unpacked(path: str) -> Iterator[BinaryIO]:
    """Return the file's content, unpacked if its suffix declares compression.

    Raises:
        InputRefused: it cannot be read to its end, or unpacks to too much (`bomb`); also raised
            during reading.
    """
    codec = CODECS.get(Path(path).suffix)
    try:
        with _opened(path, codec) as file:
            yield file if codec is None else cast("BinaryIO", _Bounded(file, path))
    except EOFError as error:
        raise InputRefused(f"{path} cannot be read: truncated {codec or 'file'}") from error
    except gzip.BadGzipFile as error:
        wrong = "not a gzip" if "Not a gzipped" in str(error) else _CHECKSUM
        raise InputRefused(f"{path} cannot be read: {wrong}") from error
    except zlib.error as error:
        cause = str(error).rpartition(": ")[2]
        raise InputRefused(f"{path} cannot be read: damaged gzip ({cause})") from error
    except OSError as error:
        if is_of_store(error):
            raise refusal(error, f"{path} cannot be read", InputRefused) from error
        cause = error.strerror or str(error)
        wrong = f"damaged {codec} ({cause})" if codec else cause
        raise InputRefused(f"{path} cannot be read: {wrong}") from error


class _Bounded:
    """The contents of a packed file, up to the limits."""

    def __init__(self, file: BinaryIO, path: str) -> None:
        self._file, self._path, self._unpacked = file, path, 0
        self._packed = place_of(path).size()

    def read(self, size: int) -> bytes:
        block = self._file.read(size)
        self._unpacked += len(block)
        if why := bomb(self._unpacked, self._packed):
            raise InputRefused(f"{self._path} {why}; unpack it first if it is a table")
        return block


def unpacked_size(path: str, most: int) -> int:
    """Return the unpacked size in bytes of the readable part, counting until it exceeds ``most``.

    Raises:
        OSError: the store failed.
    """
    count = 0
    try:
        with _opened(path, CODECS[Path(path).suffix]) as file:
            while count <= most and (block := file.read(BLOCK_BYTES)):
                count += len(block)
    except (EOFError, zlib.error):
        pass  # the reader refuses it
    except OSError as error:
        if is_of_store(error):
            raise
    return count


def _opened(path: str, codec: str | None) -> BinaryIO:
    packed = path if is_local(path) else place_of(path).open()
    if codec is None:
        return Path(packed).open("rb") if isinstance(packed, str) else packed
    if codec == "gzip":
        return cast("BinaryIO", gzip.open(packed, "rb"))
    if codec == "bzip2":
        return cast("BinaryIO", bz2.open(packed, "rb"))
    raise InputRefused(f"{path} is compressed with {codec}, which only Spark can read; use .gz")
