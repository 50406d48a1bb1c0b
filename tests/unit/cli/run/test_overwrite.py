"""``--overwrite`` never removes what the run itself reads."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from rebalance_core.cli.main import main
from rebalance_core.cli.run.output_folder import refuse_own_input, typed_place
from rebalance_core.model.errors import OutputExists
from rebalance_core.storage.access import S3Access
from rebalance_core.storage.place import Place
from tests.unit.cli.run.test_output_run import names


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
@pytest.mark.parametrize("job", ["simulate", "plan", "propagate", "audit"])
def test_the_tables_of_an_earlier_job_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], job: str, more: tuple[str, ...]
) -> None:
    tables = tmp_path / "tables"
    assert main("generate", ["--groups", "1", "--output", str(tables)]) == 0
    before = names(tables)
    words = [job, "--input", str(tables), "--output", f"{tables}/", "--overwrite", *more]
    assert main(None, words) == 5
    assert "which --overwrite would remove" in capsys.readouterr().err
    assert names(tables) == before


def test_below_the_output_beside_it_and_elsewhere(tmp_path: Path) -> None:
    folder = typed_place(str(tmp_path / "night"))
    (tmp_path / "link").symlink_to(tmp_path / "night")
    for given in ("night", "night/ingested", "link/ingested", "other/../night"):
        with pytest.raises(OutputExists, match=r"--previous .* name another"):
            refuse_own_input(folder, options(previous=str(tmp_path / given)))
    for given in ("night2", "ingested"):
        refuse_own_input(folder, options(previous=str(tmp_path / given)))
    refuse_own_input(folder, options(previous="s3://night/ingested"))


def test_in_a_store() -> None:
    folder = Place("s3://b/night", "b/night", S3Access("b"))
    with pytest.raises(OutputExists, match="--input s3a://b/night/ingested is in --output"):
        refuse_own_input(folder, options(input="s3a://b/night/ingested"))
    refuse_own_input(folder, options(input="s3://b/night2"))
    with pytest.raises(OutputExists, match="--output s3://b/night is in --input s3a://b;"):
        refuse_own_input(folder, options(input="s3a://b"))


@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize("option", ["input", "collection", "runs", "previous", "queue_rates"])
def test_an_output_in_an_input_is_refused(tmp_path: Path, option: str, overwrite: bool) -> None:
    night = tmp_path / "runs" / "night"
    night.mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "runs")
    for given in ("runs", "link", "runs/../runs", "runs/n*"):
        asked = options(**{option: str(tmp_path / given), "overwrite": overwrite})
        for output in ("runs/night", "link/night/deeper", "runs/night/."):
            with pytest.raises(OutputExists, match=f"--{option.replace('_', '-')} "):
                refuse_own_input(typed_place(str(tmp_path / output)), asked)
    same = options(input=str(night), overwrite=False)
    with pytest.raises(OutputExists, match="is in --output"):
        refuse_own_input(typed_place(str(night)), same)


def options(**values: object) -> SimpleNamespace:
    return SimpleNamespace(**({"overwrite": True} | values))
