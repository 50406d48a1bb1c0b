"""Fourteen trials on torn dumps; `python -m tests.recordings.torn_dumps 100` runs 100 others."""

from pathlib import Path

import pytest

from tests.recordings.torn_dumps import trial


# 171: rows of lists with tabs lost their beginnings; 312: a round's first dump cannot be read
@pytest.mark.parametrize("seed", [*range(12), 171, 312])
def test_no_damaged_row_is_evidence_of_absence(seed: int, tmp_path: Path) -> None:
    did, found = trial(seed, tmp_path / "collection")
    assert not found, did
