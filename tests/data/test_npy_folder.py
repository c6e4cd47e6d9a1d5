import json
import os

import numpy as np
import pytest
import torch
from PIL import Image

from gammacaps.cli import main
from gammacaps.data import StoredSet, load_set, open_set, store_batches, store_set
from gammacaps.data.fingerprint import fingerprint
from gammacaps.errors import InputError

SPLITS = ("train", "test")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """fashion-mini on disk."""
    folder = tmp_path_factory.mktemp("stored") / "fashion"
    assert store_set("fashion-mini", folder) == {"train": 2000, "test": 500}
    return folder


@pytest.mark.parametrize("split", SPLITS)
def test_a_stored_set_is_the_set(stored, split):
    opened, data = open_set(stored, split), load_set("fashion-mini", split)
    assert isinstance(opened, StoredSet)
    assert opened.class_names == data.class_names
    assert opened.images.shape == tuple(data.images.shape)
    assert torch.equal(opened.labels, data.labels)
    for index in (slice(3, 9), slice(None, None, 100), torch.tensor([7, 2, 7])):
        assert torch.equal(opened.images[index], data.images[index])
    places = torch.tensor([5, 1, 8])
    assert torch.equal(opened.images.at(places)[torch.tensor([2, 0])], data.images[[8, 5]])
    assert torch.equal(load_set(stored, split).images, data.images)
    assert fingerprint(opened.images, opened.labels) == fingerprint(data.images, data.labels)
    small = open_set(stored, split, size=14)
    assert small.images.shape[2:] == (14, 14)
    assert torch.equal(small.images[:4], load_set("fashion-mini", split, size=14).images[:4])


def test_an_unpacked_npz_is_a_stored_set(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (40, 6, 5, 3), np.uint8)  # channels last
    labels = np.arange(40) % 2
    np.savez(tmp_path / "mine.npz", images=pixels, labels=labels)
    (tmp_path / "mine").mkdir()
    np.save(tmp_path / "mine" / "images.npy", pixels)
    np.save(tmp_path / "mine" / "labels.npy", labels)
    for split in SPLITS:  # every fifth image of a class is for testing
        opened, data = open_set(tmp_path / "mine", split), load_set(tmp_path / "mine.npz", split)
        assert torch.equal(opened.images[:], data.images)
        assert torch.equal(opened.labels, data.labels)
        assert opened.class_names == data.class_names == ("0", "1")


def test_a_folder_of_images_is_stored_file_by_file(tmp_path, capsys):
    generator = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for k in range(10):
            Image.fromarray(generator.integers(0, 256, (8, 9, 3), np.uint8)).save(
                tmp_path / "photos" / name / f"{k}.png"
            )
    main(["data", str(tmp_path / "photos"), "--store", str(tmp_path / "stored")])
    assert "Stored 16 training and 4 test images" in capsys.readouterr().out
    for split in SPLITS:
        data = load_set(tmp_path / "photos", split)
        assert torch.equal(open_set(tmp_path / "stored", split).images[:], data.images)
        assert torch.equal(open_set(tmp_path / "stored", split).labels, data.labels)
    main(["data", str(tmp_path / "photos"), "--store", str(tmp_path / "small"), "--size", "4", "--json"])
    assert json.loads(capsys.readouterr().out)["images"] == {"train": 16, "test": 4}
    small, exact = (open_set(tmp_path / name, "train", size=4).images[:] for name in ("small", "photos"))
    assert (small - exact).abs().max() <= 0.5 / 255 + 1e-6  # rounded to bytes
    main(["data", str(tmp_path / "stored"), "--json"])
    main(["data", str(tmp_path / "photos"), "--json"])
    first, second = (json.loads(line)["splits"]["train"] for line in capsys.readouterr().out.splitlines())
    assert {**first, "source": ""} == {**second, "source": ""}


def test_batches_from_anywhere_are_stored_without_being_kept(tmp_path):
    images, labels = torch.rand(7, 3, 5, 4), torch.tensor([0, 1, 2, 0, 1, 2, 0])

    def batches(number):
        in_bytes = (images * 255).round().to(torch.uint8)
        kinds = [(images, labels), (in_bytes, labels), (in_bytes.numpy(), labels.numpy()), (images.numpy(), labels)]
        yield from (kinds[k % 4] for k in range(number))

    assert store_batches(tmp_path / "set", ("a", "b", "c"), train=batches(30), test=batches(1)) == {
        "train": 210,
        "test": 7,
    }
    opened = open_set(tmp_path / "set", "train")
    assert opened.images.shape == (210, 3, 5, 4)
    assert torch.equal(opened.images[203:], opened.images[:7])
    assert (opened.images[:7] - images).abs().max() <= 0.5 / 255 + 1e-6
    assert torch.equal(opened.labels, labels.repeat(30))


def broken(change):
    def apply(folder):
        pixels, labels = np.zeros((10, 1, 4, 4), np.uint8), np.arange(10) % 2
        for split in SPLITS:
            np.save(folder / f"{split}_images.npy", pixels)
            np.save(folder / f"{split}_labels.npy", labels)
        change(folder)

    return apply


