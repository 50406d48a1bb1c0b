"""Texts as Java writes them."""

import re
from collections.abc import Callable
from math import isinf, isnan

_TO_ESCAPE = re.compile('[\x00-\x1f"\\\\\ud800-\udfff\U00010000-\U0010ffff]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_SURROGATE = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_PLAIN_FROM, _PLAIN_BELOW = 1e-3, 1e7  # Double.toString: others in scientific notation


def double_text(value: float) -> str:
    """The double as ``Double.toString`` of JDK 19 and later writes it.

    Older ones write some numbers above 1e17 with a digit more.

    >>> [double_text(each) for each in (4.0, 0.0001, 1.5e10, -0.0, float("inf"))]
    ['4.0', '1.0E-4', '1.5E10', '-0.0', 'Infinity']
    """
    return _java_text(repr(value), value)


def _java_text(shortest: str, value: float) -> str:
    if isnan(value):
        return "NaN"
    sign = "-" if shortest.startswith("-") else ""
    if isinf(value):
        return f"{sign}Infinity"
    mantissa, _, exponent = shortest.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return f"{sign}0.0"
    # the value is 0.digits times ten to the point
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if not _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"


def float_text(value: float, shortest: Callable[[float], str]) -> str:
    """A 32-bit float as ``Float.toString`` writes it; ``shortest`` gives its shortest digits."""
    return _java_text(shortest(value), value)


def escaped(text: str) -> str:
    r"""The text as a JSON string that Jackson writes in UTF-8: surrogates are escaped.

    >>> print(escaped('a"\n' + chr(0x1F600)))
    "a\"\n\uD83D\uDE00"
    """
    return f'"{_TO_ESCAPE.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    sign = found[0]
    if sign in _SHORT:
        return _SHORT[sign]
    units = sign.encode("utf-16-be", "surrogatepass").hex().upper()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def has_surrogate(text: str) -> bool:
    """True if the text holds half of a surrogate pair."""
    return _SURROGATE.search(text) is not None


def joined_surrogates(text: str) -> str:
    """The text with its surrogate pairs as the characters they stand for."""
    return _PAIR.sub(
        lambda pair: pair[0].encode("utf-16-be", "surrogatepass").decode("utf-16-be"), text
    )


def without_surrogates(text: str) -> str:
    """The text as Java encodes it in UTF-8: half a pair becomes a question mark."""
    return _SURROGATE.sub("?", text)
