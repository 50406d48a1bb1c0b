"""Limits on what a packed file may unpack to: a decompression bomb ends in a message, not in a dead
job.
"""

READ_PACKED = (".gz", ".bz2")
"""Suffixes of files that this process unpacks; Spark reads more (`packed_files.CODECS`)."""
UNPACKED_LIMIT = 8 * 1024**3
"""Maximum bytes of an unpacked file; RocketMQ rotates logs at 1 GB or less."""
BOMB_RATIO = 200
"""Real logs compress by a factor of 5 to 50; deflate can reach 1032."""
RATIO_FROM = 64 * 1024**2
"""Bytes from which `BOMB_RATIO` applies; smaller files may compress better because of repeated
lines.
"""


def bomb(unpacked: int, packed: int) -> str | None:
    """Return why a file is not unpacked further, or None if it may be.

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
