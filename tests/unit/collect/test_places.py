"""docs/collect-kubernetes.md: its wrappers collect from pods, its table is what an audit loses."""

import re
import shutil
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rebalance_core.audit.dumps import is_system_group
from rebalance_core.cli.main import main
from tests.tree import TREE
from tests.unit.collect.machines import collect, executable, machines

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
[ "$1 $2 $3" = "--namespace rocketmq exec" ] && [ "$5 $6 $7" = "-- sh -c" ] || exit 64
cd "{root}/pods/$4" 2>/dev/null || { echo "pods \\"$4\\" not found" >&2; exit 1; }
exec sh -c "$8"
"""
DOCKER = """\
[ "$1 $3 $4" = "exec sh -c" ] || exit 64
cd "{root}/pods/$2" 2>/dev/null || exit 1
exec sh -c "$5"
"""


@pytest.mark.parametrize(
    ("script", "program", "fake"), [(0, "kubectl", KUBECTL), (1, "docker", DOCKER)]
)
def test_files_come_out_of_pods_and_containers(
    tmp_path: Path, script: int, program: str, fake: str
) -> None:
    here = machines(tmp_path)
    expected = collect(tmp_path, "--sources", str(here), "--cluster", "C", "--no-admin").files()
    shutil.rmtree(tmp_path / "collection")
    executable(tmp_path / f"bin/{program}", fake.replace("{root}", str(tmp_path)))
    wrapper = tmp_path / "in-pod"
    wrapper.write_text(SCRIPTS[script])
    wrapper.chmod(0o755)
    lines = []
    for line in here.read_text().splitlines():  # each machine's folder is one of a pod
        words = line.split()
        lines.append(
            " ".join(re.sub(rf"^({re.escape(str(tmp_path))}/(\w+)/)", r"\2:\1", w) for w in words)
        )
    for name in ("mq1", "mq2", "ns1", "px1", "px2", "app1", "app2"):
        (tmp_path / "pods" / name).mkdir(parents=True)
    here.write_text("\n".join(lines) + "\n")
    environment = {
        "PATH": f"{tmp_path}/bin:/usr/bin:/bin",
        "COLLECT_SSH": str(wrapper),
        "NAMESPACE": "rocketmq",
    }  # fmt: skip
    run = collect(tmp_path, "--sources", str(here), "--cluster", "C", "--no-admin", **environment)
    assert run.code == 0, run.stderr
    assert run.files() == expected
    (tmp_path / "pods/mq2").rmdir()
    shutil.rmtree(tmp_path / "collection")
    run = collect(tmp_path, "--sources", str(here), "--cluster", "C", "--no-admin", **environment)
    assert run.code == 1
    assert "gave nothing for brokers/room@b" in run.stderr


def test_without_sources_the_cluster_is_only_asked(tmp_path: Path) -> None:
    executable(tmp_path / "rocketmq/lib/rocketmq-tools-5.3.3.jar", "")
    executable(tmp_path / "jdk/bin/javac", "exit 0\n")
    java = (
        'while [ "$1" != Collect ]; do shift; done\necho x > "$2/1795233095353-clusterList.txt"\n'
    )
    executable(tmp_path / "jdk/bin/java", java)
    run = collect(
        tmp_path, "--cluster", "C", NAMESRV_ADDR="h:1", JAVA_HOME=f"{tmp_path}/jdk",
        ROCKETMQ_HOME=f"{tmp_path}/rocketmq",
    )  # fmt: skip
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
def test_the_table_says_what_an_audit_loses(tmp_path: Path, whole: Counter[str], what: str) -> None:
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
    assert len(SCRIPTS) == 2
