"""Collections of dumps alone: no log shows the past, and the last round shows the present."""

import shutil
from pathlib import Path

import pytest

from tests.recordings.audited import audit_folder, audited
from tests.recordings.tables import DATA, Row

DECIDED = ("EQUAL", "SHARED", "DIFFERS")


def dumps_of(recording: str, folder: Path) -> Path:
    """A copy of the collection without any log or store."""
    collection, copy = DATA / recording / "collection", folder / recording
    shutil.copytree(collection / "mqadmin", copy / "mqadmin")
    shutil.copy(collection / "collection.toml", copy)
    return copy


def by_group(rows: list[Row]) -> dict[str, Row]:
    return {row["consumer_group"]: row for row in rows if row["members"] or row["dumps"]}


@pytest.mark.parametrize(
    ("recording", "decided"),
    [
        ("join-leave-5.5", 3),
        ("nightly", 8),
        ("pathologies", 6),
        ("pop", 4),
        ("scale-out-4.9", 3),
        ("start-offsets", 5),
    ],
)
def test_the_last_round_decides_what_the_logs_decide(
    recording: str, decided: int, tmp_path: Path
) -> None:
    whole = by_group(audited(recording)["group_verdicts"])
    bare = by_group(audit_folder(dumps_of(recording, tmp_path))["group_verdicts"])
    assert bare.keys() <= whole.keys()
    verdicts = {group: row["verdict"] for group, row in bare.items()}
    assert sum(verdict in DECIDED for verdict in verdicts.values()) == decided
    for group, verdict in verdicts.items():
        if verdict in (*DECIDED, "OFFLINE"):
            assert bare[group]["basis"] == "DUMPS"
            # a change that a log shows was under way: here the queues have their new owners already
            assert whole[group]["verdict"] in (verdict, "UNSTABLE")
            later = (whole[group]["changed_ms"] or 0) > (bare[group]["dumped_ms"] or 0)
            assert later or bare[group]["members"] == whole[group]["members"]


def test_without_a_list_of_members_nothing_is_decided(tmp_path: Path) -> None:
    copy = dumps_of("nightly", tmp_path)
    for path in (copy / "mqadmin").glob("*consumerConnection*-broker-b*"):
        path.unlink()
    rows = audit_folder(copy)["group_verdicts"]
    assert {row["verdict"] for row in rows if row["members"]} == {"UNKNOWN"}


def test_findings_above_info_are_those_of_the_whole_collection(tmp_path: Path) -> None:
    whole = {
        (row["rule_id"], row["consumer_group"])
        for recording in ("nightly", "pathologies")
        for row in audited(recording)["findings"]
        if row["severity"] != "INFO"
    }
    found = {
        (row["rule_id"], row["consumer_group"])
        for recording in ("nightly", "pathologies")
        for row in audit_folder(dumps_of(recording, tmp_path))["findings"]
        if row["severity"] != "INFO" and row["consumer_group"]
        if not row["rule_id"].startswith("INGEST_")
    }
    found.remove(("OFFLINE_WITH_LAG", "report-old"))  # only the stores show that it was deleted
    assert found <= whole
    assert {"DUPLICATE_CLIENT_ID", "IDLE_MEMBER", "OFFLINE_WITH_LAG"} <= {rule for rule, _ in found}


def test_brokers_do_not_list_the_clients_of_a_proxy(tmp_path: Path) -> None:
    """Four groups popped through a proxy while each broker answered that they are not online."""
    case = DATA.parents[1] / "cases" / "data" / "revive-held-up"
    copy = tmp_path / "revive-held-up"
    shutil.copytree(case / "mqadmin", copy / "mqadmin")
    groups = ("held", "late-ack", "quick", "wait-one")

    def verdicts() -> list[Row]:
        rows = audit_folder(copy)["group_verdicts"]
        return [row for row in rows if row["consumer_group"] in groups]

    rows = verdicts()
    assert [row["verdict"] for row in rows] == ["UNKNOWN"] * 4
    assert all(row["settled_by"].startswith("Copy the logs of the proxies") for row in rows)
    # the first round alone does not show whether anyone still pops
    for path in (copy / "mqadmin").iterdir():
        if path.name > "17959746":
            path.unlink()
    assert [row["verdict"] for row in verdicts()] == ["OFFLINE"] * 4


def test_a_group_with_offsets_of_its_own_is_judged_by_these(tmp_path: Path) -> None:
    """Some clients pop, as the revive logs show, and the offline groups read nothing."""
    copy = dumps_of("nightly", tmp_path)
    names = ("Topic", "Broker Name", "QID", "Broker Offset", "Consumer Offset", "Diff", "Inflight")
    head = "  ".join(f"#{name}" for name in (*names, "LastTime"))
    row = "rmq_sys_REVIVE_LOG_DefaultCluster  broker-a  0  {end}  {end}  0  0  2026-11-21 03:00:00"
    asked = sorted(int(path.name[:13]) for path in (copy / "mqadmin").iterdir())
    for ms, end in ((asked[0], 8), (asked[-1] - 5_000, 12)):
        name = f"{ms}-consumerProgress-CID_RMQ_SYS_REVIVE_GROUP.txt"
        (copy / "mqadmin" / name).write_text(f"{head}\n{row.format(end=end)}\n")
    verdicts = {
        row["consumer_group"]: row["verdict"] for row in audit_folder(copy)["group_verdicts"]
    }
    assert {name: verdicts[name] for name in ("batch-loader", "legacy-reader", "report-old")} == {
        "batch-loader": "OFFLINE",
        "legacy-reader": "OFFLINE",
        "report-old": "OFFLINE",
    }
