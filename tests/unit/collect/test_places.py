"""docs/collect-kubernetes.md: pods, containers and hosts are collected from; its table holds."""

import re
import shutil
import tomllib
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rebalance_core.audit.dumps import is_system_group
from rebalance_core.cli.main import main
from tests.tree import TREE
from tests.unit.collect.machines import Run, collect, executable, machines

PAGE = (TREE / "docs/collect-kubernetes.md").read_text("utf-8")
NIGHTLY = TREE / "tests/recordings/data/nightly/collection"
SCRIPTS = re.findall(r"```sh\n(#!/bin/sh\n.*?)```", PAGE, re.DOTALL)
ROWS = {
    row[0]: tuple(map(int, row[1:]))
    for row in re.findall(r"^\| ([^|]+?) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
}
LEFT_OUT = {
    "brokers' logs": r"brokers/.*\.(log|gz)$",
    "brokers' stores": r"brokers/.*config-",
    "name servers' logs": r"namesrv/",
    "clients' logs": r"clients/",
    "mqadmin's answers": r"mqadmin/",
    "consumerStatus": r"mqadmin/.*consumerStatus",
}
KUBECTL = """\
[ "$1 $2" = "--context prod" ] || exit 64
namespace=default
shift 2
if [ "$1" = --namespace ]; then namespace=$2; shift 2; fi
if [ "$1" = exec ]; then
  [ "$3 $4 $5" = "-- sh -c" ] || exit 64
  cd "{root}/pods/$namespace/$2" 2>/dev/null || { echo "pods \\"$2\\" not found" >&2; exit 1; }
  exec sh -c "$6"
fi
[ "$1 $2 $3 $5 $6 $7" = "get pods --selector --field-selector status.phase=Running -o" ] || exit 64
[ -e "{root}/selected/$namespace/$4" ] || { echo "the server is down" >&2; exit 1; }
cat "{root}/selected/$namespace/$4"
"""
DOCKER = """\
[ "$1 $3 $4" = "exec sh -c" ] || exit 64
cd "{root}/pods/$2" 2>/dev/null || exit 1
exec sh -c "$5"
"""


def in_pods(root: Path, place: str) -> Path:
    """Return the file that names the machines as hosts (``{}``: the host), each a folder here."""
    here = machines(root)
    lines = []
    for line in here.read_text().splitlines():
        pattern = rf"^{re.escape(str(root))}/(\w+)/"
        words = [re.sub(pattern, lambda m: place.format(m[1]) + ":", w) for w in line.split()]
        lines.append(" ".join(words))
    here.write_text("\n".join(lines) + "\n")
    return here


def copy(root: Path, sources: Path, **environment: str) -> Run:
    shutil.rmtree(root / "collection", ignore_errors=True)
    words = ["--sources", str(sources), "--cluster", "C", "--no-admin"]
    return collect(root, *words, **{"PATH": f"{root}/bin:/usr/bin:/bin"} | environment)


def failures(run: Run) -> dict[str, str]:
    settings = tomllib.loads((run.output / "collection.toml").read_text())
    return {table["what"]: table["why"] for table in settings.get("failed", [])}


@pytest.fixture
def kubectl(tmp_path: Path) -> dict[str, str]:
    """The environment of a kubectl whose pods are folders."""
    executable(tmp_path / "bin/kubectl", KUBECTL.replace("{root}", str(tmp_path)))
    return {"COLLECT_KUBECTL": "kubectl --context prod"}


def pods(root: Path, namespace: str, labels: str, *names: str) -> None:
    """Let kubectl list pods for labels; each is one of the machines."""
    listed = root / f"selected/{namespace}/{labels}"
    listed.parent.mkdir(parents=True, exist_ok=True)
    listed.write_text("".join(f"{name} 10.1.0.{n}\n" for n, name in enumerate(names)))
    for name in names:
        (root / f"pods/{namespace}").mkdir(parents=True, exist_ok=True)
        (root / f"pods/{namespace}/{name}").symlink_to(root / name)


@pytest.mark.parametrize("place", ["pod{{mq:{}}}", "pod{{{}}}"])
def test_files_come_out_of_pods(tmp_path: Path, kubectl: dict[str, str], place: str) -> None:
    expected = copy(tmp_path, machines(tmp_path)).files()
    namespace = "mq" if "mq" in place else "default"
    pods(tmp_path, namespace, "x", "mq1", "mq2", "ns1", "px1", "px2", "app1", "app2")
    sources = in_pods(tmp_path, place)
    run = copy(tmp_path, sources, **kubectl)
    assert (run.code, run.files()) == (0, expected), run.stderr
    (tmp_path / f"pods/{namespace}/mq2").unlink()
    run = copy(tmp_path, sources, **kubectl)
    assert run.code == 1
    assert "gave nothing for brokers/room@b" in run.stderr
    assert 'pods "mq2" not found' in failures(run)["brokers/room@b"]


def test_files_come_out_of_containers(tmp_path: Path) -> None:
    expected = copy(tmp_path, machines(tmp_path)).files()
    executable(tmp_path / "bin/docker", DOCKER.replace("{root}", str(tmp_path)))
    (tmp_path / "pods").mkdir()
    for name in ("mq1", "mq2", "ns1", "px1", "px2", "app1", "app2"):
        (tmp_path / "pods" / name).symlink_to(tmp_path / name)
    wrapper = tmp_path / "in-container"
    wrapper.write_text(SCRIPTS[0])
    wrapper.chmod(0o755)
    run = copy(tmp_path, in_pods(tmp_path, "{}"), COLLECT_SSH=str(wrapper))
    assert (run.code, run.files()) == (0, expected), run.stderr


def test_a_line_stands_for_all_pods_with_its_labels(
    tmp_path: Path, kubectl: dict[str, str]
) -> None:
    machines(tmp_path)
    pods(tmp_path, "mq", "app.kubernetes.io/name=broker,tier!=old", "mq1", "mq2")
    pods(tmp_path, "default", "app=billing", "app1", "app2")
    pods(tmp_path, "mq", "app=proxy", "px1")
    sources = tmp_path / "sources.txt"
    sources.write_text(
        "broker * pods{mq:app.kubernetes.io/name=broker,tier!=old}:logs "
        "pods{mq:app.kubernetes.io/name=broker,tier!=old}:store\n"
        "client * pods{app=billing}:logs - Asia/Tokyo\n"
        "proxy  * pods{mq:app=proxy}:logs *:8080\n"
    )
    run = copy(tmp_path, sources, **kubectl)
    assert run.code == 0, run.stderr
    assert {name.rsplit("/", 1)[0] for name in run.files() if "config-" not in name} >= {
        "brokers/mq1",
        "brokers/mq2",
        "clients/app1",
        "clients/app2",
        "proxy/px1",
    }
    settings = tomllib.loads((run.output / "collection.toml").read_text())
    assert settings["expected"]["brokers"] == ["mq1", "mq2"]
    assert settings["expected"]["proxies"] == ["px1"]
    assert settings["time_zones"] == {
        "clients/app1/*": "Asia/Tokyo",
        "clients/app2/*": "Asia/Tokyo",
    }


def test_the_remoting_port_of_each_proxy_is_asked(tmp_path: Path, kubectl: dict[str, str]) -> None:
    machines(tmp_path)
    pods(tmp_path, "mq", "app=proxy", "px1", "px2")
    sources = tmp_path / "sources.txt"
    (tmp_path / "hosts.txt").write_text("# proxies\nadmin@px3 old\n")
    sources.write_text(
        "proxy * pods{mq:app=proxy}:logs *:8080\nproxy * hosts{hosts.txt}:/logs *:8081\n"
    )
    executable(tmp_path / "rocketmq/lib/rocketmq-tools-5.3.3.jar", "")
    java = (
        f'while [ "$1" != Collect ]; do shift; done\necho "$@" > {tmp_path}/asked\n'
        'echo x > "$2/1795233095353-clusterList.txt"\n'
    )
    executable(tmp_path / "jdk/bin/java", java)
    collect(
        tmp_path,
        *["--sources", str(sources), "--cluster", "C", "--name-server", "h:1"],
        PATH=f"{tmp_path}/bin:/usr/bin:/bin",
        JAVA_HOME=f"{tmp_path}/jdk",
        ROCKETMQ_HOME=f"{tmp_path}/rocketmq",
        **kubectl,
    )
    asked = (tmp_path / "asked").read_text().split()
    assert asked[4:] == ["px1=10.1.0.0:8080", "px2=10.1.0.1:8080", "admin@px3=px3:8081"]


def test_pods_that_cannot_be_listed_are_a_failure_and_the_rest_is_copied(
    tmp_path: Path, kubectl: dict[str, str]
) -> None:
    machines(tmp_path)
    pods(tmp_path, "mq", "app=none")
    sources = tmp_path / "sources.txt"
    sources.write_text(
        f"client * pods{{down:app=x}}:logs\nclient * pods{{mq:app=none}}:logs\n"
        f"namesrv n {tmp_path}/ns1/logs\n"
    )
    run = copy(tmp_path, sources, **kubectl)
    assert run.code == 1
    assert run.files() == ["collection.toml", "namesrv/n/namesrv.log"]
    assert failures(run) == {
        "client pods{down:app=x}": "pods{down:app=x} cannot be listed: the server is down ",
        "client pods{mq:app=none}": "pods{mq:app=none} chooses no machine",
    }


def test_a_line_stands_for_every_host_of_a_file(tmp_path: Path) -> None:
    machines(tmp_path)
    (tmp_path / "apps.txt").write_text("# billing\napp1\n\napp2")
    ssh = executable(tmp_path / "ssh", f'cd {tmp_path}/$1 && exec sh -c "$2"\n')
    sources = tmp_path / "sources.txt"
    sources.write_text("client * hosts{apps.txt}:logs hosts{apps.txt}:.rocketmq_offsets\n")
    run = copy(tmp_path, sources, COLLECT_SSH=str(ssh))
    assert "clients/app2/rocketmq_offsets/10.0.0.9@DEFAULT/feed/offsets.json" in run.files()
    assert "clients/app1/rocketmq_client.log" in run.files()
    assert list(failures(run)) == ["clients/app1/rocketmq_offsets"]


@pytest.mark.parametrize(
    ("line", "mistake"),
    [
        ("client * h:/logs", "the name * goes with pods{LABELS}:FOLDER or hosts{FILE}:FOLDER"),
        ("client * hosts{}:/logs", "the name * goes with"),
        ("client * hosts{odd.txt}:/logs", "'-oProxyCommand=x' of hosts{odd.txt} is no name"),
        ("client * hosts{odd.txt}:/logs", "'h:22' of hosts{odd.txt} is no name"),
        ("client * hosts{odd.txt}:/logs", "client app is there twice"),
        ("broker * hosts{odd.txt}:/l hosts{other.txt}:/s", "logs and store are of other machines"),
    ],
)
def test_mistakes_of_lines_for_many_are_named(tmp_path: Path, line: str, mistake: str) -> None:
    (tmp_path / "odd.txt").write_text("-oProxyCommand=x\nh:22\napp\napp\n")
    (tmp_path / "sources.txt").write_text(line + "\n")
    run = copy(tmp_path, tmp_path / "sources.txt")
    assert run.code == 2
    assert f"{tmp_path}/sources.txt:1: {mistake}" in run.stderr
    assert not run.output.exists()


def test_without_sources_the_cluster_is_only_asked(tmp_path: Path) -> None:
    executable(tmp_path / "rocketmq/lib/rocketmq-tools-5.3.3.jar", "")
    java = (
        'while [ "$1" != Collect ]; do shift; done\necho x > "$2/1795233095353-clusterList.txt"\n'
    )
    executable(tmp_path / "jdk/bin/java", java)
    run = collect(
        tmp_path,
        "--cluster",
        "C",
        NAMESRV_ADDR="h:1",
        JAVA_HOME=f"{tmp_path}/jdk",
        ROCKETMQ_HOME=f"{tmp_path}/rocketmq",
    )
    assert run.code == 0, run.stderr
    assert run.files() == ["collection.toml", "mqadmin/1795233095353-clusterList.txt"]


def audited(folder: Path) -> tuple[Counter[str], Counter[str]]:
    """Verdicts of groups that are not RocketMQ's own, and rules above INFO, of a collection."""
    out = folder.with_name(f"{folder.name}-out")
    main("audit", ["--collection", str(folder), "--output", str(out)])
    verdicts = pq.read_table(out / "group_verdicts").to_pylist()
    findings = pq.read_table(out / "findings").to_pylist()
    return (
        Counter(r["verdict"] for r in verdicts if not is_system_group(r["consumer_group"])),
        Counter(
            r["rule_id"]
            for r in findings
            if r["severity"] != "INFO" and not r["rule_id"].startswith(("INGEST_", "COLLECTION_"))
        ),
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Counter[str]:
    folder = tmp_path_factory.mktemp("whole") / "nightly"
    shutil.copytree(NIGHTLY, folder)
    return audited(folder)[1]


@pytest.mark.parametrize("what", ROWS)
def test_the_table_states_what_an_audit_loses(
    tmp_path: Path, whole: Counter[str], what: str
) -> None:
    for path in NIGHTLY.rglob("*"):
        name = path.relative_to(NIGHTLY).as_posix()
        if path.is_file() and not re.match(LEFT_OUT[what], name):
            (tmp_path / "c" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, tmp_path / "c" / name)
    verdicts, found = audited(tmp_path / "c")
    lost = (whole - found).total()
    assert ROWS[what] == (verdicts["EQUAL"], verdicts["UNKNOWN"], lost)


def test_every_row_of_the_table_is_tried() -> None:
    assert ROWS.keys() == LEFT_OUT.keys()
    assert len(SCRIPTS) == 1
