import io
from collections.abc import Iterable

import pyarrow as pa
import pytest

from rebalance_core.checks import text_rows
from rebalance_core.checks.text_rows import lines_of_file, number_lines
from rebalance_core.model.errors import InputRefused


def _batch(rows: Iterable[tuple[str, str]]) -> pa.RecordBatch:
    splits, texts = zip(*rows, strict=True)
    return pa.RecordBatch.from_pydict(
        {"split": list(splits), "_raw": list(texts), "_utf8": [True] * len(texts)}
    )


def test_numbering_goes_on_over_batches_and_restarts_per_split() -> None:
    batches = [
        _batch([("file:/a%20b@0", "1"), ("file:/a%20b@0", "2")]),
        _batch([("file:/a%20b@0", "3"), ("file:/a%20b@9", "4"), ("file:/c@0", "5")]),
        _batch([("file:/c@0", "6")]),
    ]
    sources = [s for batch in number_lines(batches) for s in batch["_source"].to_pylist()]
    assert sources == ["a b:1", "a b:2", "a b:3", "a b@9", "c:1", "c:2"]


def test_another_header_is_refused() -> None:
    with pytest.raises(InputRefused, match=r"a b\.csv: .*need the same header"):
        list(number_lines([_batch([("file:/a%20b.csv@0", "x,y")])], "cluster"))


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 7, 1000])
def test_lines_do_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch, block_bytes: int) -> None:
    monkeypatch.setattr(text_rows, "BLOCK_BYTES", block_bytes)
    data = b"\xef\xbb\xbfa\r\nb\rc\n\n\xff\xc3\xa9\r\r\nlast"
    read = list(lines_of_file("f", io.BytesIO(data)))
    assert [text for batch in read for text in batch["_raw"].to_pylist()] == [
        "a", "b", "c", "", "\ufffdé", "", "last",
    ]  # fmt: skip
    assert [u for batch in read for u in batch["_utf8"].to_pylist()].count(False) == 1
