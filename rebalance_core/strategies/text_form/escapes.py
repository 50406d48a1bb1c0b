"""%XX escapes of the strategy text: how a value writes what it must not contain."""

import re

from rebalance_core.model.errors import UsageError

_SPECIAL = "%|,:()="
_ESCAPED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")


def escape(text: str, also: str = "") -> str:
    """``text`` as it stands inside a value; ``also`` names further characters to escape.

    Spaces at the edges are escaped too, because the parser trims around keys and values.

    >>> escape("[2001:db8::5]")
    '[2001%3Adb8%3A%3A5]'
    """
    special = _SPECIAL + also
    body = "".join(f"%{ord(c):02X}" if c in special else c for c in text)
    inner = body.strip(" ")
    left = len(body) - len(body.lstrip(" "))
    right = len(body) - left - len(inner)
    return "%20" * left + inner + "%20" * right


def unescape(text: str) -> str:
    """Undoes `escape`; several %XX in a row are UTF-8.

    Raises `UsageError` for a ``%`` that starts no escape, and for bytes that are not UTF-8.

    >>> unescape("%25RETRY%25group")
    '%RETRY%group'
    """
    if "%" in _ESCAPED.sub("", text):
        raise UsageError(f"{text!r} has a '%' that starts no %XX escape; write %25 for '%'")
    try:
        return _ESCAPED.sub(lambda m: bytes.fromhex(m[0].replace("%", "")).decode("utf-8"), text)
    except UnicodeDecodeError as error:
        raise UsageError(f"the %XX escapes of {text!r} are not UTF-8") from error