def header(words):
    """Puts another header before the training images."""
    content = b"\x93NUMPY\x01\0" + len(words).to_bytes(2, "little") + words + bytes(160)
    return lambda folder: (folder / "train_images.npy").write_bytes(content)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: (f / "test_labels.npy").unlink(), r"lacks the file test_labels.npy: write it again"),
        (
            lambda f: np.save(f / "train_images.npy", np.zeros((10, 1, 4, 4))),
            "holds float64, but images are kept",
        ),
        (lambda f: np.save(f / "train_labels.npy", np.arange(9) % 2), "has 10 train_images but 9 train_labels"),
        (lambda f: (f / "train_images.npy").write_bytes(b"not an array"), "is not a whole .npy file"),
        (
            lambda f: (f / "train_images.npy").write_bytes((f / "train_images.npy").read_bytes()[:-9]),
            "not a whole .npy",
        ),
        (lambda f: np.save(f / "train_images.npy", np.zeros((10, 1, 5, 4), np.uint8)), "store both alike"),
        (lambda f: np.save(f / "train_labels.npy", np.zeros(10)), "have the dtype float64"),
        (lambda f: np.save(f / "train_labels.npy", np.array([{}] * 10), allow_pickle=True), "not a whole .npy file"),
        (header(b"{'descr': '\\d', 'fortran_order': False, 'shape': (2,)}"), "dtype is unknown"),
        (header(b"{'descr': '|u1', 'fortran_order': False, 'shape': (2"), "header can't be understood"),
        (header(b"{'descr': '|u1', 'fortran_order': False, 'shape': (1099511627776,)}"), "promises .1099511627776,"),
        (header(b"{'descr': '|u1', 'fortran_order': False, 'shape': (-1,)}"), "header can't be understood"),
        (lambda f: np.save(f / "train_images.npy", np.zeros((0, 1, 4, 4), np.uint8)), "have no pixels"),
        (
            lambda f: np.save(f / "train_labels.npy", np.int64(1)),
            r"have the shape \(\): store one class number for each image",
        ),
        (lambda f: np.save(f / "class_names.npy", np.array(["a", "b\x1b"])), "characters that can't be printed"),
        (lambda f: np.save(f / "class_names.npy", np.zeros(2, [("a", "U3")])), "Python objects or records"),
        (
            lambda f: ((f / "test_images.npy").unlink(), (f / "test_images.npy").mkdir()),
            "not a whole .npy file .*directory",
        ),
    ],
)
def test_a_broken_folder_is_one_sentence(tmp_path, change, words):
    broken(change)(tmp_path)
    with pytest.raises(InputError, match=words):
        open_set(tmp_path, "train")


def test_a_stored_set_that_can_t_fit_into_memory_stays_on_disk(stored, monkeypatch):
    monkeypatch.setattr(os, "sysconf", lambda name: 1000)  # a machine of a million bytes
    assert len(open_set(stored, "train").images) == 2000
    with pytest.raises(InputError, match=r"fashion needs 0.0 GiB of memory, but there are 0.0: give fewer or smaller"):
        load_set(stored, "train")


def test_what_a_killed_process_left_is_removed_when_the_set_is_stored_again(tmp_path):
    """The lock of a dead process is free."""
    (tmp_path / ".set.0123abcd" / "new").mkdir(parents=True)
    (tmp_path / ".set.0123abcd" / "lock").touch()
    (tmp_path / ".set.0123abcd" / "new" / "train_images.npy").write_bytes(b"half")
    good = [(torch.rand(2, 1, 4, 4), torch.tensor([0, 1]))]
    store_batches(tmp_path / "set", ("a", "b"), train=good, test=good)
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_what_can_t_be_stored_is_one_sentence_and_leaves_nothing(tmp_path, capsys):
    good = (torch.rand(2, 1, 4, 4), torch.tensor([0, 1]))
    wide = (torch.rand(2, 1, 4, 5), torch.tensor([0, 1]))
    for train, words in (
        ([good, wide], "are of the shapes"),
        ([], "are none: give at least one batch"),
        ([(2 * good[0], good[1])], "pixels must be finite and within"),
        ([(good[0], torch.tensor([0, 5]))], "class numbers go from 0 to 1"),
    ):
        with pytest.raises(InputError, match=words):
            store_batches(tmp_path / "set", ("a", "b"), train=train, test=[good])
    with pytest.raises(InputError, match=r"the class name 'a\\n' has characters that can't be printed"):
        store_batches(tmp_path / "set", ("a\n", "b"), train=[good], test=[good])
    assert not list(tmp_path.iterdir())
    (tmp_path / "set").mkdir()
    with pytest.raises(InputError, match="exists already: choose another folder, or remove it"):
        store_set("fashion-mini", tmp_path / "set")
    with pytest.raises(SystemExit):
        main(["data", "--store", str(tmp_path / "new")])
    assert "Name the data set that is to be stored" in capsys.readouterr().err
