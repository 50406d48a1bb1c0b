from pathlib import Path

import pytest

from tests.unit.collect.machines import collect, executable, machines


def refused(root: Path, *options: str, **environment: str) -> str:
    run = collect(root, *options, **environment)
    assert run.code == 2
    assert run.stdout == ""
    assert not (run.output / "collection.toml").exists()
    return run.stderr


def test_help_states_what_the_options_are(tmp_path: Path) -> None:
    run = collect(tmp_path, "--help")
    assert run.code == 0
    for word in ("--sources", "--cluster", "--no-admin", "ROCKETMQ_CREDENTIALS", "exit codes"):
        assert word in run.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--cluster and --output are needed"),
        (["--cluster", "C"], "--name-server or NAMESRV_ADDR is needed"),
        (["--cluster", "C", "--no-admin"], "--no-admin needs --sources"),
        (["--source", "x"], "unknown option --source"),
        (["--cluster"], "--cluster needs a value"),
        (["--sources", "/no/such", "--cluster", "C"], "--sources /no/such cannot be read"),
        (["--sources", "{sources}", "--cluster", 'a"b'], "is not a cluster name"),
        (["--sources", "{sources}", "--cluster", "C", "--threads", "0"], "--threads '0'"),
        (["--sources", "{sources}", "--cluster", "C", "--days", "x"], "--days 'x'"),
        (["--sources", "{sources}", "--cluster", "C", "--admin-time-zone", "a b"], "time zone"),
        (["--sources", "{sources}", "--cluster", "C"], "--name-server or NAMESRV_ADDR is needed"),
        (
            ["--sources", "{sources}", "--cluster", "C", "--name-server", "h:1"],
            "has no lib/rocketmq-tools",
        ),
    ],
)
def test_mistakes_are_named(tmp_path: Path, options: list[str], message: str) -> None:
    sources = machines(tmp_path)
    assert message in refused(tmp_path, *(text.format(sources=sources) for text in options))


def test_a_java_that_is_not_there_is_named(tmp_path: Path) -> None:
    sources = machines(tmp_path)
    executable(tmp_path / "rocketmq/lib/rocketmq-tools-5.3.3.jar", "")
    message = refused(
        tmp_path,
        *["--sources", str(sources), "--cluster", "C", "--name-server", "h:1"],
        ROCKETMQ_HOME=str(tmp_path / "rocketmq"),
        JAVA_HOME=str(tmp_path / "nothing"),
    )
    assert f"'{tmp_path}/nothing/bin/java' is no Java; set JAVA_HOME" in message


def test_an_output_that_holds_something_is_refused(tmp_path: Path) -> None:
    sources = machines(tmp_path)
    (tmp_path / "collection").mkdir()
    (tmp_path / "collection" / "mine").write_text("")
    options = ["--sources", str(sources), "--cluster", "C", "--no-admin"]
    assert "is not empty" in refused(tmp_path, *options)


def test_every_mistake_of_the_sources_is_named_before_anything_is_copied(tmp_path: Path) -> None:
    sources = tmp_path / "sources.txt"
    sources.write_text(
        "slave p /logs\nbroker a /logs\nclient c\nclient x/y /logs\nnamesrv n /logs\n"
        "namesrv n /logs\nclient z /logs - UTC more\n"
        "proxy p /logs /store\n"
    )
    message = refused(tmp_path, "--sources", str(sources), "--cluster", "C", "--no-admin")
    assert [line.split(": ", 1)[1] for line in message.splitlines()] == [
        f"{sources}:1: 'slave' is not broker, namesrv, client or proxy",
        f"{sources}:2: a broker needs a store",
        f"{sources}:3: a client needs a name and a folder of logs",
        f"{sources}:4: 'x/y' is no name",
        f"{sources}:6: namesrv n is there twice",
        f"{sources}:7: too many words: more",
        f"{sources}:8: '/store' is not host:port of a proxy's remoting port",
    ]
    assert not (tmp_path / "collection").exists()


def test_sources_without_a_machine_are_refused(tmp_path: Path) -> None:
    sources = tmp_path / "sources.txt"
    sources.write_text("# nobody\n\n")
    message = refused(tmp_path, "--sources", str(sources), "--cluster", "C", "--no-admin")
    assert "names no machine" in message
