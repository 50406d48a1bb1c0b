import os
import tomllib
from pathlib import Path

from rebalance_core.ingest.collection import identify
from tests.unit.collect.machines import Run, collect, executable, machines

COPIED = [
    "brokers/broker-a/broker.log",
    "brokers/broker-a/config-<ms>/consumerOffset.json",
    "brokers/broker-a/config-<ms>/consumerOrderInfo.json",
    "brokers/broker-a/config-<ms>/messageRequestMode.json",
    "brokers/broker-a/config-<ms>/subscriptionGroup.json",
    "brokers/broker-a/config-<ms>/topics.json",
    "brokers/broker-a/filter.log",
    "brokers/broker-a/otherdays/broker.1.log.gz",
    "brokers/room@b/broker.log",
    "brokers/room@b/config-<ms>/consumerOffset.json",
    "brokers/room@b/config-<ms>/subscriptionGroup.json",
    "brokers/room@b/config-<ms>/topics.json",
    "brokers/room@b/lock.log",
    "clients/billing/rocketmq_client.log",
    "clients/billing/rocketmq_client.log.1",
    "clients/feed/other_days/rocketmq_client-1.log.gz",
    "clients/feed/rocketmq_client.log",
    "clients/feed/rocketmq_offsets/10.0.0.9@DEFAULT/feed/offsets.json",
    "collection.toml",
    "namesrv/namesrv-1/namesrv.log",
    "proxy/px-1/broker.log",
    "proxy/px-1/otherdays/proxy.1.log.gz",
    "proxy/px-1/proxy.log",
    "proxy/px-2/broker.log",
]


def copy(root: Path, sources: Path, *options: str, **environment: str) -> Run:
    given = ["--sources", str(sources), "--cluster", "DefaultCluster", "--no-admin"]
    return collect(root, *given, *options, **environment)


def test_files_stand_where_ingest_looks_for_them(tmp_path: Path) -> None:
    run = copy(tmp_path, machines(tmp_path))
    assert (run.code, run.files()) == (0, COPIED), run.stderr
    for path in run.output.rglob("*"):
        name = path.relative_to(run.output).as_posix()
        assert path.is_dir() or name == "collection.toml" or identify(name) is not None, name


def test_collection_toml_states_what_the_sources_say(tmp_path: Path) -> None:
    run = copy(tmp_path, machines(tmp_path))
    assert tomllib.loads((run.output / "collection.toml").read_text()) == {
        "cluster": "DefaultCluster",
        "admin_time_zone": "Asia/Shanghai",
        "time_zones": {"clients/billing/*": "America/New_York"},
        "expected": {
            "brokers": ["broker-a", "room@b"],
            "name_servers": ["namesrv-1"],
            "proxies": ["px-1", "px-2"],
        },
    }


def test_the_admin_zone_can_be_given(tmp_path: Path) -> None:
    run = copy(tmp_path, machines(tmp_path), "--admin-time-zone", "Etc/GMT+8")
    settings = tomllib.loads((run.output / "collection.toml").read_text())
    assert settings["admin_time_zone"] == "Etc/GMT+8"


def test_remote_folders_are_fetched_by_ssh(tmp_path: Path) -> None:
    sources = machines(tmp_path)
    sources.write_text(sources.read_text().replace(f" {tmp_path}/", f" host-1:{tmp_path}/"))
    ssh = executable(tmp_path / "ssh", f'echo "$1" >> {tmp_path}/hosts\nexec sh -c "$2"\n')
    run = copy(tmp_path, sources, COLLECT_SSH=str(ssh))
    assert (run.code, run.files()) == (0, COPIED), run.stderr
    assert set((tmp_path / "hosts").read_text().split()) == {"host-1"}


def test_a_machine_that_gives_nothing_is_named_and_the_rest_is_copied(tmp_path: Path) -> None:
    sources = machines(tmp_path)
    sources.write_text(sources.read_text().replace("/ns1/logs", "/ns2/logs"))
    run = copy(tmp_path, sources)
    assert run.code == 1
    assert f"{tmp_path}/ns2/logs gave nothing for namesrv/namesrv-1" in run.stderr
    assert run.files() == [name for name in COPIED if not name.startswith("namesrv/")]


def test_the_copy_of_a_store_that_was_being_replaced_is_its_bak(tmp_path: Path) -> None:
    sources = machines(tmp_path)
    store = tmp_path / "mq1/store/config"
    (store / "topics.json.bak").write_text('{"bak":1}')
    (store / "topics.json").write_text("")
    run = copy(tmp_path, sources)
    assert (run.code, run.files()) == (0, COPIED), run.stderr
    [copied] = run.output.glob("brokers/broker-a/config-*/topics.json")
    assert copied.read_text() == '{"bak":1}'


def test_a_store_without_a_file_is_named(tmp_path: Path) -> None:
    sources = machines(tmp_path)
    (tmp_path / "mq2/store/config/subscriptionGroup.json").unlink()
    run = copy(tmp_path, sources)
    assert run.code == 1
    assert "/mq2/store/config has no subscriptionGroup.json" in run.stderr
    assert "collection.toml" in run.files()


def test_logs_older_than_the_days_asked_for_stay(tmp_path: Path) -> None:
    sources = machines(tmp_path)
    os.utime(tmp_path / "mq1/logs/otherdays/broker.1.log.gz", (0, 0))
    os.utime(tmp_path / "mq1/store/config/topics.json", (0, 0))
    run = copy(tmp_path, sources, "--days", "2")
    assert run.code == 0, run.stderr
    assert run.files() == [name for name in COPIED if "broker.1.log" not in name]


def test_a_folder_with_a_quote_in_its_name(tmp_path: Path) -> None:
    root = tmp_path / "it's"
    root.mkdir()
    run = copy(root, machines(root))
    assert (run.code, run.files()) == (0, COPIED), run.stderr
