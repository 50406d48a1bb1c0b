"""A copy with other names: their order stays, nothing else does, and only the key leads back."""

import gzip
import json
import random
import re
import stat
import time
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalance_core.ingest.collection_settings import read_settings
from rebalance_core.ingest.redaction import Key, Names, Redaction, make_key, redact_collection
from rebalance_core.model.errors import InputRefused, OutputExists, UsageError
from rebalance_core.model.queue import sort_client_ids

HOSTS = st.sampled_from(
    [
        "10.0.0.1",
        "10.0.0.10",
        "10.0.0.100",
        "9.9.9.9",
        "shop-1",
        "Shop",
        "2001:db8::1",
        "\U0001f600h",
    ]
)
INSTANCES = st.sampled_from(
    [
        "7",
        "77",
        "7#1",
        "7#10",
        "77#2",
        "DEFAULT",
        "worker",
        "Worker",
        "#x",
        "",
        "7@unit",
        "ￗ",
        "\U0001f600",
    ]
)


ODD = st.sampled_from(
    ["abc", "@", "x@y@z", "10.0.0.1", "10.0.0.1@", "shop-1@0@1@x", "\ud7ff", "é@1"]
)


@settings(deadline=None)  # of a busy machine
@given(st.sets(st.builds("{}@{}".format, HOSTS, INSTANCES) | ODD, max_size=12))
def test_client_ids_sort_in_java_as_they_did(client_ids: set[str]) -> None:
    names = Names()
    for client_id in client_ids:
        names.add_client(client_id)
    key = make_key(names)
    renamed = [key.client(client_id) for client_id in sort_client_ids(client_ids)]
    assert renamed == sort_client_ids(renamed)
    assert len(set(renamed)) == len(client_ids)


def test_what_is_one_address_or_process_stays_one() -> None:
    names = Names()
    for client_id in ("10.0.0.1@7#1", "10.0.0.1@7#2", "10.0.0.2@7#1"):
        names.add_client(client_id)
    key = make_key(names)
    one, two, three = (key.client(c) for c in ("10.0.0.1@7#1", "10.0.0.1@7#2", "10.0.0.2@7#1"))
    assert re.fullmatch(r"10(\.\d{3}){3}@\d+#\d+", one)
    assert one.partition("#")[0] == two.partition("#")[0]
    assert one.partition("@")[2] == three.partition("@")[2]


def test_names_are_drawn_anew_each_time() -> None:
    names = Names(hosts={"10.0.0.1"}, instances={"7#1"}, folders={"shop"})
    drawn = {json.dumps(vars(make_key(names)), default=dict) for _ in range(5)}
    assert len(drawn) == 5


def redaction_of(*texts: str, kept: set[str] | None = None) -> Redaction:
    """A redaction of what the client ids among the texts name."""
    names = Names(kept=kept or set())
    for text in texts:
        names.add_client(text)
    return Redaction(make_key(names), names)


@pytest.mark.parametrize(
    "text",
    [
        "TopicA@GroupB: 5, java.lang.Object@1f2e, room1@broker-a",
        "version 5.3.3, 2026-11-21 11:28:55,123 at a.b.C.d(C.java:1234), 1.2.3.4.5",
        "DefaultMQPushConsumerImpl::start, offset:12345, %RETRY%G@G",
    ],
)
def test_what_only_looks_like_a_name_stays(text: str) -> None:
    assert redaction_of("10.0.0.1@7", kept={"room1@broker-a"}).text(text) == text


def test_an_id_is_one_wherever_it_stands() -> None:
    client = "10.0.0.1@7#12"
    redaction = redaction_of(client)
    name = redaction.text(client)
    for form in ("clientId={},", "[{}]", "ClientID:{}, x", "10.0.0.1@{}@LOCAL", "({}.)", '"{}"'):
        shown = redaction.text(form.format(client))
        assert name in shown
        assert "10.0.0.1" not in shown
    assert redaction.path(f"mqadmin/1-consumerStatus-g/{client}.txt").endswith(f"/{name}.txt")
    assert redaction.text("instanceName='7#12'") == f"instanceName='{name.partition('@')[2]}'"


