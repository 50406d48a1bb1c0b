"""Answers that are older than their names state."""

import shutil
from pathlib import Path

import pytest

from rebalance_core.ingest.collection import open_collection
from rebalance_core.ingest.in_process import read_collection, understood
from tests.recordings.tables import DATA

SECOND_MS = 1_000
HEADS = {
    "topicStatus": "#Broker Name  #QID  #Min Offset  #Max Offset  #Last Updated",
    "consumerProgress": (
        "#Topic  #Broker Name  #QID  #Broker Offset  #Consumer Offset  #Diff  #Inflight  #LastTime"
    ),
}
SETTINGS = """\
cluster = "C"
admin_time_zone = "UTC"

[expected]
brokers = ["broker-a"]
"""
BEGUN_MS = 1_795_230_000_000


def old(folder: Path) -> dict[str, str]:
    """Why each answer is set apart, by the name after its time."""
    collection = open_collection(folder)
    rows = understood(collection, read_collection(collection).stats)
    refused = [row for row in rows if row["status"] == "REFUSED"]
    return {row["name"].partition("-")[2]: row["reason"] for row in refused}


def test_a_client_s_answer_that_repeats_an_earlier_one_is_set_apart(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(DATA / "shared-later" / "collection", tmp_path / "shared"))
    rounds = sorted((folder / "mqadmin").glob("*-consumerStatus-orders-app"))
    name = "10.0.0.1@app.txt"
    assert (rounds[0] / name).exists()
    shutil.copy(rounds[0] / name, rounds[-1] / name)
    earlier = (rounds[0] / name).relative_to(folder)
    reason = f"it repeats {earlier}: no pull of the client is newer"
    assert old(folder) == {f"consumerStatus-orders-app/{name}": reason}
    # other figures show that the client answered anew
    newer = (rounds[0] / name).read_text().replace("cachedMsgCount=0", "cachedMsgCount=1")
    (rounds[-1] / name).write_text(newer)
    assert not old(folder)
    # a client that had stopped before the earlier answer did not pull in between either
    stopped = rounds[0].with_name(f"{int(rounds[0].name[:13]) + 100_000}{rounds[0].name[13:]}")
    shutil.rmtree(stopped, ignore_errors=True)
    rounds[0].rename(stopped)
    (rounds[-1] / name).write_bytes((stopped / name).read_bytes())
    assert not old(folder)


def put(folder: Path, second: int, command: str, ends: list[int], updated: str = "") -> str:
    """An answer with the ends of the queues of T, all of which group G has read."""
    lines = [HEADS[command]]
    for queue_id, end in enumerate(ends):
        if command == "topicStatus":
            lines.append(f"broker-a  {queue_id}  0  {end}  {updated or '2026-11-21 03:00:00,000'}")
        else:
            lines.append(f"T  broker-a  {queue_id}  {end}  {end}  0  0  2026-11-21 03:00:00")
    about = "T" if command == "topicStatus" else "G"
    name = f"mqadmin/{BEGUN_MS + second * SECOND_MS}-{command}-{about}.txt"
    (folder / name).write_text("\n".join(lines) + "\n")
    return name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mqadmin").mkdir()
    (tmp_path / "collection.toml").write_text(SETTINGS)
    return tmp_path


@pytest.mark.parametrize("second", [899, 901])
def test_ends_that_fell_and_are_there_again_in_the_same_minute(folder: Path, second: int) -> None:
    """Whichever of the two commands of the second round was answered first."""
    earlier = put(folder, 0, "consumerProgress", [5, 7])
    put(folder, 1, "topicStatus", [5, 7])
    put(folder, 600, "topicStatus", [5, 9])
    other = put(folder, second, "topicStatus", [5, 9])
    put(folder, 900, "consumerProgress", [5, 7])
    why = f"it repeats {earlier}, and {other}, of the same minute, has a higher end of T broker-a:1"
    assert old(folder) == {"consumerProgress-G.txt": why}


def test_ends_that_grew_before_the_answer_by_the_time_of_the_last_message(folder: Path) -> None:
    earlier = put(folder, 0, "consumerProgress", [5, 7])
    put(folder, 900, "consumerProgress", [5, 7])
    other = put(folder, 901, "topicStatus", [5, 9], "2026-11-21 03:14:30,000")
    why = f"it repeats {earlier}, and {other}, of the same minute, has a higher end of T broker-a:1"
    assert old(folder) == {"consumerProgress-G.txt": why}
    # messages that came between the two answers, or at about the time of the first, change none
    put(folder, 901, "topicStatus", [5, 9], "2026-11-21 03:15:00,000")
    assert not old(folder)


def test_answers_of_one_round_cross_each_other(folder: Path) -> None:
    """The command that began first was answered last."""
    put(folder, 0, "topicStatus", [5, 7])
    put(folder, 895, "consumerProgress", [5, 9])
    put(folder, 896, "topicStatus", [5, 7])
    assert not old(folder)


def test_ends_that_may_have_fallen(folder: Path) -> None:
    """The topic was created anew, and later messages brought it to the same ends."""
    put(folder, 0, "consumerProgress", [5, 7])
    put(folder, 600, "topicStatus", [5, 9])
    put(folder, 900, "consumerProgress", [5, 7])
    put(folder, 901, "topicStatus", [5, 8])
    assert not old(folder)
    # as does an answer that no earlier one has in each offset
    put(folder, 901, "topicStatus", [5, 9])
    put(folder, 900, "consumerProgress", [5, 8])
    assert not old(folder)
