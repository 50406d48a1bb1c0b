"""Damaged files: every parser of documents answers, in time, and never with an exception."""

import json
import random
from collections.abc import Callable

import pytest

from rebalance_core.ingest.fact import RAW_LIMIT, Fact, Unread
from rebalance_core.ingest.parse.cluster_list import parse_cluster_list
from rebalance_core.ingest.parse.config_stores import (
    parse_store_listing,
    parse_subscription_group_json,
    parse_topics_json,
)
from rebalance_core.ingest.parse.consumer_connection import parse_consumer_connection
from rebalance_core.ingest.parse.consumer_progress import parse_consumer_progress
from rebalance_core.ingest.parse.consumer_running_info import JSTACK
from rebalance_core.ingest.parse.consumer_status import parse_consumer_status
from rebalance_core.ingest.parse.mqadmin_export import parse_export, parse_rocksdb_config
from rebalance_core.ingest.parse.offset_stores import (
    parse_consumer_offset_json,
    parse_local_offset_json,
)
from rebalance_core.ingest.parse.topic_list import parse_topic_list
from rebalance_core.ingest.parse.topic_route import parse_topic_route
from rebalance_core.ingest.parse.topic_status import parse_topic_status
from tests.unit.ingest.documents import Parse
from tests.unit.ingest.parse import (
    test_command_output,
    test_config_stores,
    test_local_offsets,
    test_mqadmin_export,
    test_offset_stores,
)
from tests.unit.ingest.parse import test_consumer_status as test_mqadmin_consumer_status
from tests.unit.ingest.parse import test_mqadmin_consumers as test_mqadmin_consumer_connection
from tests.unit.ingest.parse import test_mqadmin_consumers as test_mqadmin_consumer_progress
from tests.unit.ingest.parse import test_mqadmin_export as test_mqadmin_rocksdb_config
from tests.unit.ingest.parse import test_mqadmin_topics as test_mqadmin_cluster_list
from tests.unit.ingest.parse import test_mqadmin_topics as test_mqadmin_topic_list
from tests.unit.ingest.parse import test_mqadmin_topics as test_mqadmin_topic_route
from tests.unit.ingest.parse import test_mqadmin_topics as test_mqadmin_topic_status
from tests.unit.ingest.processor_time import HUGE, linear

FAILED = test_command_output.NOISE + test_command_output.NOT_ONLINE
PROGRESS = test_mqadmin_consumer_progress
STATUS = test_mqadmin_consumer_status
EXPORT = test_mqadmin_export
ROCKSDB = test_mqadmin_rocksdb_config

PARSERS: dict[Parse, list[str]] = {
    parse_topics_json: [test_config_stores.TOPICS_JSON_V4, test_config_stores.TOPICS_JSON_V5],
    parse_subscription_group_json: [
        test_config_stores.GROUPS_V4,
        test_config_stores.GROUPS_V5,
    ],
    parse_consumer_offset_json: [test_offset_stores.V4],
    parse_local_offset_json: [test_local_offsets.TEXT],
    parse_consumer_progress: [PROGRESS.S_5, PROGRESS.S_4, PROGRESS.PLAIN_5, PROGRESS.ALL, FAILED],
    parse_consumer_connection: [test_mqadmin_consumer_connection.TEXT, FAILED],
    parse_consumer_status: [STATUS.LIST, STATUS.DIFFERENT, STATUS.CLIENT + STATUS.JSTACK, FAILED],
    parse_topic_route: [
        test_mqadmin_topic_route.TOPIC_ROUTE_TEXT,
        test_mqadmin_topic_route.LIST,
        FAILED,
    ],
    parse_topic_status: [test_mqadmin_topic_status.TOPIC_STATUS_TEXT, FAILED],
    parse_cluster_list: [
        test_mqadmin_cluster_list.V5,
        test_mqadmin_cluster_list.V4,
        test_mqadmin_cluster_list.MORE,
    ],
    parse_rocksdb_config: [
        ROCKSDB.LOCAL + ROCKSDB.OFFSETS,
        ROCKSDB.LOCAL + ROCKSDB.LINES,
        ROCKSDB.LOCAL + ROCKSDB.FAILED,
        ROCKSDB.ALL,
        FAILED,
    ],
    parse_store_listing: [test_config_stores.STOCK],
    parse_topic_list: [test_mqadmin_topic_list.TOPIC_LIST_TEXT],
    parse_export: [EXPORT.METRICS, EXPORT.METADATA, EXPORT.ONE_BROKER, EXPORT.CONFIGS, FAILED],
}
EACH_PARSER = pytest.mark.parametrize("parse", PARSERS, ids=lambda parse: parse.__name__)

CASES, MANY_CASES = 300, 10_000

