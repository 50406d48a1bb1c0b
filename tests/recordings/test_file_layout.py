"""How logs are cut into files, and how their lines end, changes nothing that is made of them."""

import random
import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.recordings.rewritten import Files, files_of, ingested
from tests.recordings.tables import Tables

RECORDINGS = ("nightly", "scale-out-4.9", "slave")
HEAD = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^ ]* (?:INFO|WARN|ERROR) ")
NOISE = (
    b"%sThread_1 - some text about group: and clientId=\n"
    b"java.lang.RuntimeException: no\n\tat org.apache.rocketmq.Foo.bar(Foo.java:12)\n"
    b"Caused by: java.io.IOException: Connection reset by peer\n\t... 12 more\n"
)


def of_logs(rewrite: Callable[[str, list[bytes]], Files]) -> Callable[[Files], Files]:
    """Each log made into other files."""

    def rewritten(files: Files) -> Files:
        made: Files = {}
        for name, content in files.items():
            log = name.endswith(".log") and not name.startswith("proxy/")
            made |= rewrite(name, content.splitlines(keepends=True)) if log else {name: content}
        return made

    return rewritten


def rotated_name(name: str, index: int) -> str:
    """As RocketMQ's logback files name it: 1 is the last one rotated."""
    folder, _, log = name.rpartition("/")
    stem = log.removesuffix(".log")
    if stem == "rocketmq_client":
        return f"{folder}/other_days/{stem}-{index}.log.gz"
    return f"{folder}/otherdays/{stem}.{index}.log.gz"


@of_logs
def rotated(name: str, lines: list[bytes]) -> Files:
    """Seven cuts anywhere, most of them inside a second."""
    heads = [number for number, line in enumerate(lines) if HEAD.match(line)][1:]
    cuts = sorted(random.Random(name).sample(heads, min(7, len(heads))))
    edges = [0, *cuts, len(lines)]
    parts = [b"".join(lines[a:b]) for a, b in pairwise(edges)]
    names = [rotated_name(name, index) for index in range(len(cuts), 0, -1)]
    return dict(zip([*names, name], parts, strict=True))


@of_logs
def dated(name: str, lines: list[bytes]) -> Files:
    """Cut as logrotate does it with ``dateext``."""
    cut = next((n for n in range(len(lines) // 2, len(lines)) if HEAD.match(lines[n])), 0)
    return {f"{name}-20261120.gz": b"".join(lines[:cut]), name: b"".join(lines[cut:])}


@of_logs
def copied_twice(name: str, lines: list[bytes]) -> Files:
    return {rotated_name(name, 1): b"".join(lines), name: b"".join(lines)}


@of_logs
def overlapping(name: str, lines: list[bytes]) -> Files:
    """The log was rotated, and copied before and after."""
    third = len(lines) // 3
    older, newer = lines[: 2 * third], lines[third:]
    return {rotated_name(name, 1): b"".join(older), name: b"".join(newer)}


@of_logs
def noisy(name: str, lines: list[bytes]) -> Files:
    draws, noisier = random.Random(name), []
    for line in lines:
        head = HEAD.match(line)
        if head and draws.random() < 0.1:
            noisier.append(NOISE % head[0])
        noisier.append(line)
    return {name: b"".join(noisier)}


def ended_by_cr_lf(files: Files) -> Files:
    return {name: re.sub(rb"\r?\n", b"\r\n", content) for name, content in files.items()}


@cache
def as_recorded(recording: str) -> Tables:
    with TemporaryDirectory() as folder:
        return ingested(files_of(recording), Path(folder))


@pytest.mark.parametrize("recording", RECORDINGS)
@pytest.mark.parametrize(
    "rewrite", [rotated, dated, copied_twice, overlapping, noisy, ended_by_cr_lf]
)
def test_other_files_of_the_same_lines_make_the_same_tables(
    recording: str, rewrite: Callable[[Files], Files], tmp_path: Path
) -> None:
    assert as_recorded(recording)["cluster_events"]
    found = ingested(rewrite(files_of(recording)), tmp_path)
    for name, table in as_recorded(recording).items():
        assert found[name] == table, name
