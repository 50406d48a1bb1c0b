"""The distributed ingest against the one in one process, which the recordings judge."""

import gzip
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from rebalance_core.contracts import COLLECTED_TABLES
from rebalance_core.contracts.opening_state import EVIDENCE_FILES
from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.collection import SNIFFED, Collection, open_collection
from rebalance_core.ingest.in_process import ingest_collection
from rebalance_core.ingest.opening_evidence import OpeningEvidence, with_opening
from rebalance_core.ingest.parse import log_blocks
from rebalance_core.model.errors import InputRefused, StoreFailed, UsageError
from rebalance_core.process.ingest import ingest_and_write
from rebalance_core.process.runtime import HERE, Runtime
from rebalance_core.spark.collection_files import refuse_unread
from rebalance_core.spark.framed_lines import FramedLines
from rebalance_core.spark.hadoop_folder import HadoopPlace, _os_errors
from rebalance_core.spark.ingest import ingest, ingested_tables
from rebalance_core.spark.runtime import SparkRuntime
from rebalance_core.spark.steps import read_logs
from rebalance_core.storage.place import place_of
from rebalance_core.storage.store_answers import is_of_store
from tests.recordings.nights import two_nights
from tests.recordings.rewritten import files_of, written
from tests.recordings.tables import DATA
from tests.recordings.wrappings import wrapped_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUBSCRIPTION = (
    "SubscriptionData [classFilterMode=false, topic=T, subString={}, tagsSet=[], codeSet=[], "
    "subVersion=5, expressionType=TAG]"
)
TROUBLE_AT_BROKER = [
    f"2026-11-21 11:39:{second:02} WARN t - {message}\n"
    for second in (1, 1, 1, 2, 59)
    for message in (
        "the consumer's subscription not exist, group: never, topic:T",
        "subscription changed, group: never OLD: "
        f"{SUBSCRIPTION.format('a')} NEW: {SUBSCRIPTION.format('b')}",
        "[NOTIFYME]update consumer offset less than store. clientHost=1.1.1.1:1, key=T@never, "
        f"queueId=0, requestOffset={second}, storeOffset=90",
    )
]
"""Repeated within a second: the job keeps one of each."""
TROUBLE_OF_CLIENT = [
    f"2026-11-21 11:{minute}:01.{millis} WARN  [7] [t] [o.a.r#?:?] - {message}\n"
    for minute in (39, 40, 49)
    for millis in (100, 200, 900)
    for message in (
        "send heart beat to broker[broker-a 0 1.1.1.1:1] failed",
        "doRebalance, never T, get consumer id list failed",
        "execute the pull request exception, group=never, messageQueue=MessageQueue [topic=T, "
        "brokerName=broker-a, queueId=0]\norg.apache.rocketmq.client.exception.MQBrokerException: "
        "CODE: 16  DESC: the consumer group[never] can not consume by broadcast way",
    )
]


def collection_of(folder: Path, *recordings: str) -> Path:
    for name in recordings:
        shutil.copytree(DATA / name / "collection", folder, dirs_exist_ok=True)
    return folder


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(sorted((k, plain(v)) for k, v in value.items() if v is not None))
    return tuple(map(plain, value)) if isinstance(value, list) else value


def assert_same(frame: "DataFrame", expected: list[dict[str, Any]], name: str) -> None:
    rows = [plain(row.asDict(recursive=True)) for row in frame.collect()]
    assert sorted(rows, key=repr) == sorted(map(plain, expected), key=repr), name


def test_request_modes_are_those_that_a_single_process_finds(
    spark: "SparkSession", tmp_path: Path
) -> None:
    folder = collection_of(tmp_path / "pop", "pop")
    expected: Any = ingest_collection(folder).tables
    with ingested_tables(spark, open_collection(folder)) as done:
        for name in ("cluster_events", "consumer_groups", "findings", "rejected"):
            assert_same(done[name], expected.get(name, []), name)


