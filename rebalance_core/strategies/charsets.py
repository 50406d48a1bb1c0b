"""``String.getBytes`` of the JVM's default charset, which 4.9 hashes with."""

import codecs

from rebalance_core.model.errors import UsageError

UTF_8 = "UTF-8"

# Where Java 17's GBK differs from Python's outside the private use area; U+2295 becomes "?" there.
_JAVA_GBK = {"\u20ac": b"\xa2\xe3", "\u2641": b"\xa8\x92", "\u2295": b"?"}


def check_charset(charset: str) -> None:
    """Raises `UsageError` for a charset that Python cannot encode."""
    try:
        "".encode(charset)
    except LookupError as error:
        raise UsageError(
            f"platform_charset {charset!r} is unknown; known are e.g. UTF-8, US-ASCII, ISO-8859-1,"
            " GBK"
        ) from error


def java_bytes(text: str, charset: str) -> bytes:
    """``text.getBytes(charset)``: what the charset lacks becomes ``?``.

    Equal to Java 17 for every character of UTF-8, US-ASCII, ISO-8859-1 and windows-1252, and for
    GBK outside the private use area. UTF-16 surrogates without a partner become ``?`` too.
    """
    if codecs.lookup(charset).name == "gbk" and not _JAVA_GBK.keys().isdisjoint(text):
        return b"".join(_JAVA_GBK.get(c) or c.encode(charset, "replace") for c in text)
    return text.encode(charset, "replace")
