"""What operators write, and what is meant."""

from pathlib import Path

import pytest

from rebalance_core.model.errors import UsageError
from rebalance_core.storage.access import HadoopAccess, LocalAccess, S3Access, s3_access
from rebalance_core.storage.locations import NotReached, is_reached, place_of

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
        ("s3a://me:mine@b/x", r"s3a://\*\*\*@b/x: keys do not belong into an address"),
        ("hdfs://h:port/x", "write hdfs://HOST:PORT/FOLDER"),
    ],
)
def test_a_wrong_address_is_told(location: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        is_reached(location)


@pytest.mark.parametrize("location", ["gs://b/x", "abfss://c@a.dfs.core.windows.net/x", "s3a:/b/x"])
def test_other_places_are_left_to_spark(location: str) -> None:
    assert not is_reached(location)
    with pytest.raises(NotReached, match="only local folders, s3://, s3a://, hdfs:// are reached"):
        place_of(location)


def test_hdfs_without_its_library_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def failing(access: HadoopAccess) -> None:
        seen.append((access.host, access.port))
        raise OSError("Unable to load libhdfs\ndlopen failed")

    monkeypatch.setattr("rebalance_core.storage.locations.opened", failing)
    for location in ("hdfs://n:8020/x", "hdfs:///x", "hdfs://service/x"):
        assert not is_reached(location)
    assert seen == [("n", 8020), ("default", 0), ("service", 0)]
    with pytest.raises(NotReached, match=r"\(Unable to load libhdfs\); set JAVA_HOME, HADOOP_HOME"):
        place_of("hdfs://n/x")


def test_what_the_environment_says_of_s3() -> None:
    assert s3_access("b", {}) == S3Access("b")
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"}
    access = s3_access("b", ENDPOINT | keys | {"AWS_REGION": "r", "AWS_DEFAULT_REGION": "q"})
    assert (access.access_key, access.secret_key, access.session_token) == ("a", "s", "t")
    assert (access.endpoint, access.region) == (ENDPOINT["AWS_ENDPOINT_URL"], "r")
    own = {"AWS_ENDPOINT_URL_S3": "http://s3.example"}
    assert s3_access("b", ENDPOINT | own).endpoint == "http://s3.example"
    assert s3_access("b", {"AWS_DEFAULT_REGION": "q"}).region == "q"
