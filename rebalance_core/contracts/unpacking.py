"""Limits on what a packed file may unpack to: a bomb ends in a message, not in a dead job."""

READ_PACKED = (".gz", ".bz2")
"""Suffixes of files that a process unpacks; Spark reads more (`packed_files.CODECS`)."""
UNPACKED_LIMIT = 8 * 1024**3
"""Bytes of one unpacked file; RocketMQ rotates logs at 1 GB at most."""
BOMB_RATIO = 200
"""Real logs shrink 5 to 50 times; deflate can do 1032."""
RATIO_FROM = 64 * 1024**2
"""Bytes; smaller unpacked files may have shrunk a lot because of repeated lines."""


def bomb(unpacked: int, packed: int) -> str | None:
    """Return why a file is not unpacked further; None: it may be.

    Args:
        unpacked: the bytes so far.
        packed: the bytes of the packed file.

    >>> bomb(100, 10)
    >>> bomb(100 * 1024**2, 90)
    'unpacks to more than 200 times its 90 bytes'
    >>> bomb(9 * 1024**3, 1024**3)
    'unpacks to more than 8589934592 bytes, the limit of one packed file'
    """
    if unpacked > UNPACKED_LIMIT:
        return f"unpacks to more than {UNPACKED_LIMIT} bytes, the limit of one packed file"
    if unpacked > RATIO_FROM and unpacked > BOMB_RATIO * packed:
        return f"unpacks to more than {BOMB_RATIO} times its {packed} bytes"
    return None
