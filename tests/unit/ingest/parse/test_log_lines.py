"""Lines of packed and plain logs, within limits, in linear time."""

import gzip
import io
import time
from random import Random

import pytest

from rebalance_core.ingest.fact import Unreadable
from rebalance_core.ingest.parse import log_blocks
from rebalance_core.ingest.parse.log_blocks import blocks_of


def read(content: bytes, *, gzipped: bool) -> tuple[list[bytes], str]:
    """The lines, and the code of what was refused."""
    lines = list[bytes]()
    try:
        for block in blocks_of(io.BytesIO(content), len(content), gzipped=gzipped):
            assert block
            found = block.split(b"\n")
            lines += found if found[-1] else found[:-1]
    except Unreadable as refusal:
        return lines, refusal.code
    return lines, ""


@pytest.mark.parametrize("gzipped", [False, True])
def test_lines_do_not_depend_on_blocks(
    monkeypatch: pytest.MonkeyPatch, seed: int, *, gzipped: bool
) -> None:
    rng = Random(seed)
    for _ in range(50):
        text = bytes(rng.choice(b"ab\n") for _ in range(rng.randint(0, 60)))
        monkeypatch.setattr(log_blocks, "_CHUNK", rng.randint(1, 20))
        monkeypatch.setattr(log_blocks, "_READ", rng.randint(1, 20))
        parts = [text[:9], text[9:]] if rng.random() < 0.5 else [text]
        content = b"".join(map(gzip.compress, parts)) if gzipped else text
        expected = text.split(b"\n")
        assert read(content, gzipped=gzipped) == (expected if expected[-1] else expected[:-1], "")


@pytest.mark.parametrize("gzipped", [False, True])
def test_a_line_above_the_limit_is_refused_and_the_rest_is_read(
    monkeypatch: pytest.MonkeyPatch, *, gzipped: bool
) -> None:
    monkeypatch.setattr(log_blocks, "LINE_LIMIT", 100)
    monkeypatch.setattr(log_blocks, "_CHUNK", 16)
    for last in (b"", b"after\n"):
        text = b"before\n" + b"x" * 100 + b"\n" + b"y" * 101 + b"\n" + last
        lines, code = read(gzip.compress(text) if gzipped else text, gzipped=gzipped)
        assert lines == [b"before", b"x" * 100, b"", *last.split()]
        assert code == "TOO_LARGE"
    endless = b"before\n" + b"y" * 200
    assert read(gzip.compress(endless) if gzipped else endless, gzipped=gzipped) == (
        [b"before"],
        "TOO_LARGE",
    )


def test_padding_between_and_after_members_is_no_damage() -> None:
    member = gzip.compress(b"line\n")
    assert read(member + bytes(50_000) + member + bytes(9), gzipped=True) == ([b"line"] * 2, "")
    assert read(member + b"rest", gzipped=True) == ([b"line"], "BROKEN_GZIP")
    assert read(member[:-3], gzipped=True) == ([b"line"], "BROKEN_GZIP")


def test_time_grows_no_faster_than_the_file() -> None:
    """Four times as much in less than twelve times the time; copying all each time takes 16."""
    noise = Random(3).randbytes(2_000_000).hex().encode()
    for small, large in (
        (gzip.compress(noise, 1), gzip.compress(noise * 4, 1)),
        (gzip.compress(b"") * 20_000, gzip.compress(b"") * 80_000),
    ):
        times = []
        for content in (small, large):
            began = time.process_time()
            read(content, gzipped=True)
            times.append(time.process_time() - began)
        assert times[1] < 12 * max(times[0], 0.01), times
