"""What operators write, and what is meant."""

from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from rebalance_core.cli.main import main
from rebalance_core.cli.run.run_record import read_run
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.model.errors import UsageError
from rebalance_core.storage.access import (
    HadoopAccess,
    LocalAccess,
    S3Access,
    s3_access,
    why_not_opened,
)
from rebalance_core.storage.place import NotReached, is_reachable, object_store, place_of

ENDPOINT = {"AWS_ENDPOINT_URL": "https://store.example:9000/"}


def test_paths_and_files_are_local(tmp_path: Path) -> None:
    for location in (tmp_path, str(tmp_path), f"file:{tmp_path}", f"file://{tmp_path}"):
        place = place_of(location)
        assert (place.path, place.url, place.access) == (
            str(tmp_path),
            str(tmp_path),
            LocalAccess(),
        )
    assert place_of("out").path == str(Path("out").absolute())
    assert place_of(place) is place


def test_both_schemes_of_s3_are_one() -> None:
    for scheme in ("s3", "s3a", "S3A"):
        place = place_of(f"{scheme}://b/runs/1/")
        assert (place.path, place.url, place.name) == ("b/runs/1", f"{scheme}://b/runs/1", "1")
    assert place_of("s3://b").path == "b"
    assert (place_of("s3://b") / "x").path == "b/x"


@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("s3a:///x", "names no bucket; write s3a://BUCKET/FOLDER"),
        ("s3://", "names no bucket; write s3://BUCKET/FOLDER"),
        ("s3a://me:mine@b/x", r"s3a://\*\*\*@b/x: keep keys out of addresses"),
        ("hdfs://h:port/x", "write hdfs://HOST:PORT/FOLDER"),
    ],
)
def test_a_wrong_address_is_reported(location: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        is_reachable(location)


@pytest.mark.parametrize("location", ["gs://b/x", "abfss://c@a.dfs.core.windows.net/x", "s3a:/b/x"])
def test_other_places_are_left_to_spark(location: str) -> None:
    assert not is_reachable(location)
    with pytest.raises(
        NotReached, match="only local folders, s3://, s3a://, hdfs:// can be reached"
    ):
        place_of(location)


def test_hdfs_without_its_library_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def failing(access: HadoopAccess) -> None:
        seen.append((access.host, access.port))
        raise OSError(
            "Unable to load libhdfs\ndlopen failed" if len(seen) == 1 else "Prior failure"
        )

    why_not_opened.cache_clear()
    monkeypatch.setattr(HadoopAccess, "open", failing)
    assert not is_reachable("hdfs://n:8020/x")
    with pytest.raises(NotReached, match=r"\(Unable to load libhdfs\); set JAVA_HOME, HADOOP_HOME"):
        place_of("hdfs://n:8020/x")
    assert not is_reachable("hdfs:///x")
    assert not is_reachable("hdfs://service/x")
    assert seen == [("n", 8020), ("default", 0), ("service", 0)]
    why_not_opened.cache_clear()


def test_hdfs_is_a_place_where_its_library_works(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A local file system stands in for it; Spark's own writer has it, not tasks."""
    local = SubTreeFileSystem(str(tmp_path), LocalFileSystem())
    monkeypatch.setattr(HadoopAccess, "open", lambda _: local)
    folder = place_of("hdfs://stand-in:1/runs/1/")
    assert (folder.path, folder.is_local) == ("/runs/1", False)
    words = ["--groups", "2", "--output", folder.url, "--run-on", "process"]
    assert main("generate", words) == 0
    assert main("generate", words) == 5
    assert read_run(folder)["run_on"] == "process"
    assert folder.names() == sorted(["_run.json", *INPUT_TABLES])
    assert object_store(folder.url) is None


def test_what_the_environment_states_of_s3() -> None:
    assert s3_access("b", {}) == S3Access("b")
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"}
    access = s3_access("b", ENDPOINT | keys | {"AWS_REGION": "r", "AWS_DEFAULT_REGION": "q"})
    assert (access.access_key, access.secret_key, access.session_token) == ("a", "s", "t")
    assert (access.endpoint, access.region) == (ENDPOINT["AWS_ENDPOINT_URL"], "r")
    own = {"AWS_ENDPOINT_URL_S3": "http://s3.example"}
    assert s3_access("b", ENDPOINT | own).endpoint == "http://s3.example"
    assert s3_access("b", {"AWS_DEFAULT_REGION": "q"}).region == "q"
    assert s3_access("b", {"AWS_ENDPOINT_URL": ""}).endpoint is None


@pytest.mark.parametrize(
    "endpoint",
    [
        "store:9000",
        "ftp://store",
        "http://me:mine@store",
        "http://",
        "http://[::1",
        "http://store:x",
        "http://store:",
        "https://store?x=1",
        "https://:9000",
        "http://store:99999",
    ],
)
def test_a_wrong_endpoint_is_reported(endpoint: str) -> None:
    with pytest.raises(UsageError, match=r"AWS_ENDPOINT_URL .*: write http://HOST:PORT") as told:
        s3_access("b", {"AWS_ENDPOINT_URL": endpoint})
    assert "mine" not in str(told.value)
