"""A place behaves alike in a folder and in a bucket."""

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from rebalance_core.storage.place import Place, place_of
from tests.object_store import fill

KINDS = ("folder", "bucket")


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An empty folder of either kind."""
    if request.param == "folder":
        yield place_of(tmp_path)
    else:
        yield place_of(request.getfixturevalue("bucket") + "/a b")


def test_small_files(place: Place) -> None:
    file = place / "note.txt"
    assert file.read_text() is None
    assert not file.exists()
    file.write_text("erst ä")
    file.write_text("dann ö")
    assert (file.read_text(), file.exists(), file.is_folder()) == ("dann ö", True, False)
    assert (place / "note.txt" / "below").read_text() is None
    file.delete()
    file.delete()
    assert file.read_text() is None


def test_folders(place: Place) -> None:
    assert (place / "t").names() == []
    assert (place / "t").files() == []
    for name in ("t/2", "t/1", "t/x=1/3", "u/1"):
        folder = place / name.rpartition("/")[0]
        folder.make_folder()
        (place / name).write_text(name)
    assert place.names() == ["t", "u"]
    assert (place / "t").names() == ["1", "2", "x=1"]
    found = (place / "t").files()
    assert [file.read_text() for file in found] == ["t/1", "t/2", "t/x=1/3"]
    assert found[2].url == f"{place.url}/t/x=1/3"
    assert (place / "t").is_folder()
    with pytest.raises(FileExistsError):
        (place / "t").make_new_folder()
    (place / "t").delete()
    assert not (place / "t").exists()
    assert (place / "u").names() == ["1"]


def test_a_file_is_moved_over_another_or_not_at_all(place: Place) -> None:
    (place / "from").make_folder()
    (place / "to").make_folder()
    (place / "from" / "a").write_text("new")
    (place / "to" / "a").write_text("old")
    (place / "from" / "a").move_to(place / "to" / "a")
    assert (place / "to" / "a").read_text() == "new"
    assert not (place / "from" / "a").exists()
    with pytest.raises(FileNotFoundError):
        (place / "from" / "a").move_to(place / "to" / "b")
    assert (place / "to").names() == ["a"]


def test_a_place_travels_without_showing_keys(place: Place) -> None:
    (place / "n").write_text("1")
    again: Place = pickle.loads(pickle.dumps(place))
    assert again == place
    assert again.names() == ["n"]
    assert "secret" not in repr(place)


def test_more_objects_than_a_page_of_a_listing(bucket: str) -> None:
    folder = place_of(f"{bucket}/many")
    fill(folder.path, 1002)
    assert len(folder.names()) == len(folder.files()) == 1002
    folder.delete()
    assert folder.names() == []
