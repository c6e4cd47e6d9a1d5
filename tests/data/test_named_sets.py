import gzip
import hashlib
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gammacaps.data import find, load_data, load_set, registry
from gammacaps.data.registry import Entry, File, Pair
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
def tiny(monkeypatch: pytest.MonkeyPatch) -> Entry:
    """MNIST with two test images, at an address that nobody answers."""
    pair = Pair(tiny_file("t10k-images-idx3-ubyte", IMAGES), tiny_file("t10k-labels-idx1-ubyte", LABELS))
    entry = replace(registry.ENTRIES["mnist"], test=(pair,), train=(pair,))
    monkeypatch.setitem(registry.ENTRIES, "mnist", entry)
    return entry


def put(folder: Path, entry: Entry, *, packed: bool = True) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in ((entry.test[0].images, IMAGES), (entry.test[0].labels, LABELS)):
        if packed:
            (folder / f"{file.name}.gz").write_bytes(gzip.compress(content, mtime=0))
        else:
            (folder / file.name).write_bytes(content)


def test_download_is_checked_and_cached(
    tiny: Entry, served: tuple[Path, str], alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, url = served
    put(folder, tiny)
    assert find("mnist") is None
    monkeypatch.setitem(registry.ENTRIES, "mnist", replace(tiny, url=url))
    images, labels = load_data("mnist")
    assert (images * 255).round().flatten().tolist() == list(range(8))
    assert labels.tolist() == [3, 9]
    monkeypatch.setitem(registry.ENTRIES, "mnist", tiny)
    assert find("mnist") == alone / "gammacaps/mnist"
    assert load_set("mnist").source == str(alone / "gammacaps/mnist/t10k-images-idx3-ubyte.gz")


def test_wrong_hash_is_refused_and_leaves_nothing(
    tiny: Entry, served: tuple[Path, str], alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, url = served
    put(folder, tiny)
    (folder / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(IMAGES + b"x"))
    monkeypatch.setitem(registry.ENTRIES, "mnist", replace(tiny, url=url))
    with pytest.raises(InputError, match=r"ubyte.gz is not the file that it should be \(its hash differs\)"):
        load_data("mnist")
    assert [path for path in alone.rglob("*") if path.is_file()] == []


def test_offline_and_missing_say_where_files_may_be_put(
    tiny: Entry, served: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (
        r"t10k-images-idx3-ubyte.gz could not be fetched \({}\): try again with a network, "
        r"or put t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz into a folder "
        r"and name it by --data-dir or GAMMACAPS_DATA\.$"
    )
    with pytest.raises(InputError, match="^http://127.0.0.1:9/" + words.format("ConnectionError")):
        load_data("mnist")
    monkeypatch.setitem(registry.ENTRIES, "mnist", replace(tiny, url=served[1]))  # which offers no file
    with pytest.raises(InputError, match=words.format("HTTPError")):
        load_data("mnist")


def test_unwritable_cache(tiny: Entry, alone: Path) -> None:
    (alone / "gammacaps").write_text("a file where the folder should be")
    with pytest.raises(InputError, match=r"could not be fetched \(.+\): try again"):
        load_data("mnist")


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("below", ["mnist", ""])
def test_order_of_folders(
    tiny: Entry, tmp_path: Path, alone: Path, monkeypatch: pytest.MonkeyPatch, packed: bool, below: str
) -> None:
    places = {name: tmp_path / name for name in ("argument", "environment", "system")}
    for place in (*places.values(), alone / "gammacaps"):
        put(place / "mnist" if place.name == "gammacaps" else place / below, tiny, packed=packed)
    entry = replace(tiny, folders=(str(places["system"] / below),))
    monkeypatch.setitem(registry.ENTRIES, "mnist", entry)
    monkeypatch.setenv("GAMMACAPS_DATA", str(places["environment"]))
    assert find("mnist", places["argument"]) == places["argument"] / below
    assert load_set("mnist", data_dir=str(places["argument"])).source.startswith(str(places["argument"]))
    assert find("mnist") == places["environment"] / below
    monkeypatch.delenv("GAMMACAPS_DATA")
    assert find("mnist") == places["system"] / below
    monkeypatch.setitem(registry.ENTRIES, "mnist", tiny)
    assert find("mnist") == alone / "gammacaps/mnist"


def test_a_lone_file_is_not_a_set(tiny: Entry, tmp_path: Path) -> None:
    put(tmp_path, tiny)
    (tmp_path / "t10k-labels-idx1-ubyte.gz").unlink()
    assert find("mnist", tmp_path) is None


def test_changed_content_is_refused(tiny: Entry, tmp_path: Path) -> None:
    put(tmp_path, tiny)
    path = tmp_path / "t10k-labels-idx1-ubyte.gz"
    path.write_bytes(gzip.compress(LABELS[:-1] + b"\x08"))
    expected = tiny.test[0].labels.content
    words = rf"^{path} has the wrong content \(md5 [0-9a-f]{{32}} unpacked, expected {expected}\): replace it, or"
    with pytest.raises(InputError, match=words):
        load_data("mnist", data_dir=tmp_path)


def test_the_other_mnist_is_named(tiny: Entry, tmp_path: Path) -> None:
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
            r"-cat.mat.gz holds uint8 of the shape \(2, 2, 4, 4\), not a 32-bit label",
        ),
        (dat(2, 2, 4, 4)[:-1], cat(0, 1), r"-dat.mat is cut short"),
    ],
)
def test_bad_norb_copies(tmp_path: Path, pixels: bytes, labels: bytes, words: str) -> None:
    put_norb(tmp_path, pixels, labels)
    with pytest.raises(InputError, match=words):
        load_data("smallnorb", data_dir=tmp_path)