# Headers, rules, noise, and lines that upstream always prints.
NOISE_STARTS = [line[:6] for line in test_command_output.NOISE.splitlines()]
STATES_NOTHING = (
    "#",
    "For more",
    "See http",
    "\ufeff#",
    "---",
    "Total:",
    "Rebalance OK",
    *NOISE_STARTS,
)

Damage = Callable[[random.Random, str], str]


def cut(chance: random.Random, text: str) -> str:
    start, end = sorted(chance.choices(range(len(text) + 1), k=2))
    return text[start:end] if chance.random() < 0.5 else text[:end]


def flip_bytes(chance: random.Random, text: str) -> str:
    data = bytearray(text.encode(errors="surrogateescape"))
    for _ in range(chance.randrange(1, 6)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return data.decode(errors=chance.choice(["replace", "surrogateescape", "ignore"]))


def repeat_lines(chance: random.Random, text: str) -> str:
    lines = text.split("\n")
    at = chance.randrange(len(lines))
    return "\n".join(lines[:at] + [lines[at]] * chance.randrange(2, 50) + lines[at:])


def shuffle_lines(chance: random.Random, text: str) -> str:
    lines = text.split("\n")
    chance.shuffle(lines)
    return "\n".join(lines)


def insert(chance: random.Random, text: str) -> str:
    odd = ["\x00", "\x1b[31m", "\x1b[", "\r", "\u2028", "\ufeff", "\udc80", "\x85", "\U0001f600"]
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice(odd) * chance.randrange(1, 4) + text[at:]


def swap_characters(chance: random.Random, text: str) -> str:
    at = chance.randrange(len(text))
    return text[:at] + chance.choice('{}[]":,0-9 \t\n\\@%.e#') + text[at + 1 :]


def stretch(chance: random.Random, text: str) -> str:
    at = chance.randrange(len(text))
    return text[:at] + text[at] * chance.choice([3, 70, 5_000]) + text[at:]


def bury(chance: random.Random, text: str) -> str:
    at = chance.randrange(len(text))
    return text[:at] + chance.choice(["{", "[", '{"a":', "{{"]) * 2_000 + text[at:]


def splice(chance: random.Random, text: str) -> str:
    other = chance.choice(chance.choice(list(PARSERS.values())))
    return cut(chance, text) + cut(chance, other)


DAMAGES: list[Damage] = [
    *[cut, flip_bytes, repeat_lines, shuffle_lines, insert],
    *[swap_characters, stretch, bury, splice],
]


def damage(chance: random.Random, texts: list[str]) -> str:
    text = chance.choice(texts)
    for _ in range(chance.randrange(1, 4)):
        text = chance.choice(DAMAGES)(chance, text) if text else text
    return text


def check(results: list[Fact | Unread], text: str) -> None:
    """What holds of every answer, whatever was asked."""
    for result in results:
        assert result.source.split(":")[0] == "some/file"
        if isinstance(result, Unread):
            assert len(result.raw) <= RAW_LIMIT
            assert result.code
            assert result.message
            assert (result.raw + result.message).encode()
        else:
            assert json.dumps(result.values, ensure_ascii=False, allow_nan=False).encode()
    lines = text.replace("\x1b[31m", "").partition(JSTACK)[0].split("\n")
    stating = [line for line in lines if not line.startswith(STATES_NOTHING)]
    assert results or not "".join(stating).strip(), "the text went unmentioned"


def fuzz(parse: Parse, seed: int, cases: int) -> None:
    for case in range(cases):
        text = damage(random.Random(f"{seed} {parse.__name__} {case}"), PARSERS[parse])
        try:
            check(parse(text, "some/file"), text)
        except Exception as error:
            error.add_note(f"PYTEST_SEED={seed}, {parse.__name__}, case {case}: {text[:300]!r}")
            raise


@EACH_PARSER
def test_damaged_files(parse: Parse, seed: int) -> None:
    fuzz(parse, seed, CASES)


@pytest.mark.slow
@EACH_PARSER
def test_many_damaged_files(parse: Parse, seed: int) -> None:
    fuzz(parse, seed, MANY_CASES)


@EACH_PARSER
def test_the_texts_themselves_are_read(parse: Parse) -> None:
    for text in PARSERS[parse]:
        assert not [result for result in parse(text, "f") if isinstance(result, Unread)]


HUGE_PIECES = ["a", " ", "{", '\\"', "\x1b[0;", "- ", "x.", "[topic=a, ", "\t", "9"]


@EACH_PARSER
@pytest.mark.parametrize("piece", HUGE_PIECES)
def test_a_line_of_four_megabytes(parse: Parse, piece: str) -> None:
    line = piece * (HUGE // len(piece))
    text = PARSERS[parse][0]
    at = text.index("\n") + 1
    with linear():
        check(parse(f"{text[:at]}{line}{text[at:]}", "some/file"), line)