def test_columns_stay_where_they_are_if_they_can() -> None:
    redaction = redaction_of("10.0.0.1@7")
    row = f"{'10.0.0.1@7':36} 1.1.1.1:5"
    assert redaction.text(row, dump=True).index("1.1.1.1") == row.index("1.1.1.1")
    assert re.match(r"\S+ 5", redaction.text("10.0.0.1@7 5", dump=True))


@pytest.mark.parametrize("piece", ["a@", "1.", "1#", "ab:", "%", "@", "10.0.0.1@"])
def test_no_line_costs_more_than_its_length(piece: str) -> None:
    redaction = redaction_of("10.0.0.1@7")
    begun = time.process_time()
    redaction.text(piece * (100_000 // len(piece)), dump=True)
    assert time.process_time() - begun < 5  # minutes where it grows by the square


JOIN = (
    "2026-11-21 11:28:35 INFO t - new consumer connected, group: g CONSUME_PASSIVELY CLUSTERING "
    "channel: ClientChannelInfo [channel=[id: 0x1, L:/10.9.9.9:10911 - R:/{ip}:4242], "
    "clientId={ip}@{instance}, language=JAVA, version=479, lastUpdateTimestamp=1795231715100]\n"
)
LOG = (
    "2026-11-21 11:28:36 INFO t - user.home=/home/alice, user.name=alice, brokerIP1=10.9.9.9\n"
    "2026-11-21 11:28:36 INFO t - connect to mq1.example.org/10.9.9.9:9876, ns.example.org:9876\n"
    "2026-11-21 11:28:37 INFO t - msgId 0A000001000078BF8C8C8C8C8C8C0001, at [2001:db8::7]:10911\n"
)
SECRETS = (
    "10.0.0.1",
    "10.0.0.2",
    "10.9.9.9",
    "alice",
    "example.org",
    "shop-pod",
    "2078#2063",
    "0A000001",
    "2001:db8",
    "mq7",
    "payroll",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "collection"
    files = {
        "collection.toml": 'cluster = "C"\nadmin_time_zone = "UTC"\n[expected]\nbrokers = ["a"]\n'
        '[time_zones]\n"clients/shop-*/*" = "Asia/Shanghai"\n[clients."10.0.0.1@*"]\n'
        'wait_interval_ms = 5000\n[[failed]]\nwhat = "clients/shop-pod"\n'
        'why = "alice@mq7:/home/alice/logs gave nothing"\n',
        "brokers/a/broker.log": LOG
        + JOIN.format(ip="10.0.0.1", instance="2078#2063")
        + JOIN.format(ip="10.0.0.2", instance="payroll")
        + JOIN.format(ip="10.0.0.2", instance="payroll").replace("clientId=10.0.0.2", "clientId=")
        + JOIN.format(ip="10.0.0.2", instance="1").replace(
            "clientId=10.0.0.2", "clientId=localhost"
        ),
        "mqadmin/1795231800000-consumerConnection-g-a.txt": "#ClientId  #ClientAddr  #Language  "
        "#Version\n10.0.0.1@2078#2063  10.0.0.1:4242  JAVA  V5_3_3\n\nBelow is subscription:\n"
        "#Topic  #SubExpression\nT  *\n\nConsumeType: CONSUME_PASSIVELY\nMessageModel: CLUSTERING\n"
        "ConsumeFromWhere: CONSUME_FROM_LAST_OFFSET\n",
        "mqadmin/1795231800000-consumerStatus-g/10.0.0.2@payroll.txt": "#Consumer Properties#\n",
        "clients/shop-pod/app.properties": "password=alice",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    packed = root / "clients/shop-pod/rocketmq_client.log.1.gz"
    packed.write_bytes(gzip.compress(b"2026-11-21 11:28:35,1 INFO x - 10.0.0.2@payroll is here\n"))
    return root


def redacted(folder: Path) -> tuple[Path, Path]:
    output, key = folder.with_name("redacted"), folder.with_name("key.json")
    redact_collection(folder, output, key)
    return output, key


def content(path: Path) -> str:
    return (
        gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    ).decode()


def test_no_file_and_no_name_of_a_file_holds_what_was_redacted(folder: Path) -> None:
    output, _ = redacted(folder)
    files = [path for path in output.rglob("*") if path.is_file()]
    assert len(files) == 5  # all that ingest reads
    texts = [f"{path.relative_to(output)}\n{content(path)}" for path in files]
    assert [(s, t) for s in SECRETS for t in texts if s in t] == []


def test_names_are_the_same_in_all_files_and_lead_back_by_the_key_alone(folder: Path) -> None:
    output, path = redacted(folder)
    key = json.loads(path.read_text())
    (status,) = output.glob("mqadmin/*-consumerStatus-g/*")
    (log,) = output.glob("clients/*/rocketmq_client.log.1.gz")
    assert status.stem in content(log)
    assert status.stem in content(output / "brokers/a/broker.log")
    host, instance = status.stem.split("@")
    assert {was for was, name in key["hosts"].items() if name == host} == {"10.0.0.2"}
    assert {was for was, name in key["heads"].items() if name == instance} == {"payroll"}
    assert key["folders"] == {"shop-pod": log.parent.name}


def test_settings_name_what_the_copy_names(folder: Path) -> None:
    output, _ = redacted(folder)
    written = read_settings(output)
    assert written.redacted
    (log,) = output.glob("clients/*/rocketmq_client.log.1.gz")
    assert written.zone_of(log.relative_to(output).as_posix()) == "Asia/Shanghai"
    assert [dict(table) for table in written.clients.values()] == [{"wait_interval_ms": 5000}]
    (failed,) = written.failed
    assert failed.what == f"clients/{log.parent.name}"
    tomllib.loads((output / "collection.toml").read_text())


def test_the_key_is_for_its_owner_is_never_replaced_and_lies_elsewhere(folder: Path) -> None:
    output, key = redacted(folder)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    before = key.read_bytes()
    with pytest.raises(OutputExists, match="a key is never replaced"):
        redact_collection(folder, folder.with_name("again"), key)
    assert key.read_bytes() == before
    other = folder.with_name("other.json")
    with pytest.raises(OutputExists, match="is not empty"):
        redact_collection(folder, output, other)
    link = folder.with_name("link")
    link.symlink_to(folder.with_name("fresh"), target_is_directory=True)
    for bad in (folder / "key", folder.with_name("fresh") / "key", link / "key"):
        with pytest.raises(UsageError, match="name a file elsewhere"):
            redact_collection(folder, folder.with_name("fresh"), bad)
    for bad in (folder / "inside", folder.parent, folder):
        with pytest.raises((UsageError, OutputExists)):
            redact_collection(folder, bad, Path(other))
    assert not other.exists()


@pytest.mark.parametrize("table", [None, ["shop-1"], {"shop-1": 7}], ids=str)
def test_a_key_whose_names_are_none_is_refused(tmp_path: Path, table: object) -> None:
    key = tmp_path / "key.json"
    make_key(Names()).write(key)
    assert Key.read(key).hosts == {}
    document = json.loads(key.read_text())
    key.write_text(json.dumps(document | {"hosts": table}))
    with pytest.raises(InputRefused, match="hosts is not a table of names"):
        Key.read(key)


def test_a_log_that_cannot_be_read_to_its_end_is_named(folder: Path) -> None:
    text = "".join(
        f"2026-11-21 11:28:35 INFO t - {random.Random(n).random()}\n" for n in range(999)
    )
    whole = gzip.compress(text.encode())
    (folder / "brokers/a/broker.1.log.gz").write_bytes(whole[: len(whole) // 2])
    output, _ = redacted(folder)
    failed = {one.what: one.why for one in read_settings(output).failed}
    assert "cannot be read to its end" in failed["brokers/a/broker.1.log.gz"]
