"""A real cluster on which a listener hung, another slept, and a group was disabled, then mended.

Four looks: before the faults, 3.5 and 11.6 minutes after they began, 4 minutes after they ended.
Each must say what `standstill/truth` says of that moment, and nothing of a healthy group.
"""

import re
import shutil
from pathlib import Path

import pytest

from rebalance_core.ingest.parse.log_lines import SERVER_ZONE, Clock
from tests.recordings.audited import audit_folder
from tests.recordings.cut_logs import cut_log
from tests.recordings.tables import Tables

RECORDING = Path(__file__).with_name("standstill")
LOOKS_MS = (1_796_089_831_000, 1_796_090_041_000, 1_796_090_528_000, 1_796_090_778_000)
"""When the dumps and stores of each look were copied."""
ALL_HANG, OFF, PAUSED = (
    {("COMMIT_STANDS_STILL", "ERROR"), ("CONSUMER_BLOCKED", "WARNING")},
    {("COMMIT_STANDS_STILL", "ERROR"), ("GROUP_DISABLED", "ERROR")},
    {("MEMBER_SUSPENDED", "WARNING")},
)
ONE_HANGS = {("COMMIT_STANDS_STILL", "WARNING"), ("CONSUMER_BLOCKED", "WARNING")}
PLANTED = {
    "g-dead": ALL_HANG,
    "g-hang": ONE_HANGS,
    "g-orderhang": ONE_HANGS,
    "g-off": OFF,
    "g-lost": {("OFFLINE_WITH_LAG", "WARNING")},
}
SAID: tuple[dict[str, set[tuple[str, str]]], ...] = (
    {},
    PLANTED
    | {
        # no answer shows yet that the first message is the same
        "g-hang": {("COMMIT_STANDS_STILL", "WARNING")},
        "g-paused": PAUSED | {("COMMIT_STANDS_STILL", "WARNING"), ("FALLS_BEHIND", "WARNING")},
    },
    PLANTED
    | {
        "g-paused": PAUSED | {("COMMIT_STANDS_STILL", "ERROR")},
        "g-slow": {("FALLS_BEHIND", "WARNING")},
    },
    {},
)
"""The rules above INFO of each group at each look. g-fine, g-order and g-near are healthy."""


@pytest.fixture(scope="module", params=range(len(LOOKS_MS)))
def look(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[int, Tables]:
    """The number of a look, and the audit of everything that it and those before have collected."""
    number: int = request.param
    folder = tmp_path_factory.mktemp("look") / "collection"
    shutil.copytree(RECORDING / "collection", folder)
    for file in sorted(folder.rglob("*")):
        path = file.relative_to(folder).as_posix()
        dated = re.search(r"(?:mqadmin/|config-)(\d{13})", path)
        if file.is_file() and dated and int(dated[1]) > LOOKS_MS[number]:
            file.unlink()
        elif ".log" in file.name:
            cut_log(file, LOOKS_MS[number], Clock(SERVER_ZONE))
    return number, audit_folder(folder)


def test_each_look_says_what_was_planted(look: tuple[int, Tables]) -> None:
    number, audit = look
    said: dict[str, set[tuple[str, str]]] = {}
    for row in audit["findings"]:
        group = row["consumer_group"]
        if row["severity"] != "INFO" and group and not row["rule_id"].startswith("INGEST_"):
            said.setdefault(group, set()).add((row["rule_id"], row["severity"]))
    assert said == SAID[number]


def test_each_cause_is_named(look: tuple[int, Tables]) -> None:
    number, audit = look
    reasons = {
        (row["consumer_group"], row["evidence"]["reason"])
        for row in audit["findings"]
        if row["rule_id"] in ("COMMIT_STANDS_STILL", "FALLS_BEHIND") and "reason" in row["evidence"]
    }
    hung = {(group, "unfinished message") for group in ("g-dead", "g-hang", "g-orderhang")}
    stuck = hung | {("g-off", "disabled"), ("g-paused", "suspended")}
    assert reasons == (set(), stuck, stuck | {("g-slow", "slow listener")}, set())[number]


def test_messages_that_were_deleted_unread_are_counted(look: tuple[int, Tables]) -> None:
    """Of 1,020 in each of 4 queues 20 were read; 336 of the last queue are left."""
    number, audit = look
    lost = {
        (row["consumer_group"], row["evidence"]["deleted_unread"])
        for row in audit["findings"]
        if "deleted_unread" in row["evidence"]
    }
    both = {("g-lost", "3664"), ("g-paused", "3664")}
    assert (lost & both) == (both if number else set())


def test_the_progress_of_each_group(look: tuple[int, Tables]) -> None:
    number, audit = look
    words = {row["consumer_group"]: row["progress"] for row in audit["group_verdicts"]}
    assert {words[group] for group in ("g-fine", "g-order", "g-near")} == {"MOVES"}
    if number == len(LOOKS_MS) - 1:
        assert {words[group] for group in PLANTED} == {"MOVES"}
