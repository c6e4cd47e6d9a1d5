import gzip
import hashlib
import re
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from gammacaps.cli import main
from gammacaps.data import Content, File, NamedSet, SplitFiles, add_data_set, find, load_data, load_set, names
from gammacaps.data.group_names import name_of_classes
from gammacaps.data.named_files import info_file
from gammacaps.data.named_sets import NAMED_SETS
from gammacaps.errors import InputError

IMAGES = struct.pack(">HBB3I", 0, 8, 3, 2, 2, 2) + bytes(range(8))
LABELS = struct.pack(">HBB1I", 0, 8, 1, 2) + bytes([3, 9])


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and the address at which a server on this machine offers it."""
    folder = tmp_path / "served"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def tiny_file(name: str, content: bytes) -> File:
    packed = gzip.compress(content, mtime=0)
    return File(name, f"md5:{hashlib.md5(packed).hexdigest()}", hashlib.md5(content).hexdigest())


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> dict[str, NamedSet]:
    """The table of named sets, from which all that a test adds is taken away again."""
    monkeypatch.setitem(NAMED_SETS, "mine", tiny_set())
    monkeypatch.delitem(NAMED_SETS, "mine")
    return NAMED_SETS


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> NamedSet:
    """MNIST with two test images, at an address that nobody answers."""
    files = SplitFiles(tiny_file("t10k-images-idx3-ubyte", IMAGES), tiny_file("t10k-labels-idx1-ubyte", LABELS))
    entry = replace(NAMED_SETS["mnist"], test=(files,), train=(files,))
    monkeypatch.setitem(NAMED_SETS, "mnist", entry)
    return entry


def put(folder: Path, entry: NamedSet, *, packed: bool = True) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in ((entry.test[0].images, IMAGES), (entry.test[0].labels, LABELS)):
        if packed:
            (folder / f"{file.name}.gz").write_bytes(gzip.compress(content, mtime=0))
        else:
            (folder / file.name).write_bytes(content)


def test_download_is_checked_and_cached(
    tiny: NamedSet, served: tuple[Path, str], alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, url = served
    put(folder, tiny)
    assert find("mnist") is None
    monkeypatch.setitem(NAMED_SETS, "mnist", replace(tiny, url=url))
    images, labels = load_data("mnist")
    assert (images * 255).round().flatten().tolist() == list(range(8))
    assert labels.tolist() == [3, 9]
    monkeypatch.setitem(NAMED_SETS, "mnist", tiny)
    assert find("mnist") == alone / "gammacaps/mnist"
    assert load_set("mnist").source == str(alone / "gammacaps/mnist/t10k-images-idx3-ubyte.gz")


def test_wrong_hash_is_refused_and_leaves_nothing(
    tiny: NamedSet, served: tuple[Path, str], alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, url = served
    put(folder, tiny)
    (folder / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(IMAGES + b"x"))
    monkeypatch.setitem(NAMED_SETS, "mnist", replace(tiny, url=url))
    with pytest.raises(InputError, match=r"ubyte.gz is not the file that it should be \(its hash differs\)"):
        load_data("mnist")
    assert [path for path in alone.rglob("*") if path.is_file()] == []


def test_offline_and_missing_say_where_files_may_be_put(
    tiny: NamedSet, served: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (
        r"t10k-images-idx3-ubyte.gz could not be fetched \({}\): try again with a network, "
        r"or put t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz into a folder "
        r"and name it by --data-dir or GAMMACAPS_DATA\.$"
    )
    with pytest.raises(InputError, match="^http://127.0.0.1:9/" + words.format("ConnectionError")):
        load_data("mnist")
    monkeypatch.setitem(NAMED_SETS, "mnist", replace(tiny, url=served[1]))  # which offers no file
    with pytest.raises(InputError, match=words.format("HTTPError")):
        load_data("mnist")


def test_unwritable_cache(tiny: NamedSet, alone: Path) -> None:
    (alone / "gammacaps").write_text("a file where the folder should be")
    with pytest.raises(InputError, match=r"could not be fetched \(.+\): try again"):
        load_data("mnist")


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("below", ["mnist", ""])
def test_order_of_folders(
    tiny: NamedSet, tmp_path: Path, alone: Path, monkeypatch: pytest.MonkeyPatch, packed: bool, below: str
) -> None:
    places = {name: tmp_path / name for name in ("argument", "environment", "system")}
    for place in (*places.values(), alone / "gammacaps"):
        put(place / "mnist" if place.name == "gammacaps" else place / below, tiny, packed=packed)
    entry = replace(tiny, folders=(str(places["system"] / below),))
    monkeypatch.setitem(NAMED_SETS, "mnist", entry)
    monkeypatch.setenv("GAMMACAPS_DATA", str(places["environment"]))
    assert find("mnist", places["argument"]) == places["argument"] / below
    assert load_set("mnist", data_dir=str(places["argument"])).source.startswith(str(places["argument"]))
    assert find("mnist") == places["environment"] / below
    monkeypatch.delenv("GAMMACAPS_DATA")
    assert find("mnist") == places["system"] / below
    monkeypatch.setitem(NAMED_SETS, "mnist", tiny)
    assert find("mnist") == alone / "gammacaps/mnist"


def test_a_lone_file_is_not_a_set(tiny: NamedSet, tmp_path: Path) -> None:
    put(tmp_path, tiny)
    (tmp_path / "t10k-labels-idx1-ubyte.gz").unlink()
    assert find("mnist", tmp_path) is None


def test_changed_content_is_refused(tiny: NamedSet, tmp_path: Path) -> None:
    put(tmp_path, tiny)
    path = tmp_path / "t10k-labels-idx1-ubyte.gz"
    path.write_bytes(gzip.compress(LABELS[:-1] + b"\x08"))
    expected = tiny.test[0].labels.content
    words = rf"^{path} has the wrong content \(md5 [0-9a-f]{{32}} unpacked, expected {expected}\): replace it, or"
    with pytest.raises(InputError, match=words):
        load_data("mnist", data_dir=tmp_path)


def test_the_other_mnist_is_named(tiny: NamedSet, tmp_path: Path) -> None:
    put(tmp_path, tiny)
    with pytest.raises(InputError, match=r"\), it is a file of mnist: replace it, or remove it"):
        load_data("fashion-mnist", data_dir=tmp_path)


def test_missing_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"^The data folder, .*/nowhere, does not exist: correct it"):
        load_data("mnist", data_dir=tmp_path / "nowhere")
    monkeypatch.setenv("GAMMACAPS_DATA", "/nowhere")
    with pytest.raises(InputError, match=r"^The folder in GAMMACAPS_DATA, /nowhere, does not exist"):
        find("mnist")


@pytest.mark.slow
def test_pooch_is_not_imported_for_files_at_hand() -> None:
    code = "import sys, gammacaps.data as data; data.load_data('fashion-mini');assert 'pooch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def dat(*shape: int, magic: int = 0x1E3D4C55) -> bytes:
    count = 1
    for side in shape:
        count *= side
    return struct.pack(f"<II{len(shape)}I", magic, len(shape), *shape) + bytes(i % 251 for i in range(count))


def cat(*labels: int) -> bytes:
    return struct.pack("<II3I", 0x1E3D4C54, 1, len(labels), 1, 1) + struct.pack(f"<{len(labels)}i", *labels)


def put_norb(folder: Path, pixels: bytes, labels: bytes, stem: str = "smallnorb48-testing") -> None:
    (folder / f"{stem}-dat.mat").write_bytes(pixels)
    (folder / f"{stem}-cat.mat.gz").write_bytes(gzip.compress(labels))


def test_norb_views(tmp_path: Path) -> None:
    put_norb(tmp_path, dat(3, 2, 4, 4), cat(4, 0, 2))
    images, labels = load_data("smallnorb", data_dir=tmp_path, size=4)
    assert images.shape == (6, 1, 4, 4)
    assert labels.tolist() == [4, 4, 0, 0, 2, 2]
    both, pair_labels = load_data("smallnorb", data_dir=tmp_path, size=4, views="channels")
    assert pair_labels.tolist() == [4, 0, 2]
    assert (both[:, 0] == images[0::2, 0]).all()
    assert (both[:, 1] == images[1::2, 0]).all()
    assert load_data("smallnorb", data_dir=tmp_path)[0].shape == (6, 1, 28, 28)


def test_official_norb_goes_before_the_small_copy(tmp_path: Path) -> None:
    put_norb(tmp_path, dat(3, 2, 4, 4), cat(4, 0, 2))
    put_norb(tmp_path, dat(1, 2, 6, 6), cat(1), "smallnorb-5x01235x9x18x6x2x96x96-testing")
    assert load_set("smallnorb", data_dir=tmp_path).source.endswith("2x96x96-testing-dat.mat")
    assert load_data("smallnorb", data_dir=tmp_path)[1].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("pixels", "labels", "words"),
    [
        (
            dat(3, 2, 4, 4),
            cat(0, 1),
            r"-dat.mat has 3 images but .*-cat.mat.gz has 2 labels: fetch both again",
        ),
        (dat(2, 2, 4, 4), cat(0, 5), r"-cat.mat.gz: label 1 is 5, but the classes go from 0 to 4"),
        (dat(2, 2, 4, 4), cat(-1, 5), r"-cat.mat.gz: label 0 is -1, but"),
        (
            dat(2, 3, 4, 4),
            cat(0, 1),
            r"-dat.mat holds uint8 of the shape \(2, 3, 4, 4\), not bytes of \(pairs, 2",
        ),
        (cat(0, 1), cat(0, 1), r"-dat.mat holds int32 of the shape \(2,\)"),
        (
            dat(2, 2, 4, 4),
            dat(2, 2, 4, 4),
            r"-cat.mat.gz holds uint8 of the shape \(2, 2, 4, 4\), not one 32-bit label",
        ),
        (dat(2, 2, 4, 4)[:-1], cat(0, 1), r"-dat.mat is cut short"),
    ],
)
def test_bad_norb_copies(tmp_path: Path, pixels: bytes, labels: bytes, words: str) -> None:
    put_norb(tmp_path, pixels, labels)
    with pytest.raises(InputError, match=words):
        load_data("smallnorb", data_dir=tmp_path)


def tiny_set(**changes: object) -> NamedSet:
    """A set of two images, as a user would add it."""
    files = SplitFiles(tiny_file("my-images", IMAGES), tiny_file("my-labels", LABELS))
    fields = {"name": "mine", "class_names": tuple("abcdefghij"), "train": (files,), "test": (files,)}
    return NamedSet(**{**fields, **changes})


def test_a_set_added_from_outside_is_fetched_by_its_name(served: tuple[Path, str], table: dict[str, NamedSet]) -> None:
    folder, url = served
    put(folder, tiny_set())
    add_data_set(tiny_set(url=url, size=(1, 1)))
    assert "mine" in names()
    data = load_set("mine")
    assert data.images.shape == (2, 1, 1, 1)
    assert data.labels.tolist() == [3, 9]
    assert data.class_names == tuple("abcdefghij")


def test_what_its_images_show_is_fetched_where_it_is_asked_for(
    served: tuple[Path, str], table: dict[str, NamedSet], tmp_path: Path, alone: Path
) -> None:
    """Also beside images that were there before."""
    folder, url = served
    named = tiny_set(url=url)
    table["mine"] = replace(named, test=(replace(named.test[0], info=tiny_file("my-info", b"toys")),))
    put(tmp_path / "old", named)
    (folder / "my-info.gz").write_bytes(gzip.compress(b"toys", mtime=0))
    assert info_file("mine", "test", tmp_path / "old") is None
    path = info_file("mine", "test", tmp_path / "old", fetch=True)
    assert path is not None
    assert gzip.decompress(path.read_bytes()) == b"toys"
    assert info_file("mine", "test", tmp_path / "old") == path  # now in the cache
    (tmp_path / "old" / "my-info").write_bytes(b"other toys")
    assert info_file("mine", "test", tmp_path / "old") == tmp_path / "old" / "my-info"


def test_a_reader_of_the_user_s_own(tmp_path: Path, table: dict[str, NamedSet]) -> None:
    def colours(images: Content, labels: Content) -> tuple[np.ndarray, np.ndarray]:
        pixels = np.frombuffer(images.data, np.uint8)[-8:].reshape(2, 1, 2, 2)
        return pixels.repeat(3, axis=1), np.array([0, 1])

    add_data_set(tiny_set(read=colours))
    put(tmp_path, tiny_set())
    assert load_data("mine", data_dir=tmp_path)[0].shape == (2, 3, 2, 2)
    table["mine"] = tiny_set(read=lambda *_: (np.zeros((2, 4, 4)), np.array([0, 1])))
    with pytest.raises(InputError, match=r"my-images.gz holds float64 of the shape .* put mine's own file there"):
        load_data("mine", data_dir=tmp_path)
    table["mine"] = tiny_set(read=lambda *_: (np.zeros((2, 4, 4), np.uint8), np.array([0.0, 1.0])))
    with pytest.raises(InputError, match=r"my-labels.gz holds float64 of the shape \(2,\), not one class number"):
        load_data("mine", data_dir=tmp_path)


def test_a_set_of_one_s_own_may_be_added_again(table: dict[str, NamedSet]) -> None:
    add_data_set(tiny_set())
    before = names()
    add_data_set(tiny_set(class_names=("x", "y")))
    assert names() == before
    assert table["mine"].class_names == ("x", "y")


def test_an_unknown_split_is_no_test_split() -> None:
    with pytest.raises(InputError, match=r"There is no split 'tests' .*: use one of train, test"):
        tiny_set().editions("tests")


def test_what_no_server_offers_says_where_to_put_it(table: dict[str, NamedSet]) -> None:
    add_data_set(tiny_set())
    with pytest.raises(InputError, match=r"^mine is not on this machine, and no server offers it: put my-images.gz"):
        load_data("mine")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "mnist"}, "'mnist' is a data set of gammacaps itself: give yours another name"),
        ({"name": "fashion-mini"}, "'fashion-mini' is a data set of gammacaps itself"),
        ({"name": "a.npz"}, r"A data set can't be called 'a.npz': use letters, digits, - and _"),
        ({"name": ""}, "A data set can't be called ''"),
        ({"test": ()}, "The data set mine needs the files of a train and of a test split"),
        ({"class_names": ("one",)}, "The data set mine needs the names of at least two classes"),
        ({"class_names": ("a", "b\n")}, "has characters that can't be printed"),
        ({"groups": {"few": ("a",)}}, "The group 'few' of the data set mine needs the names of at least two classes"),
        ({"groups": {"few": ("a", "z")}}, "There is no class in the group 'few' 'z'"),
        ({"groups": {" ": ("a", "b")}}, "A group of the data set mine has no name"),
        (
            {"url": "http://127.0.0.1:9/", "train": (SplitFiles(File("x", "md5:0"), File("y")),)},
            "is fetched from http://127.0.0.1:9/, but y has no hash to check it by",
        ),
    ],
)
def test_a_set_that_can_t_be_added(changes: dict[str, object], words: str) -> None:
    before = names()
    with pytest.raises(InputError, match=words):
        add_data_set(tiny_set(**changes))
    assert names() == before


def test_a_set_of_one_s_own_can_name_groups(table: dict[str, NamedSet]) -> None:
    add_data_set(tiny_set(groups={"first letters": ("a", "b", "c")}))
    assert name_of_classes((0, 1, 2), tuple("abcdefghij"), "mine") == "first letters"


PLUGIN = """
from gammacaps.data import Content, File, NamedSet, SplitFiles, add_data_set

