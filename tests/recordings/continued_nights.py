"""Two collections of which the second begins where the first ends."""

from collections import Counter
from pathlib import Path

from tests.recordings.tables import DATA

OF_THE_FIRST = "rejected"
"""The first night has reported it."""
Rows = Counter[str]


def collection_of(recording: str) -> Path:
    return DATA / recording / "collection"
