"""`explain` as an operator runs it: on a ledger's folders, without Spark."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rebalance_core.cli.explain import LedgerFolder
from rebalance_core.cli.main import main
from rebalance_core.explain.explainer import Explainer
from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue
from tests.recordings.tables import Tables, replayed
from tests.tree import TREE
from tests.unit.explain.ledgers import RECORD, group_rows, write_ledger
from tests.unit.replay.histories import event, join, replay, topic

QUEUE = "OrderTopic/broker-b/1"
AT = "2026-11-21T03:29:30Z"
WORDS = ("--group", "order-service", "--queue", QUEUE, "--at", AT)


@pytest.fixture(scope="module")
def tables() -> Tables:
    return replayed("join-leave")


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory, tables: Tables) -> Path:
    return write_ledger(tmp_path_factory.mktemp("ledger"), tables)


def test_it_runs_without_spark_and_java(ledger: Path) -> None:
    code = "import sys; sys.modules['pyspark'] = None; from rebalance_core.cli.main import main; "
    code += "sys.exit(main('explain'))"
    done = subprocess.run(
        [sys.executable, "-c", code, "--ledger", ledger, *WORDS],
        cwd=TREE,
        env=os.environ | {"JAVA_HOME": "/none"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        f"{QUEUE} of order-service (DefaultCluster) at 2026-11-21 03:29:30"
    )
    assert "startIndex = index * averageSize" in done.stdout
    assert "DIFFERS" not in done.stdout


def test_one_json_object(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("explain", ["--ledger", str(ledger), *WORDS, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["job"] == "explain"
    assert facts["queue"] == {"topic": "OrderTopic", "broker_name": "broker-b", "queue_id": 1}
    assert facts["agrees"]
    holder = facts["holders"][0]
    assert facts["after"]["cid_all"][holder["index"]] == holder["client_id"]
    assert facts["after"]["mq_all"][facts["after"]["queue_index"]] == QUEUE
    assert holder["reason"]["formula"]["values"]["cidAll"] == 3


def test_every_row_of_the_ledger_as_it_is_on_disk(
    ledger: Path, tables: Tables, capsys: pytest.CaptureFixture[str]
) -> None:
    for row in tables["ownership"]:
        queue = f"{row['topic']}/{row['broker_name']}/{row['queue_id']}"
        words = ["--group", row["consumer_group"], "--queue", queue, "--at", str(row["from_ms"])]
        assert main("explain", ["--ledger", str(ledger), *words, "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["agrees"]
        owners = [holder["client_id"] for holder in facts["holders"]]
        assert owners == ([row["client_id"]] if row["client_id"] else [])


SHARED = ("--group", "g", "--at", "9000")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two members pop T, of which each of two brokers has two queues; U is theirs alone."""
    pops = event(0, "REQUEST_MODE", topic="T", detail="POP(share_queue_num=0)")
    tables = replay(
        topic(0, 2),
        topic(0, 2, broker="b"),
        topic(0, 1, name="U"),
        pops,
        join(0, "x", "T", "U"),
        join(0, "y", "T", "U"),
        rebalance_mode="BROKER",
    )
    return write_ledger(tmp_path_factory.mktemp("shared"), tables)