def test_copies_beside_a_rocksdb_have_the_dates_that_a_single_process_finds(
    spark: "SparkSession", tmp_path: Path
) -> None:
    folder = collection_of(tmp_path / "rocksdb", "rocksdb")
    expected: Any = ingest_collection(folder).tables
    with ingested_tables(spark, open_collection(folder)) as done:
        for name in ("committed_offsets", "observed_facts", "findings", "rejected"):
            assert_same(done[name], expected.get(name, []), name)


@pytest.mark.parametrize("form", ["cri-parts", "spring-3"])
def test_wrapped_logs_are_those_that_a_single_process_reads(
    form: str, spark: "SparkSession", tmp_path: Path
) -> None:
    """Line numbers too, however small the splits are."""
    folder = written(wrapped_files(files_of("pathologies"), form), tmp_path / form)
    expected: Any = ingest_collection(folder).tables
    spark.conf.set("spark.sql.files.maxPartitionBytes", "16384")
    try:
        with ingested_tables(spark, open_collection(folder)) as done:
            for name in COLLECTED_TABLES:
                assert_same(done[name], expected.get(name, []), name)
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")


def test_every_table_is_the_one_that_a_single_process_makes(
    spark: "SparkSession", tmp_path: Path
) -> None:
    folder = collection_of(tmp_path / "a", "pathologies")
    with (folder / "brokers/broker-a/broker.log").open("a") as log:
        log.write("2026-11-21 11:39:00 INFO t - new consumer connected, group: g\n")
        log.writelines(TROUBLE_AT_BROKER)
    (folder / "clients/app").mkdir()
    (folder / "clients/app/rocketmq_client.log").write_text("".join(TROUBLE_OF_CLIENT))
    expected: Any = ingest_collection(folder)
    with ingested_tables(spark, open_collection(folder)) as done:
        for name in COLLECTED_TABLES:
            assert_same(done[name], expected.tables.get(name, []), name)
    written = ingest_and_write(
        open_collection(folder), f"{tmp_path}/out", runtime=SparkRuntime(spark)
    )
    here = ingest_and_write(open_collection(folder), place_of(f"{tmp_path}/here"))
    assert written == here
    times = {
        (row["kind"], row["first_ms"]): row["times"]
        for row in expected.tables["observed_facts"]
        if row["consumer_group"] == "never" or row["kind"] == "HEARTBEAT_FAILED"
    }
    begin_ms, later_ms = 1795232341000, 1795232341100
    assert times == {
        ("NO_SUBSCRIPTION", begin_ms): 3,
        ("TAGS_CHANGED", begin_ms): 3,
        ("OFFSET_WENT_BACK", begin_ms): 3,
        ("NO_MEMBER_LIST", later_ms): 2,
        ("NO_MEMBER_LIST", later_ms + 600_000): 1,
        ("BROADCAST_REFUSED", later_ms): 2,
        ("BROADCAST_REFUSED", later_ms + 600_000): 1,
        ("HEARTBEAT_FAILED", later_ms): 2,
        ("HEARTBEAT_FAILED", later_ms + 600_000): 1,
    }
    assert "never" not in {row["consumer_group"] for row in expected.tables["consumer_groups"]}


def test_a_log_in_splits_and_a_rotated_one_say_what_the_whole_states(
    spark: "SparkSession", tmp_path: Path
) -> None:
    whole = collection_of(tmp_path / "whole", "join-leave")
    parts = collection_of(tmp_path / "parts", "join-leave")
    log = parts / "brokers/broker-a/broker.log"
    lines = log.read_bytes().splitlines(keepends=True)
    (log.parent / "otherdays").mkdir()
    packed = gzip.compress(b"".join(lines[:350]))
    (log.parent / "otherdays" / "broker.1.log.gz").write_bytes(packed)
    log.write_bytes(b"".join(lines[350:]))
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "16384")
    try:
        with ingested_tables(spark, open_collection(parts)) as done:
            events = done["cluster_events"].drop("source", "sequence").collect()
            sources = done["cluster_events"].select("source").distinct().collect()
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", str(before))
    expected = ingest_collection(whole).tables["cluster_events"]
    found = sorted(repr(plain(row.asDict())) for row in events)
    assert found == sorted(
        repr(plain({k: v for k, v in row.items() if k not in ("source", "sequence")}))
        for row in expected
    )
    assert any("@" in row["source"] for row in sources)
    assert any("broker.1.log.gz:" in row["source"] for row in sources)


