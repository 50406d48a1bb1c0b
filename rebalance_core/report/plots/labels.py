"""Names from outside as a picture can show them: visible, of this width, in letters we have."""

from functools import cache
from pathlib import Path

import matplotlib as mpl
from matplotlib.ft2font import FT2Font

from rebalance_core.report.page.visible import shortened

FONTS = ("DejaVuSans.ttf", "DejaVuSansMono.ttf")


def short(name: str, most: int = 28) -> str:
    """The name in at most that many columns; letters the font lacks as their escapes."""
    if not name.isascii():
        known = _letters()
        name = "".join(c if c.isascii() or ord(c) in known else _escape(c) for c in name)
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
