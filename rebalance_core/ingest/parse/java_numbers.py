"""Numbers as Java prints them, within the bounds of their Java types."""

import re
from typing import Any

from rebalance_core.ingest.fact import BAD_NUMBER, Unreadable, shown

LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1


INT_MAX = 2**31 - 1


_INTEGER = re.compile(r"-?[0-9]{1,19}")


# `%.2f` follows the locale of the admin's JVM: a comma is a decimal comma, never a group.
_DECIMAL = re.compile(r"-?[0-9]{1,300}(?:[.,][0-9]{1,300})?(?:[eE][+-]?[0-9]{1,3})?")


_NOT_FINITE = {"NaN": None, "Infinity": None, "-Infinity": None}


def long_of(value: Any, name: str) -> int:
    """Return a Java ``long`` from text or from a parsed document.

    Args:
        value: the text or the parsed value.
        name: the expected kind of number, for the message.

    Raises:
        Unreadable: it is not a 64-bit whole number.
    """
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    if type(value) is not int or not LONG_MIN <= value <= LONG_MAX:
        raise Unreadable(BAD_NUMBER, f"{name} is {shown(value)}, not a whole number of 64 bits")
    return value


def count_of(value: Any, name: str) -> int:
    """Return a Java ``int`` that counts or numbers something, such as a queue id.

    Raises:
        Unreadable: it is not a whole number from 0 to 2,147,483,647.
    """
    number = long_of(value, name)
    if not 0 <= number <= INT_MAX:
        raise Unreadable(BAD_NUMBER, f"{name} is {number}, not one of 0 to {INT_MAX}")
    return number


def offset_of(value: Any, name: str) -> int:
    """Return an offset of a queue; -1 is what a client stores that has consumed nothing yet.

    Raises:
        Unreadable: it is not a whole number from -1 to 2**63 - 1.
    """
    offset = long_of(value, name)
    if offset < -1:
        raise Unreadable(BAD_NUMBER, f"{name} is {offset}; an offset is -1 or more")
    return offset


def decimal_of(text: str, name: str) -> float | None:
    """Return a Java ``double`` printed with ``%.2f``; None for NaN and the infinities.

    Raises:
        Unreadable: it is not a decimal number.
    """
    if text in _NOT_FINITE:
        return None
    if not _DECIMAL.fullmatch(text):
        raise Unreadable(BAD_NUMBER, f"{name} is {shown(text)}, not a decimal number")
    number = float(text.replace(",", "."))
    return number if abs(number) < float("inf") else None
