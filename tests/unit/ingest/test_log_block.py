"""A log read by the block states and counts what it does where its parser reads every line."""

import gzip
import random
import re
from dataclasses import asdict
from datetime import tzinfo
from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.ingest.collection import (
    BROKER_LOG,
    CLIENT_LOG,
    LOCK_LOG,
    LOGS,
    NAMESRV_LOG,
    POP_LOG,
    PROXY_LOG,
    CollectedFile,
)
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.fact import Unread
from rebalance_core.ingest.file_reader import FileReader
from rebalance_core.ingest.log_block import HEADS, LogBlock, lines_in
from rebalance_core.ingest.parse.log_lines import STACK_LINE
from rebalance_core.ingest.parse.wrapped_lines import LINE_ENDS
from tests.recordings.tables import DATA
from tests.tree import TREE

FILES = {
    NAMESRV_LOG: "broker-loss-4.9/collection/namesrv/namesrv.log",
    BROKER_LOG: "scale-out-4.9/collection/brokers/mq-east/broker.log",
    LOCK_LOG: "orderly/collection/brokers/broker-a/filter.log",
    POP_LOG: f"{TREE}/tests/unit/ingest/pop.log",
    CLIENT_LOG: "broker-loss-4.9/collection/clients/t1/rocketmq_client.log",
    PROXY_LOG: "grpc/collection/proxy/proxy-2/broker.log",
}
ODD = [
    b"\x00",
    b"\xff",
    b"\r",
    b"\xe2\x80\xa8",
    b"\xc2\x85",
    b"\xe3\x80\x80",
    b"\x0b",
    b"\x1c",
    b"\xf0\x9f",
    b"\xef\xbb\xbf",
    b"\t",
    b"   ",
    b"\n\n",
    b"\n\tat a.B.c(D.java:1)\n",
]
ZONE = "America/New_York"


def reader(kind: str) -> FileReader:
    return FileReader(CollectedFile("some/file", kind, "place"), ZONE, ("b",))


def read(kind: str, *blocks: bytes) -> tuple[list[Evidence | Unread], dict[str, Any]]:
    one, found, before = reader(kind), list[Evidence | Unread](), 0
    for block in blocks:
        lines = lines_in(block)
        found += one.read_lines(lines, before)
        before += len(lines)
    return found, asdict(one.stats)


def recorded(kind: str) -> bytes:
    path = DATA / FILES[kind]
    packed = path.with_name(path.name + ".gz")
    return gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()


def damaged(chance: random.Random, log: bytes) -> bytes:
    """The log; lines of it are cut, joined, missing or twice, or have what no logger writes."""
    lines = log.split(b"\n")
    found = []
    for line in lines[chance.randrange(len(lines)) :]:
        made, at = line, chance.randrange(len(line) + 1)
        if chance.random() < 0.1:
            made = chance.choice(
                [
                    line[:at],
                    line[at:],
                    line[:at] + chance.choice(ODD) + line[at:],
                    chance.choice(ODD) + line,
                    chance.choice(lines),
                    line[:at] + b"\n" + line[at:],
                ]
            )
        found.append(made)
    return b"\n".join(found)


def cut(chance: random.Random, log: bytes) -> list[bytes]:
    """The log in blocks of whole lines."""
    blocks = [b""]
    for line in log.split(b"\n"):
        blocks[-1] += line + b"\n"
        if chance.random() < 0.01:
            blocks.append(b"")
    return [block for block in blocks if block]


