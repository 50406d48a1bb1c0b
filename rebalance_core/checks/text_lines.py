"""Reads the lines of text files, each with its file and line number."""

from collections.abc import Iterable, Iterator
from typing import BinaryIO
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts.table import RAW, SOURCE
from rebalance_core.model.errors import InputRefused

UTF8 = "_utf8"
"""Whether a line was valid UTF-8 before it was decoded."""
BLOCK_BYTES = 8 << 20
"""Bytes of lines read at once: about as many rows as fit into the processor's caches with their
columns.
"""
_NEWLINE = 10
BOM = b"\xef\xbb\xbf"
_NUMBERED = pa.schema([(SOURCE, pa.string()), (RAW, pa.string()), (UTF8, pa.bool_())])


def number_lines(
    batches: Iterable[pa.RecordBatch], header: str | None = None
) -> Iterator[pa.RecordBatch]:
    """Add numbers to the lines of each ``split``, which must be consecutive and in order.

    With a ``header``, the first line of every file must be that line and is left out.
    """
    open_split, line = None, 0
    for batch in batches:
        runs = pc.run_end_encode(batch["split"].cast(pa.string()))
        begin = 0
        for split, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            line = line if split == open_split else 0
            path, byte = split.rsplit("@", 1)
            name = unquote(path.rsplit("/", 1)[-1])
            raw = batch[RAW].slice(begin, end - begin).cast(pa.string())
            utf8 = batch[UTF8].slice(begin, end - begin)
            if byte == "0":
                numbers = pa.array(np.arange(line + 1, line + 1 + len(raw))).cast(pa.string())
                source = pc.binary_join_element_wise(name, numbers, ":")
            else:
                source = pa.repeat(pa.scalar(f"{name}@{byte}"), len(raw))
            skipped = 0
            if header is not None and line == 0 and byte == "0":
                _check_header(name, raw[0].as_py(), header)
                skipped = 1
            columns = [column.slice(skipped) for column in (source, raw, utf8)]
            yield pa.RecordBatch.from_arrays(columns, schema=_NUMBERED)
            line += end - begin
            open_split, begin = split, end


def _check_header(name: str, line: str, header: str) -> None:
    if line.lstrip("\ufeff") != header:
        raise InputRefused(
            f"{name}: the header is {line[:200]!r}, but the other files have {header[:200]!r}; "
            "all parts of a table must have the same header"
        )


def not_blank(lines: pa.Array) -> pa.Array:
    """Return True for lines that have more than white space, as defined by Java's regular
    expressions.
    """
    return pc.match_substring_regex(lines, r"[^ \t\n\x0b\f\r]")


def lines_of_file(name: str, file: BinaryIO) -> Iterator[pa.RecordBatch]:
    """Yield all lines in blocks, with the ``split`` that `number_lines` expects.

    Lines end as in Hadoop's LineRecordReader, with LF, CR LF or CR. A byte order mark at the start
    is not part of the text. Invalid UTF-8 is replaced (`as_text`).
    """
    rest, mark = b"", BOM
    while True:
        block = file.read(BLOCK_BYTES)
        data = rest + block if rest else block
        cut = data.rfind(b"\n") + 1 if block else len(data)
        if cut:
            yield _lines(name, data[:cut].removeprefix(mark))
            mark = b""
        rest = data[cut:]
        if not block:
            return


def _lines(name: str, data: bytes) -> pa.RecordBatch:
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    octets = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(octets == _NEWLINE)
    if not data.endswith(b"\n"):
        ends = np.append(ends, len(data))
    offsets = np.concatenate([[0], ends - np.arange(len(ends))]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data.replace(b"\n", b""))]
    raw, utf8 = as_text(pa.Array.from_buffers(pa.binary(), len(ends), buffers))
    split = pa.repeat(f"{quote(name)}@0", len(raw))
    return pa.RecordBatch.from_arrays([split, raw, utf8], ["split", RAW, UTF8])


def as_text(lines: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the bytes of lines as text, with U+FFFD for invalid UTF-8, and which lines were
    valid.
    """
    try:
        return lines.cast(pa.string()), pa.repeat(True, len(lines))
    except pa.ArrowInvalid:
        octets = lines.to_pylist()
        texts = [line.decode("utf-8", "replace") for line in octets]
        same = [text.encode() == line for text, line in zip(texts, octets, strict=True)]
        return pa.array(texts), pa.array(same)