def test_a_second_night_is_the_one_that_a_single_process_reads(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """Whichever of the two read the first."""
    nights = two_nights(DATA / "scale-out-4.9/collection", tmp_path, 5)
    expected: Any = ingest_collection(nights.both).tables
    runtimes: tuple[Runtime, ...] = (SparkRuntime(spark), HERE)
    for first, second in (runtimes, runtimes[::-1]):
        name = type(first).__name__
        state = f"{tmp_path}/{name}/state"
        ingest_and_write(
            open_collection(nights.first),
            f"{tmp_path}/{name}/first",
            state_output=state,
            runtime=first,
        )
        files = first.reader(state)(EVIDENCE_FILES.name)
        collection = with_opening(
            open_collection(nights.second), OpeningEvidence.read(state, name, files)
        )
        output = f"{tmp_path}/{name}/second"
        ingest_and_write(collection, output, state_output=f"{output}/state", runtime=second)
        assert any(file.begins_at for file in collection.own_files)
        for table in sorted(COLLECTED_TABLES.keys() - {"rejected"}):
            rows = [plain_row(row) for row in second.reader(output)(table).to_pylist()]
            whole = [plain_row(row) for row in expected.get(table, [])]
            assert sorted(rows) == sorted(whole), (name, table)


def plain_row(row: dict[str, Any]) -> str:
    """Return what does not name a log, which may have lost its name to another."""
    named = ("source", "sequence", "summary", "evidence")
    return repr(
        plain({k: dict(v) if k == "details" else v for k, v in row.items() if k not in named})
    )


def test_keys_are_unique(spark: "SparkSession", tmp_path: Path) -> None:
    folder = collection_of(tmp_path, "scale-out-4.9")
    with ingested_tables(spark, open_collection(folder)) as tables:
        for name in ("cluster_events", "queue_offsets", "committed_offsets"):
            keys = tables[name].select(*COLLECTED_TABLES[name].key).collect()
            assert len(keys) == len(set(keys)) > 0, name


def test_broken_files_end_as_rows(spark: "SparkSession", tmp_path: Path) -> None:
    folder = collection_of(tmp_path / "a [1] {x}", "join-leave")
    logs = folder / "brokers" / "broker-a"
    (logs / "broker.2.log.gz").write_bytes(gzip.compress(b" " * (80 * 1024**2)))
    (logs / "broker.3.log").write_text(
        "x" * 10_000_000 + "\n\x1b[1mnew consumer connected, group: g"
    )
    (folder / "brokers" / "link").symlink_to("/")
    with ingested_tables(spark, open_collection(folder)) as done:
        rejected = {row["source"]: row["issues"][0]["code"] for row in done["rejected"].collect()}
        events = done["cluster_events"].count()
    assert rejected == {
        "brokers/broker-a/broker.2.log.gz": "GZIP_BOMB",
        "brokers/broker-a/broker.3.log:2": "BROKEN_TEXT",
        "brokers/link": "LEAVES_COLLECTION",
    }
    assert events == len(ingest_collection(folder).tables["cluster_events"])


def test_a_long_line_is_refused_in_splits_as_in_a_process(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = collection_of(tmp_path / "collection", "join-leave")
    log = folder / "brokers" / "broker-a" / "broker.log"
    with log.open("ab") as opened:
        opened.write(bytes(300_000))  # the tail that a crash leaves
    monkeypatch.setattr(log_blocks, "_CHUNK", 10_000)
    monkeypatch.setattr(log_blocks, "LINE_LIMIT", 100_000)
    expected: Any = ingest_collection(folder).tables
    rejected = [(row["source"], row["issues"][0]["code"]) for row in expected["rejected"]]
    assert rejected == [("brokers/broker-a/broker.log", "TOO_LARGE")]
    with ingested_tables(spark, open_collection(folder)) as done:
        for name in ("rejected", "cluster_events", "findings"):
            assert_same(done[name], expected.get(name, []), name)


def test_a_folder_that_only_hadoop_reaches(spark: "SparkSession", tmp_path: Path) -> None:
    """A file system without pyarrow's help, here Hadoop's viewfs over a local folder."""
    folder = Path(shutil.copytree(DATA / "join-leave" / "collection", tmp_path / "a [b] %20c"))
    log = folder / "brokers/broker-b/broker.log"
    (log.parent / "broker.1.log.gz").write_bytes(gzip.compress(log.read_bytes()[:-1]))
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("fs.viewfs.mounttable.tests.link./data", f"file://{tmp_path}")
    place = HadoopPlace(f"viewfs://tests/data/{folder.name}", spark)
    here, opened = open_collection(folder), open_collection(place)
    assert opened.files == here.files
    assert (opened.settings, opened.begins) == (here.settings, here.begins)
    expected: Any = ingest_collection(folder).tables
    with ingested_tables(spark, opened) as done:
        for name in COLLECTED_TABLES:
            assert_same(done[name], expected.get(name, []), name)
    with pytest.raises(InputRefused, match="no such folder"):
        open_collection(place / "none")


def lines_of(spark: "SparkSession", folder: Path) -> "DataFrame":
    rows = [
        (path.relative_to(folder).as_posix(), number, line)
        for path in folder.rglob("*")
        if path.is_file() and path.name != "collection.toml"
        for number, line in enumerate(
            path.read_text("utf-8", "replace").removesuffix("\n").split("\n")
        )
    ]
    return spark.createDataFrame(rows, "file STRING, number INT, line STRING")


def test_lines_of_a_frame_are_a_collection(spark: "SparkSession", tmp_path: Path) -> None:
    """Rows in any order; `read_logs` gives the events of the folder."""
    folder = collection_of(tmp_path / "unpacked", "join-leave")
    for packed in [*folder.rglob("*.gz")]:
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    settings = (folder / "collection.toml").read_text()
    lines = lines_of(spark, folder).orderBy(sf.desc("number"))
    expected: Any = ingest_collection(folder).tables["cluster_events"]
    events = read_logs(spark, lines, settings)
    assert_same(events.drop("settings"), expected, "cluster_events")
    assert events.where("settings IS NOT NULL").count() > 0
    with pytest.raises(InputRefused, match=r"lack the column\(s\) number; they have file, line"):
        read_logs(spark, lines.drop("number"), settings)
    with pytest.raises(InputRefused, match=r"collection\.toml is missing"):
        read_logs(spark, lines.where("file NOT LIKE 'mqadmin/%'"))
    with pytest.raises(UsageError, match="a folder has its own"):
        read_logs(spark, folder, settings)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"number": "CAST(NULL AS INT)"}, "have no order: numbers are missing or repeated"),
        ({"number": "7"}, "have no order: numbers are missing or repeated"),
        ({"number": "CAST(number AS STRING)"}, "number of the lines is string, not an integer"),
        ({"line": "array(line)"}, r"line of the lines is array<string>, not a string"),
        ({"file": "CAST(NULL AS STRING)"}, "a line has no file"),
    ],
)
def test_lines_without_a_place_or_order_are_refused(
    spark: "SparkSession", change: dict[str, str], said: str
) -> None:
    rows = [("mqadmin/1795231765847-clusterList.txt", number, "x") for number in range(3)]
    lines = spark.createDataFrame(rows, "file string, number int, line string")
    changed = lines.selectExpr(*(f"{change.get(c, c)} AS {c}" for c in lines.columns))
    with pytest.raises(InputRefused, match=said):
        read_logs(spark, changed, 'cluster = "C"')
    with pytest.raises(InputRefused, match="have the column line twice"):
        read_logs(spark, lines.selectExpr("*", "line"), 'cluster = "C"')


