import tomllib
from pathlib import Path

import pytest

from tests.unit.collect.machines import SCRIPT, Run, collect, executable, machines

JAVA = """\
printf '%s\\n' "$@" > {root}/arguments
printf '%s\\n' "$NAMESRV_ADDR" "$ROCKETMQ_SECRET_KEY" > {root}/environment
while [ "$1" != Collect ]; do shift; done
{answer}
echo "noise of a logger"
exit {code}
"""


ANSWER = 'echo answer > "$2/1795233095353-clusterList.txt"'


def ask(root: Path, code: int = 0, answer: str = ANSWER, version: str = "5.3.3") -> Run:
    """A run with a Java that notes how it was called and writes one answer."""
    sources = machines(root)
    executable(root / f"rocketmq/lib/rocketmq-tools-{version}.jar", "")
    executable(root / "jdk/bin/java", JAVA.format(root=root, code=code, answer=answer))
    return collect(
        root,
        *["--sources", str(sources), "--cluster", "DefaultCluster", "--threads", "7"],
        JAVA_HOME=str(root / "jdk"),
        ROCKETMQ_HOME=str(root / "rocketmq"),
        NAMESRV_ADDR="10.0.0.1:9876",
        ROCKETMQ_ACCESS_KEY="access-key",
        ROCKETMQ_SECRET_KEY="secret-key",
    )


@pytest.mark.parametrize(
    ("version", "form"),
    [
        ("4.9.4", "4.9"),
        ("4.9.8-SNAPSHOT", "4.9"),
        ("5.0.0", "5.0"),
        ("5.1.0", "5.1"),
        ("5.10.2", "5.1"),
        ("own", "5.1"),
    ],
)
def test_the_cluster_is_asked_by_a_program_compiled_for_its_version(
    tmp_path: Path, version: str, form: str
) -> None:
    run = ask(tmp_path, version=version)
    assert run.code == 0, run.stderr
    assert "mqadmin/1795233095353-clusterList.txt" in run.files()
    arguments = (tmp_path / "arguments").read_text().split()
    classes, _, jars = arguments[arguments.index("-cp") + 1].split(":")
    assert jars == f"{tmp_path}/rocketmq/lib/*"
    assert Path(classes) == SCRIPT.parent / "classes" / form
    assert (Path(classes) / "Collect.class").is_file()
    *_, program, output, cluster, threads, proxy = (tmp_path / "arguments").read_text().split()
    assert (program, cluster, threads) == ("Collect", "DefaultCluster", "7")
    assert proxy == "px-1=10.0.0.7:8080"  # px-2 names no port to ask
    assert output == f"{run.output}/mqadmin"
    assert "-Duser.timezone=Asia/Shanghai" in (tmp_path / "arguments").read_text()


@pytest.mark.parametrize("version", ["4.9.3", "4.8.0", "3.6.2"])
def test_a_client_that_lacks_questions_is_refused(tmp_path: Path, version: str) -> None:
    run = ask(tmp_path, version=version)
    assert run.code == 2
    assert f"rocketmq-tools-{version}.jar lacks questions" in run.stderr
    assert not run.output.exists()


def test_credentials_are_in_the_environment_alone(tmp_path: Path) -> None:
    run = ask(tmp_path)
    assert (tmp_path / "environment").read_text() == "10.0.0.1:9876\nsecret-key\n"
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    holding = [path.name for path in written if "secret-key" in path.read_text()]
    assert holding == ["environment"]
    assert "secret-key" not in run.stdout + run.stderr


def test_a_cluster_that_is_not_there_ends_with_2_before_anything_is_copied(tmp_path: Path) -> None:
    run = ask(tmp_path, code=2, answer="")
    assert run.code == 2
    assert "nothing is collected of cluster DefaultCluster" in run.stderr
    assert not run.output.exists()


def test_a_reason_that_the_program_reported_stands_for_the_general_one(tmp_path: Path) -> None:
    run = ask(tmp_path, code=1, answer='printf "mqadmin\\tno broker\\n" > "$COLLECT_REPORT/failed"')
    assert run.code == 1
    assert "not every question" not in run.stderr
    settings = tomllib.loads((run.output / "collection.toml").read_text())
    assert settings["failed"][0] == {"what": "mqadmin", "why": "no broker"}


def test_a_program_that_was_killed_is_named_beside_what_it_reported(tmp_path: Path) -> None:
    answer = 'printf "broker-a\\tis down\\n" > "$COLLECT_REPORT/failed"'
    run = ask(tmp_path, code=137, answer=answer)
    assert run.code == 1
    settings = tomllib.loads((run.output / "collection.toml").read_text())
    assert settings["failed"][:2] == [
        {"what": "mqadmin", "why": "not every question to the cluster was answered"},
        {"what": "broker-a", "why": "is down"},
    ]


def test_what_the_cluster_did_not_answer_is_said_and_the_rest_collected(tmp_path: Path) -> None:
    run = ask(tmp_path, code=1)
    assert run.code == 1
    assert "not every question to the cluster was answered" in run.stderr
    assert "brokers/broker-a/broker.log" in run.files()
    assert "collection.toml" in run.files()