@pytest.mark.parametrize("kind", LOGS)
def test_blocks_state_what_lines_do(kind: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance, log = random.Random(f"{seed} {kind}"), recorded(kind)
    logs = [log, *(damaged(chance, log) for _ in range(3))]
    given = [cut(chance, one) for one in logs]
    by_block = [read(kind, *blocks) for blocks in given]

    def every_row(block: LogBlock, zone: tzinfo | None) -> list[int]:
        return [row for row, written in enumerate(block.written.to_pylist()) if written]

    monkeypatch.setattr(LogBlock, "rows_to_read", every_row)
    for blocks, found in zip(given, by_block, strict=True):
        assert found == read(kind, b"".join(blocks)), seed
    assert by_block[0][0]


@pytest.mark.parametrize("kind", LOGS)
def test_what_lines_count_for(kind: str, seed: int) -> None:
    """As their patterns have it, line by line."""
    chance = random.Random(f"{seed} {kind}")
    log = damaged(chance, recorded(kind))
    found, stats = read(kind, *cut(chance, log))
    refused = {piece.source for piece in found if isinstance(piece, Unread)}
    understood, below, written = 0, False, 0
    for number, raw in enumerate(b"".join(cut(chance, log)).split(b"\n"), 1):
        line = raw.decode("utf-8", "replace").strip(LINE_ENDS)
        if not line or line.isspace():
            continue
        written += 1
        headed = re.match(HEADS[kind], line) is not None
        if f"some/file:{number}" in refused or headed or not re.match(STACK_LINE, line):
            below = headed and f"some/file:{number}" not in refused
        understood += below
    assert (stats["lines"], stats["understood"]) == (written, understood)


def test_broken_characters_of_a_block_stay_in_their_lines() -> None:
    block = b"a\xff\nb\xe2\x80\n\n\xc3\xa4"
    expected = [line.decode("utf-8", "replace") for line in block.split(b"\n")]
    assert lines_in(block).to_pylist() == expected
    assert lines_in(block + b"\n").to_pylist() == expected


def test_the_pass_of_a_repeated_hour_is_known_by_lines_that_state_nothing() -> None:
    """Clocks went back from 02:00 to 01:00 on 2026-11-01 in New York."""
    line = "2026-11-01 01:{},123 INFO RocketmqClient - {}"
    changed = (
        "receive broker's notification[1.1.1.1:1], the consumer group: g changed, rebalance "
        "immediately"
    )
    first = line.format("30:00", changed)
    nothing = line.format("50:00", "nothing")
    for texts, hours in (([first], 4), ([nothing, first], 5)):
        for blocks in ([texts], [[text] for text in texts]):
            one, found = reader(CLIENT_LOG), list[Evidence | Unread]()
            for before, block in enumerate(blocks):
                found += one.read_lines(pa.array(block), before)
            (piece,) = found
            assert not isinstance(piece, Unread)
            assert piece.at_ms == 1_793_496_600_123 + hours * 3_600_000


def test_a_line_without_a_time_has_that_of_the_line_before() -> None:
    head = "2026-11-21 11:28:3{} INFO main - {}"
    texts = [
        head.format(1, "x"),
        head.format(2, "y"),
        '  "proxyMode":"CLUSTER",',
        head.format(3, "z"),
    ]
    for size in (1, 2, 4):
        one, found = reader(PROXY_LOG), list[Evidence | Unread]()
        for at in range(0, len(texts), size):
            found += one.read_lines(pa.array(texts[at : at + size]), at)
        (piece,) = found
        assert not isinstance(piece, Unread)
        assert piece.at_ms is not None
        assert piece.at_ms % 60_000 == 32_000


QUEUE = "MessageQueue [topic=T, brokerName=a, queueId=3]"
BY_WORDS_WITHIN = (
    ("no_member_list", "doRebalance, g T, get consumer id list failed"),
    (
        "unsubscribed",
        f"doRebalance, g, truncateMessageQueueNotMyTopic remove unnecessary mq, {QUEUE}",
    ),
    ("queue_taken", f"doRebalance, g, add a new mq, {QUEUE}"),
    ("queue_given_up", f"doRebalance, g, remove unnecessary mq, {QUEUE}"),
    ("start_refused", f"doRebalance, g, add a new mq failed, {QUEUE}, because lock failed"),
    ("start_refused", f"doRebalance, g, add new mq failed, {QUEUE}"),
    ("start_refused", f"doRebalance, g, compute offset failed, {QUEUE}"),
    ("topic_missing", "doRebalance, g, but the topic[T] not exist."),
)
"""Lines of passes, of which only words further on tell one from another."""


@pytest.mark.parametrize(("kind", "message"), BY_WORDS_WITHIN)
def test_a_line_of_a_pass_reaches_its_parser(kind: str, message: str) -> None:
    line = f"2026-11-21 11:28:31,000 WARN RocketmqClient - {message}"
    (piece,) = reader(CLIENT_LOG).read_lines(pa.array(["no words of ours", line]), 0)
    assert not isinstance(piece, Unread)
    assert piece.kind == kind


HEAD = "2026-11-21 11:28:3{} INFO main - {}"
OPEN = HEAD.format(1, "new consumer connected, group: g CONSUME_ACTIVELY, extendAttribute={")
TRACE = "\tat a.B.c(D.java:1)"


@pytest.mark.parametrize(
    ("texts", "understood", "refused"),
    [
        ([OPEN, HEAD.format(2, "x")], 1, ["some/file:1"]),
        ([OPEN, TRACE, "", TRACE, HEAD.format(2, "x"), TRACE], 2, ["some/file:1"]),
        ([OPEN, TRACE, "other", TRACE, HEAD.format(2, "x")], 1, ["some/file:1"]),
        (["2026-11-21 11:28:30 INFO x", OPEN, "a=1, lastUpdateTimestamp=2"], 1, ["some/file:2"]),
        ([OPEN, TRACE, "\ufffd, lastUpdateTimestamp=2", TRACE], 0, ["some/file:1"]),
        ([OPEN, TRACE, HEAD.format(2, "\ufffd")], 1, ["some/file:1"]),
        ([OPEN, OPEN, TRACE], 2, ["some/file:1"]),
        ([OPEN, TRACE], 2, []),
    ],
)
def test_the_line_that_began_a_refused_statement_is_not_understood(
    texts: list[str], understood: int, refused: list[str]
) -> None:
    """In whatever blocks its lines are, and only that line."""
    for cuts in range(2 ** (len(texts) - 1)):
        blocks = [[texts[0]]]
        for at, text in enumerate(texts[1:]):
            if cuts >> at & 1:
                blocks.append([])
            blocks[-1].append(text)
        one, found, before = reader(PROXY_LOG), list[Evidence | Unread](), 0
        for block in blocks:
            found += one.read_lines(pa.array(block), before)
            before += len(block)
        assert [piece.source for piece in found if isinstance(piece, Unread)] == refused, blocks
        assert one.stats.understood == understood, blocks
