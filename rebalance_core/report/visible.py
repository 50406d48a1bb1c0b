"""Makes external text visible, so that nothing in it hides, reorders or piles up."""

import unicodedata

LONGEST = 1000
"""Maximum number of characters of a text on the page; the findings table has the whole text."""

STACKED_MARKS = 3
"""The maximum number of combining marks per character in living scripts; more would only paint over
other lines.
"""

HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Categories without a shape: controls, direction marks, lone surrogates, line separators."""

ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str, longest: int | None = LONGEST) -> str:
    r"""Return the text with every invisible character written as its escape.

    The result can be encoded as UTF-8 and used in XML once ``<``, ``&`` and quotes are escaped.
    Text longer than `longest` is truncated visibly; None never truncates.

    >>> visible("order\u202e\x00s")
    'order\\u202e\\x00s'
    """
    if longest is not None and len(text) > longest:
        text = f"{text[:longest]} … ({len(text):,} characters)"
    if text.isascii() and text.isprintable():
        return text
    shown, marks = [], 0
    for character in text:
        category = unicodedata.category(character)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        hidden = category in HIDDEN or marks > STACKED_MARKS or ord(character) & 0xFFFE == 0xFFFE
        shown.append(_escape(character) if hidden else character)
    return "".join(shown)


def columns(text: str) -> int:
    """Return the width in fixed-width characters: wide letters count as two, combining marks as
    none.
    """
    return sum(_width(character) for character in text)


def shortened(text: str, most: int) -> str:
    """Return the visible text in at most this many columns, cutting out the middle, which names
    tend to have in common.

    >>> shortened("consumer-10.0.0.1@4711#1", 12)
    'consu…4711#1'
    """
    text = visible(text)
    if columns(text) <= most:
        return text
    head, tail = (most - 1) // 2, most - 1 - (most - 1) // 2
    return _fitting(text, head) + "…" + _fitting(text[::-1], tail)[::-1]


def _fitting(text: str, most: int) -> str:
    used = 0
    for position, character in enumerate(text):
        used += _width(character)
        if used > most:
            return text[:position]
    return text


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _escape(character: str) -> str:
    code = ord(character)
    if character in ESCAPES:
        return ESCAPES[character]
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
