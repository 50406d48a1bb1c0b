"""Prepares external names for a figure: visible, short enough, and in the font's characters."""

from functools import cache
from pathlib import Path

import matplotlib as mpl
from matplotlib.ft2font import FT2Font

from rebalance_core.report.visible import shortened

FONTS = ("DejaVuSans.ttf", "DejaVuSansMono.ttf")


def short(name: str, most: int = 28) -> str:
    """Return the name in at most this many columns, escaping characters that the font lacks."""
    if not name.isascii():
        drawable = _letters()
        name = "".join(c if c.isascii() or ord(c) in drawable else _escape(c) for c in name)
    return shortened(name, most)


@cache
def _letters() -> frozenset[int]:
    folder = Path(mpl.get_data_path()) / "fonts" / "ttf"
    return frozenset.intersection(
        *(frozenset(FT2Font(str(folder / font)).get_charmap()) for font in FONTS)
    )


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
