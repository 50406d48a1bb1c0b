"""`collect --init --name-server`: the file of sources, made of what servers state."""

from pathlib import Path

import pytest

from rebalance_core.cli.collect_sources import read_servers, render_sources
from rebalance_core.cli.main import main
from tests.unit.collect.machines import collect, executable

ROWS = """\
broker\tDefaultCluster\tbroker-a\t10.0.0.2\t/home/mq/store
broker\tDefaultCluster\tbroker-a-1\t10.0.0.3\t/data/a slave
broker\tDefaultCluster\tbroker-b\t10.0.0.4\t
broker\tOther\tbroker-c\t10.0.0.5\t/home/mq/store
proxy\tDefaultCluster\t10.0.0.7\t10.0.0.7\t
namesrv\t\t10.0.0.1:9876\t\t/home/mq/namesrv/kvConfig.json
namesrv\t\t10.0.0.9:9876\t10.0.0.9\t
"""
LINES = [
    "broker     broker-a    10.0.0.2:/home/mq/logs/rocketmqlogs  10.0.0.2:/home/mq/store",
    "# broker   broker-a-1  10.0.0.3:LOGS                        10.0.0.3:/data/a slave",
    "# broker   broker-b    10.0.0.4:LOGS                        10.0.0.4:STORE",
    "# proxy    proxy-1     10.0.0.7:LOGS                        10.0.0.7:8080",
    "namesrv    namesrv-1   /home/mq/logs/rocketmqlogs",
    "# namesrv  namesrv-2   10.0.0.9:LOGS",
]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java whose `java` writes the rows of a cluster, and notes whom it was to ask."""
    executable(tmp_path / "rocketmq/lib/rocketmq-tools-5.3.3.jar", "")
    (tmp_path / "rows").write_text(ROWS)
    java = f"""\
echo "$NAMESRV_ADDR" >> {tmp_path}/asked
echo "noise of a logger"
[ -e {tmp_path}/rows ] || exit 1
for last; do :; done
cp {tmp_path}/rows "$last"
"""
    executable(tmp_path / "jdk/bin/java", java)
    monkeypatch.setenv("ROCKETMQ_HOME", str(tmp_path / "rocketmq"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    return tmp_path


def init(place: Path, *words: str) -> int:
    here = ["--init", "--name-server", "10.0.0.1:9876", "--output", str(place / "first")]
    return main("collect", [*here, *words])


def test_the_servers_of_the_cluster_are_sources_and_the_rest_is_left_to_complete(
    cluster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(cluster) == 0
    text = (cluster / "first/sources.txt").read_text()
    assert text.split("\n# kind")[1].splitlines()[1:7] == LINES
    assert "# client  NAME" in text
    printed = capsys.readouterr().out
    assert (
        "3 brokers, 2 name servers, 1 proxy of DefaultCluster; complete 4 lines by hand" in printed
    )
    assert (cluster / "asked").read_text() == "10.0.0.1:9876\n"


def test_the_collector_reads_the_file(cluster: Path) -> None:
    for folder in ("home/logs/rocketmqlogs", "home/store/config"):
        (cluster / folder).mkdir(parents=True)
    (cluster / "home/logs/rocketmqlogs/broker.log").write_text("b")
    row = f"broker\tDefaultCluster\tbroker-a\t\t{cluster}/home/store\n"
    text, incomplete = render_sources(read_servers(row), "DefaultCluster", "a:1")
    assert incomplete == 0
    sources = cluster / "sources.txt"
    sources.write_text(text)
    run = collect(cluster, "--sources", str(sources), "--cluster", "DefaultCluster", "--no-admin")
    assert run.files() == ["brokers/broker-a/broker.log", "collection.toml"]


def test_a_file_that_is_there_is_kept_and_the_cluster_not_asked(
    cluster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = cluster / "first/sources.txt"
    target.parent.mkdir()
    target.write_text("mine")
    assert init(cluster) == 5
    assert f"{target} exists already" in capsys.readouterr().err
    assert target.read_text() == "mine"
    assert not (cluster / "asked").exists()
    assert init(cluster, "--overwrite") == 0
    assert "broker-a" in target.read_text()


def test_another_cluster_is_refused_with_those_that_are_known(
    cluster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(cluster, "--cluster", "Othr") == 2
    message = "--cluster Othr: the name server 10.0.0.1:9876 knows DefaultCluster, Other"
    assert message in capsys.readouterr().err
    assert not (cluster / "first").exists()


def test_a_name_server_that_does_not_answer_ends_with_2(
    cluster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (cluster / "rows").unlink()
    assert init(cluster) == 2
    assert "--name-server 10.0.0.1:9876 was not queried" in capsys.readouterr().err
    assert not (cluster / "first").exists()


def test_a_dry_run_asks_nothing(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert init(cluster, "--dry-run") == 0
    assert "asks 10.0.0.1:9876 and writes" in capsys.readouterr().out
    assert not (cluster / "asked").exists()