files = SplitFiles(File("my-images", content="{images}"), File("my-labels", content="{labels}"))
add_data_set(NamedSet(name="mine", class_names=tuple("abcdefghij"), train=(files,), test=(files,)))
"""


def test_a_plugin_s_set_on_the_command_line(
    tmp_path: Path, table: dict[str, NamedSet], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hashes = {"images": hashlib.md5(IMAGES).hexdigest(), "labels": hashlib.md5(LABELS).hexdigest()}
    (tmp_path / "plugin_of_a_set.py").write_text(PLUGIN.format(**hashes))
    put(tmp_path / "data", tiny_set())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GAMMACAPS_PLUGINS", "plugin_of_a_set")
    monkeypatch.delitem(sys.modules, "plugin_of_a_set", raising=False)
    main(["data", "--data-dir", "data"])
    assert re.search(r"mine +data\n", capsys.readouterr().out)
    main(["data", "mine", "--data-dir", "data"])
    assert "train: 2 images of 1x2x2 from data/my-images.gz" in capsys.readouterr().out
    assert load_data("mine", data_dir="data")[1].tolist() == [3, 9]


def test_the_guide_s_set_can_be_added(monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (Path(__file__).parents[2] / "docs/own-data.md").read_text()
    (source,) = re.findall(r"```python\n(# my_sets\.py.*?)```", guide, re.DOTALL)
    monkeypatch.setitem(NAMED_SETS, "kuzushiji", tiny_set())
    monkeypatch.delitem(NAMED_SETS, "kuzushiji")
    exec(compile(source, "my_sets.py", "exec"), {})
    assert names()[-2] == "kuzushiji"
    assert find("kuzushiji") is None
