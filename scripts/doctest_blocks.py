"""Marks the doctests of docstrings as examples, which the site then shows as code.

An extension of Griffe, which mkdocs.yml names: in a docstring of Google's style only what stands
below a title is more than running text, and the doctests of this package have none.
"""

import re
from typing import Any

import griffe  # type: ignore[import-not-found]  # only in the environment of the site

DOCTEST = re.compile(r"\n\n((?:>>> ).*?)(?=\n\n(?!>>> )|\Z)", re.DOTALL)


class DoctestBlocks(griffe.Extension):  # type: ignore[misc]  # Any, as the import is
    """Puts the title of Google's style above each doctest."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Change the docstring of an object that was read."""
        if obj.docstring is not None:
            obj.docstring.value = with_title(obj.docstring.value)


def with_title(docstring: str) -> str:
    """Return a docstring whose doctests stand below the title ``Examples``."""
    return DOCTEST.sub(
        lambda found: "\n\nExamples:\n    " + found[1].replace("\n", "\n    "), docstring
    )
