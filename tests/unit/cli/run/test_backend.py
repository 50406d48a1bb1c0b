"""Where a run takes place."""

import bz2
import gzip
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rebalance_core.checks.text_lines import BLOCK_BYTES
from rebalance_core.checks.unpacked_text import unpacked_size
from rebalance_core.cli.options import AUTO, PROCESS, SPARK
from rebalance_core.cli.run.backend import run_on_of
from rebalance_core.cli.settings import Settings, resolve_settings
from rebalance_core.model.errors import UsageError
from rebalance_core.storage.place import place_of
from tests.object_store import denying_store


@dataclass(frozen=True)
class Options:
    run_on: str = AUTO
    master: str | None = None


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Inputs of more than 10 bytes are large."""
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    return resolve_settings((), ("limits.process_bytes=10",))


@pytest.fixture
def files(tmp_path: Path) -> dict[int, str]:
    """Files of 6 and 20 bytes."""
    for size in (6, 20):
        (tmp_path / str(size)).write_bytes(b"x" * size)
    return {size: str(tmp_path / str(size)) for size in (6, 20)}


def test_by_size_of_the_inputs_alone(settings: Settings, files: dict[int, str]) -> None:
    small, large = files[6], files[20]
    assert run_on_of(Options(), settings, [small, None]) == PROCESS
    assert run_on_of(Options(), settings, [large]) == SPARK
    assert run_on_of(Options(), settings, [small, small]) == SPARK
    assert run_on_of(Options(), settings, [small], [large, None]) == PROCESS


@pytest.mark.parametrize("pack", [gzip, bz2])
def test_a_packed_input_counts_as_it_unpacks(
    tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch, pack: ModuleType
) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    suffix = {gzip: "gz", bz2: "bz2"}[pack]
    file = tmp_path / "in" / f"pull_requests.jsonl.{suffix}"
    file.parent.mkdir()
    file.write_bytes(pack.compress(bytes(1000)))
    stored = place_of(bucket) / "in"
    stored.make_folder()
    with stored.file_system.open_output_stream(
        (stored / file.name).path, compression=None
    ) as target:
        target.write(file.read_bytes())
    for limit, where in ((1000, PROCESS), (999, SPARK)):
        limited = resolve_settings((), (f"limits.process_bytes={limit}",))
        for given in (str(file), str(file.parent), f"{bucket}/in", f"{bucket}/in/{file.name}"):
            assert run_on_of(Options(), limited, [given]) == where, given


def test_rows_of_parquet_count_and_not_their_bytes(
    tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    file = tmp_path / "in" / "committed_offsets.parquet"
    file.parent.mkdir()
    pq.write_table(pa.table({"offset": pa.repeat(7, 100_000)}), file)
    assert file.stat().st_size < 10_000
    (place_of(bucket) / "in").make_folder()
    stored = place_of(bucket) / "in" / file.name
    with stored.file_system.open_output_stream(stored.path) as target:
        target.write(file.read_bytes())
    for limit, where in ((12_800_000, PROCESS), (12_799_999, SPARK)):
        limited = resolve_settings((), (f"limits.process_bytes={limit}",))
        for given in (str(file), str(file.parent), f"{bucket}/in", f"{bucket}/in/{file.name}"):
            assert run_on_of(Options(), limited, [given]) == where, given
    file.write_bytes(b"PAR1 and no footer")
    assert run_on_of(Options(), limited, [str(file)]) == PROCESS


def test_no_bomb_is_unpacked_whole_to_know_its_size(tmp_path: Path) -> None:
    bomb = tmp_path / "a.csv.gz"
    bomb.write_bytes(gzip.compress(bytes(50 * 1024**2)))
    assert unpacked_size(str(bomb), 1000) <= BLOCK_BYTES
    bomb.write_bytes(bomb.read_bytes()[:-1000])
    assert 1000 < unpacked_size(str(bomb), 1 << 40) < 50 * 1024**2


def test_what_is_not_reached_is_read_and_written_by_spark(
    settings: Settings, files: dict[int, str]
) -> None:
    for inputs, others, why in (
        (["hdfs://n/x"], [], "HDFS is reached through Hadoop's libhdfs"),
        (["gs://b/x"], [], "only local folders, s3://, s3a://, hdfs:// can be reached"),
        ([files[6]], ["gs://b/x"], "only local folders, s3://, s3a://, hdfs:// can be reached"),
    ):
        assert run_on_of(Options(), settings, inputs, others) == SPARK
        with pytest.raises(UsageError, match=why):
            run_on_of(Options(PROCESS), settings, inputs, others)


def test_an_object_store_is_written_from_a_process(
    settings: Settings, files: dict[int, str]
) -> None:
    for output in ("s3://b/x", "s3a://b/x"):
        assert run_on_of(Options(), settings, [files[6]], [output]) == PROCESS
        assert run_on_of(Options(PROCESS), settings, [files[6]], [output]) == PROCESS
    for output in ("s3a:///x", "s3a://key:secret@b/x"):
        with pytest.raises(UsageError, match=r"names no bucket|keep keys out"):
            run_on_of(Options(), settings, [files[6]], [output])


@pytest.mark.parametrize(("size", "where"), [(6, PROCESS), (20, SPARK)])
def test_an_object_store_is_read_by_its_size(
    settings: Settings, bucket: str, size: int, where: str
) -> None:
    for name in ("a", "deep/b"):
        (place_of(bucket) / "in" / name).write_text("x" * (size // 2))
    assert run_on_of(Options(), settings, [f"{bucket}/in"]) == where
    assert run_on_of(Options(PROCESS), settings, [f"{bucket}/in"]) == PROCESS


def test_spark_may_reach_a_store_that_this_process_does_not(
    settings: Settings, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with denying_store() as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        assert run_on_of(Options(), settings, [f"{bucket}/in"]) == SPARK


def test_what_is_said_counts(
    settings: Settings, files: dict[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = [files[6]]
    assert run_on_of(Options(SPARK), settings, small) == SPARK
    assert run_on_of(Options(PROCESS), settings, [files[20]]) == PROCESS
    assert run_on_of(replace(Options(), master="local[1]"), settings, small) == SPARK
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert run_on_of(Options(), settings, small) == SPARK