def test_a_dump_of_a_frame_names_the_cluster_and_brokers(spark: "SparkSession") -> None:
    """As far down as a getBrokerConfig names them."""
    name = "mqadmin/1795231765847-getBrokerConfig.txt"
    text = ["====10.9.0.1:10911====", *(f"setting{n}= x" for n in range(300))]
    text += ["brokerClusterName= C", "brokerName= b-one"]
    rows = [(name, number, line) for number, line in enumerate(text)]
    lines = FramedLines(spark.createDataFrame(rows, "file string, number int, line string"), "")
    opened = open_collection(lines)
    assert (opened.settings.cluster, opened.dumped_brokers) == ("C", ("b-one",))


@pytest.mark.parametrize("length", [10, 9_000, 3 * SNIFFED])
def test_of_a_file_of_a_frame_the_driver_has_the_first_bytes(
    spark: "SparkSession", length: int
) -> None:
    """No more of it, however long its lines are; a null line is an empty one."""
    count = max(4, 300_000 // length)
    rows = [("a.txt", n, None if n == 1 else f"{n}" + "ä" * length) for n in range(count)]
    text = "".join(f"{line or ''}\n" for _, _, line in rows).encode()
    frame = spark.createDataFrame(rows[::-1], "file string, number int, line string")
    lines = FramedLines(frame, "")
    ((name, size),) = lines.sizes()
    assert (name, size) == ("a.txt", len(text))
    head = (lines / name).head(size)
    assert head[:SNIFFED] == text[:SNIFFED]
    assert min(size, SNIFFED) <= len(head) <= 4 * SNIFFED


@pytest.mark.skipif(pyspark.__version__ < "4", reason="from Spark 4.0 on")
def test_a_collection_is_a_data_source(spark: "SparkSession") -> None:
    from rebalance_core.spark.log_source import RocketmqLogSource

    folder = DATA / "pathologies" / "collection"
    spark.dataSource.register(RocketmqLogSource)
    read = spark.read.format("rocketmq_log")
    expected: Any = ingest_collection(folder).tables
    assert_same(read.load(str(folder)), expected["cluster_events"], "cluster_events")
    for table in ("observed_facts", "consumer_groups", "rejected"):
        found = spark.read.format("rocketmq_log").option("table", table).load(str(folder))
        assert_same(found, expected.get(table, []), table)
    for table, said in (("cluster_event", "did you mean cluster_events"), ("rejected", "no such")):
        with pytest.raises(PySparkException, match=said):
            read.option("table", table).load(f"{folder}/none").collect()


@pytest.fixture
def of_hadoop(spark: "SparkSession", tmp_path: Path) -> HadoopPlace:
    """A collection that only Hadoop reaches, with a client's log that Spark's listing skips."""
    folder = Path(shutil.copytree(DATA / "join-leave" / "collection", tmp_path / "c"))
    shutil.move(folder / SKIPPED.replace("_app", "rocketmq_client"), folder / SKIPPED)
    name = tmp_path.name.replace("_", "-")  # Hadoop keeps the first file system of a name
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set(f"fs.viewfs.mounttable.{name}.link./data", f"file://{tmp_path}")
    return HadoopPlace(f"viewfs://{name}/data/c", spark)


SKIPPED = "clients/c2/_app.log"


def test_a_file_behind_hadoop_is_no_collection(of_hadoop: HadoopPlace) -> None:
    with pytest.raises(InputRefused, match="is a file; name the folder"):
        open_collection(of_hadoop / "collection.toml")


def refusals(session: "SparkSession", collection: Collection) -> dict[str, str]:
    with ingest(session, collection, Assumptions()) as read:
        return {file.name: code for file in read.stats for code in file.codes}


def test_files_that_spark_skips_are_read_or_refused(
    spark: "SparkSession", tmp_path: Path, of_hadoop: HadoopPlace
) -> None:
    """Local ones by the tasks themselves; Hadoop's by name."""
    folder = tmp_path / "c"
    expected = ingest_collection(folder)
    assert next(file for file in expected.stats if file.name == SKIPPED).facts
    with ingest(spark, open_collection(folder), Assumptions()) as read:
        assert read.stats == expected.stats
    assert refusals(spark, open_collection(of_hadoop)) == {SKIPPED: "UNREADABLE_FILE"}


def test_a_file_above_the_limit_of_spark_is_refused(
    spark: "SparkSession", of_hadoop: HadoopPlace
) -> None:
    spark.conf.set("spark.sql.sources.binaryFile.maxLength", "3000")
    try:
        collection = open_collection(of_hadoop)
        found = refusals(spark, collection)
    finally:
        spark.conf.unset("spark.sql.sources.binaryFile.maxLength")
    large = {f.name for f in collection.files if f.size > 3000 and (f.gzipped or not f.is_log)}
    assert large
    assert found == {SKIPPED: "UNREADABLE_FILE"} | dict.fromkeys(large, "TOO_LARGE")


def test_a_file_of_which_spark_returns_nothing_ends_the_run(tmp_path: Path) -> None:
    """As with spark.sql.files.ignoreCorruptFiles."""
    collection = open_collection(DATA / "join-leave" / "collection")
    names = {file.name for file in collection.files}
    refuse_unread(collection, names)
    with pytest.raises(InputRefused, match=r"broker-b/broker\.log has .* Spark returned none"):
        refuse_unread(collection, names - {"brokers/broker-b/broker.log"})


def test_a_store_behind_hadoop_that_fails_refuses_no_file(
    spark: "SparkSession", of_hadoop: HadoopPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = HadoopPlace._opened

    def failing(place: HadoopPlace, at: int) -> Any:
        if place.url.endswith("broker-b/broker.log"):
            with _os_errors():  # nothing listens there
                place._jvm.java.net.Socket("127.0.0.1", 1)
        return opened(place, at)

    monkeypatch.setattr(HadoopPlace, "_opened", failing)
    with pytest.raises(StoreFailed, match=f"--collection {of_hadoop} cannot be read"):
        open_collection(of_hadoop)


def test_a_place_of_hadoop(spark: "SparkSession", of_hadoop: HadoopPlace, tmp_path: Path) -> None:
    """Its errors are those of files, and its messages show no password."""
    with pytest.raises(FileNotFoundError):
        (of_hadoop / "none").read_bytes()
    with pytest.raises(FileNotFoundError), _os_errors():
        of_hadoop._jvm.java.io.FileInputStream(f"{tmp_path}/none")
    with pytest.raises(OSError, match="empty string") as wrong, _os_errors():
        of_hadoop._jvm.org.apache.hadoop.fs.Path("")
    assert not is_of_store(wrong.value)
    content = (tmp_path / "c" / SKIPPED).read_bytes()
    assert (of_hadoop / SKIPPED).head(100) == content[:100]
    assert (of_hadoop / SKIPPED).head(1 << 20) == content
    (tmp_path / "c" / "collection.toml").unlink()
    (tmp_path / "c" / "mqadmin").rename(tmp_path / "dumps")
    with pytest.raises(InputRefused, match=f"^{of_hadoop}/collection.toml is missing"):
        open_collection(of_hadoop)
    assert str(HadoopPlace(f"file://u:p@{tmp_path}", spark)) == f"file://***@{tmp_path}"