def test_a_shared_queue(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for queue in ("T/a/1", "T/b/-1"):
        assert main("explain", ["--ledger", str(shared), *SHARED, "--queue", queue, "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert (facts["agrees"], facts["holders"]) == (True, [])
        assert [taker["client_id"] for taker in facts["sharing"]["takers"]] == ["x", "y"]
        assert facts["sharing"]["figures"]["min_clients_per_queue"] == 2
    assert main("explain", ["--ledger", str(shared), *SHARED, "--queue", "T/a/-1"]) == 0
    assert "2 clients may take from it; no client owns it alone" in capsys.readouterr().out


def test_a_topic_beside_a_shared_one(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("explain", ["--ledger", str(shared), *SHARED, "--queue", "U/a/0", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["agrees"], facts["sharing"]) == (True, None)
    assert [holder["client_id"] for holder in facts["holders"]] == ["x"]


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Tables]:
    """POP, a proxy, a list with a queue that does not exist, a suspended member, a lost broker."""
    pops = event(0, "REQUEST_MODE", topic="T", detail="POP(share_queue_num=1)")
    listed = {"strategy": "CONFIG(queues=T/a/0|T/a/9|U/b/0)", "rebalance_mode": "CLIENT"}
    tables = replay(
        topic(0, 3),
        topic(0, 3, broker="b"),
        topic(0, 2, "U", "b"),
        pops,
        *(join(0, name, "T", "U") for name in "vwx"),
        join(0, "y", "T", "U", **listed),
        join(50_000, "z", "T", rebalance_mode="PROXY"),
        event(80_000, "CONSUMER_SUSPEND", "x"),
        event(100_000, "BROKER_DOWN", broker_name="b"),
        *(event(150_000, "UNSUBSCRIBE", name, topic="T") for name in "vwxyz"),
        event(200_000, "SUBSCRIBE", "v", topic="T"),
        rebalance_mode="BROKER",
    )
    return write_ledger(tmp_path_factory.mktemp("everything"), tables), tables


def test_what_is_read_of_a_folder_is_enough(everything: tuple[Path, Tables]) -> None:
    folder, tables = everything
    whole, ledger = Explainer(group_rows(tables, "g")), LedgerFolder(str(folder))
    rows = [*tables["ownership"], *tables["pop_reach"]]
    queues = {MessageQueue(r["topic"], r["broker_name"], r["queue_id"]) for r in rows}
    explained = 0
    for at_ms in (epoch["from_ms"] for epoch in tables["epochs"]):
        for queue in sorted(queues):
            try:
                found = whole.explain(queue, at_ms)
            except KeyError:
                with pytest.raises((KeyError, UsageError)):
                    Explainer(ledger.around("c", "g", queue, at_ms)).explain(queue, at_ms)
                continue
            read = ledger.around("c", "g", queue, at_ms)
            assert Explainer(read).explain(queue, at_ms) == found
            assert found.agrees, (queue, at_ms, found)
            explained += 1
    assert explained > 20


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("T/a/9 60000", 0, "1 client may take from it"),
        ("T/a/9 60000", 0, "the queue is not readable, so it is not in mqAll"),
        ("T/a/4 60000", 2, "g cannot read it at 1970-01-01 00:01:00Z; members share the topic"),
        ("T/none/-1 60000", 2, "g cannot read it at 1970-01-01 00:01:00Z; members share the topic"),
        ("T/b/1 160000", 2, "the ledger has it at some times between 1970-01-01 00:00:00Z and now"),
        ("V/b/1 60000", 2, "g never had such a queue; did you mean "),
    ],
)
def test_answers_about_a_group_with_everything(
    words: str,
    code: int,
    said: str,
    everything: tuple[Path, Tables],
    capsys: pytest.CaptureFixture[str],
) -> None:
    queue, at_ms = words.split()
    asked = ["--ledger", str(everything[0]), "--group", "g", "--queue", queue, "--at", at_ms]
    assert main("explain", asked) == code
    printed = capsys.readouterr()
    assert said in (printed.err if code else printed.out)


@pytest.mark.parametrize(
    ("queue", "said"),
    [
        ("T/a/7", "--queue T/a/7: g cannot read it at 1970-01-01 00:00:09Z; members share the"),
        ("T/c/0", "--queue T/c/0: g cannot read it"),
        ("U/a/-1", "no member shares U at 1970-01-01 00:00:09Z"),
        ("T/a/-2", "not TOPIC/BROKER/ID"),
    ],
)
def test_queues_that_no_member_shares(
    queue: str, said: str, shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main("explain", ["--ledger", str(shared), *SHARED, "--queue", queue]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "--group G, the consumer group, is missing"),
        (("--group", "g", "--queue", "T/a", "--at", "noon"), 2, "--queue T/a: not TOPIC/BROKER/ID"),
        (("--group", "g", "--queue", "T/a/0", "--at", "noon"), 2, "epoch milliseconds or RFC 3339"),
        ((*WORDS, "--group", "order-servise"), 2, "did you mean order-service? (1 groups)"),
        ((*WORDS, "--cluster", "DefaultClutser"), 2, "did you mean DefaultCluster?"),
        ((*WORDS, "--queue", "OrderTopic/broker-b/9"), 2, "did you mean OrderTopic/broker-b/"),
        (
            (*WORDS, "--at", "2026-11-20T00:00:00Z"),
            2,
            "from 2026-11-21 03:28:35Z (1795231715717) to",
        ),
        ((*WORDS, "--at", "2026-11-20T00:00:00"), 2, "the time zone is missing"),
    ],
)
def test_mistakes(
    words: tuple[str, ...], code: int, said: str, ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main("explain", ["--ledger", str(ledger), *words]) == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (None, "holds no _run.json of rebalance-core"),
        (RECORD | {"status": "FAILED", "error": "no disk"}, "a run that failed: no disk"),
        (RECORD | {"contract_version": 99}, "upgrade rebalance-core"),
        (RECORD, "has no table epochs: it is not a ledger"),
    ],
)
def test_folders_that_are_no_ledger(
    record: dict[str, object] | None,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if record is not None:
        (tmp_path / "_run.json").write_text(json.dumps(record))
    assert main("explain", ["--ledger", str(tmp_path), *WORDS]) == 4
    assert said in capsys.readouterr().err


def test_what_an_audit_states_of_the_strategy_is_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = TREE / "tests" / "cases" / "data" / "min-02-two-queues-unheld"
    output = str(tmp_path / "audited")
    assert main("audit", ["--collection", str(case), "--output", output]) == 3
    words = ("--group", "G1", "--at", "2025-11-10T04:00:00Z", "--ledger", output)
    capsys.readouterr()
    assert main("explain", [*words, "--queue", "T1/broker-b/2"]) == 0
    text = capsys.readouterr().out
    assert "No file names the strategy of G1" in text
    assert "broker-b:2-3 of T1: no holder" in text
    assert main("explain", [*words, "--queue", "%RETRY%G1/broker-a/0", "--json"]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert any("No file names the strategy" in note for note in notes)
    assert not any("no holder" in note for note in notes)


CLIENT = "10.0.0.21@20375#2074865673561"


def test_a_client_s_pass_in_each_of_its_groups(
    ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--ledger", str(ledger), "--client", CLIENT, "--at", "2026-11-21T03:29:28Z")
    assert main("explain", [*words, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert len(facts["passes"]) == 1
    of_group = {one["consumer_group"]: one for one in facts["passes"]}
    assert all(one["agrees"] for one in facts["passes"])
    assert of_group["order-service"]["pass"]["added"] == {
        "%RETRY%order-service/broker-b/0": 0,
        "OrderTopic/broker-a/3": 11,
    }
    assert main("explain", [*words, "--group", "order-service"]) == 0
    assert "pull requests, after 500 ms: OrderTopic/broker-a/3 from 11" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--client", "10.0.0.21@20375"), "the ledger has no such member; did you mean"),
        (("--client", CLIENT, "--queue", QUEUE), "pass either --queue T/BROKER/ID or --client C"),
        (("--client", CLIENT, "--group", "orders"), "the ledger has no such member"),
        ((), "--group G, the consumer group, is missing"),
    ],
)
def test_what_names_no_pass_is_refused(
    ledger: Path, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main("explain", ["--ledger", str(ledger), *words, "--at", AT]) == 2
    assert said in capsys.readouterr().err
