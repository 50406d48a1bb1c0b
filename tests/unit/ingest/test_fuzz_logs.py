"""Damaged lines: every log parser answers, in time linear in the line, and never raises."""

import gzip
import json
import random
import re
from collections.abc import Callable
from functools import cache
from zoneinfo import ZoneInfo

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
from rebalance_core.ingest.fact import RAW_LIMIT, Unread
from rebalance_core.ingest.file_reader import LINE_PARSERS, FileReader
from rebalance_core.ingest.log_block import WORDS
from rebalance_core.ingest.parse.client_log import parse_client_line
from rebalance_core.ingest.parse.log_lines import (
    CLIENT_HEAD,
    SERVER_HEAD,
    STACK_LINE,
    ClientClock,
    Clock,
    ServerClock,
)
from rebalance_core.ingest.parse.server_logs import ProxyClock
from rebalance_core.ingest.parse.wrapped_lines import LINE_ENDS
from tests.recordings.tables import DATA
from tests.tree import TREE
from tests.unit.ingest.processor_time import HUGE, linear

CASES, MANY_CASES = 400, 10_000
ODD = ["\x00", "\x1b[31m", "\r", "\u2028", "\ufeff", "\x85", "\U0001f600", "\ufffd", "[", "]", ", "]

FILES = {
    NAMESRV_LOG: (
        "broker-loss-4.9/collection/namesrv/namesrv.log",
        "silent-loss/collection/namesrv/namesrv.log",
    ),
    BROKER_LOG: (
        "silent-loss/collection/brokers/broker-c/broker.log",
        "scale-out-4.9/collection/brokers/mq-east/broker.log",
        "nightly/collection/brokers/broker-b/broker.log",
    ),
    LOCK_LOG: ("orderly/collection/brokers/broker-a/filter.log",),
    POP_LOG: (f"{TREE}/tests/unit/ingest/pop.log",),
    CLIENT_LOG: (
        "broker-loss-4.9/collection/clients/t1/rocketmq_client.log",
        "pathologies/collection/clients/x2/rocketmq_client.log",
    ),
    PROXY_LOG: (
        "grpc/collection/proxy/proxy-2/broker.log",
        "grpc/collection/proxy/proxy-2/proxy.log",
    ),
}


CLOCKS: dict[str, Callable[[], Clock | ClientClock]] = {
    CLIENT_LOG: lambda: ClientClock(Clock(ZoneInfo("America/New_York"))),
    PROXY_LOG: ProxyClock,
}


def reader(kind: str) -> FileReader:
    return FileReader(CollectedFile("some/file", kind, "place"), "America/New_York", ("b",))


def read(kind: str, text: str) -> list[Evidence | Unread]:
    """What one line states, its block but this line."""
    return list(reader(kind).read_lines(pa.array([text]), 0))


@cache
def lines(kind: str) -> list[str]:
    """Lines that state something, one for each hundred of a kind, and some that do not."""
    found: dict[str, list[str]] = {}
    for name in FILES[kind]:
        path = DATA / name
        packed = path.with_name(path.name + ".gz")
        text = gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()
        for line in text.decode().split("\n"):
            stated = next(iter(read(kind, line)), None)
            found.setdefault(getattr(stated, "kind", ""), []).append(line)
    assert len(found) > 1
    return [line for same in found.values() for line in same[:: len(same) // 100 + 1]]


def damaged(chance: random.Random, kind: str) -> str:
    text = chance.choice(lines(kind))
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(text) + 1)
        text = chance.choice(
            [
                text[:at],
                text[at:],
                text[:at] + chance.choice(ODD) * chance.randrange(1, 4) + text[at:],
                text[:at] + text[at : at + 1] * chance.choice([3, 70, 5_000]) + text[at:],
                text[:at] + chance.choice(lines(chance.choice(LOGS))),
                text[:at] + chance.choice('{}[]":,0-9 \t\\@%.e#=') + text[at + 1 :],
                text.replace(chance.choice([", ", "=", "[", " - ", ": "]), "", 1),
            ]
        )
    return text


def fuzz(kind: str, seed: int, cases: int) -> None:
    for case in range(cases):
        text = damaged(random.Random(f"{seed} {kind} {case}"), kind)
        try:
            for found in read(kind, text):
                assert isinstance(found, Evidence | Unread)
                if isinstance(found, Unread):
                    assert len(found.raw) <= RAW_LIMIT
                    assert found.code
                    assert found.message
                else:
                    json.dumps(found.values, ensure_ascii=False).encode()
            clock = CLOCKS.get(kind, ServerClock)()
            if LINE_PARSERS[kind](text.strip(LINE_ENDS), "some/file:1", clock):
                assert any(word in text for word in WORDS[kind]), "the reader would not look at it"
        except Exception as error:
            error.add_note(f"PYTEST_SEED={seed}, {kind}, case {case}: {text[:300]!r}")
            raise


@pytest.mark.parametrize("kind", LOGS)
def test_damaged_lines(kind: str, seed: int) -> None:
    fuzz(kind, seed, CASES)


@pytest.mark.slow
@pytest.mark.parametrize("kind", LOGS)
def test_many_damaged_lines(kind: str, seed: int) -> None:
    fuzz(kind, seed, MANY_CASES)


@pytest.mark.parametrize("kind", LOGS)
def test_a_line_of_four_megabytes_costs_what_its_length_costs(kind: str) -> None:
    pieces = [
        ", group=", ", clientId=", "MessageQueue [topic=", "ConsumerData [", "TopicConfig [",
        "SubscriptionData [classFilterMode=", " - ", "] ", "x.", "\t",
    ]  # fmt: skip
    for piece in pieces:
        huge = piece * (HUGE // len(piece))
        for text in lines(kind)[:: len(lines(kind)) // 3 + 1]:
            middle = len(text) // 2
            with linear(piece):
                read(kind, text[:middle] + huge + text[middle:])


@pytest.mark.parametrize("pattern", [SERVER_HEAD, CLIENT_HEAD, STACK_LINE])
@pytest.mark.parametrize("piece", ["a.", "a", " ", "2026-11-21 ", "A.a$"])
def test_the_patterns_of_lines_are_linear(pattern: str, piece: str) -> None:
    with linear():
        re.match(pattern, piece * (HUGE // len(piece)))


def test_every_kind_of_log_has_its_parser_and_words() -> None:
    assert set(LINE_PARSERS) == set(WORDS) == set(LOGS)
    clock = ClientClock(Clock(ZoneInfo("UTC")))
    assert parse_client_line("", "f:1", clock) == ()
