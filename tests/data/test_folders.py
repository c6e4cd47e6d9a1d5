import os
import re
import shutil
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from gammacaps.data import area_resize, load_data, load_set
from gammacaps.data.folders import image_endings
from gammacaps.errors import InputError

RNG = np.random.default_rng(0)


def save(path: Path, pixels: np.ndarray, mode: str | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(pixels)
    (image.convert(mode) if mode else image).save(path)


def grey(height: int = 4, width: int = 6) -> np.ndarray:
    return RNG.integers(0, 256, (height, width), np.uint8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two classes of ten and five grey images; image k of a class is filled with k."""
    for name, count in (("cat", 10), ("dog", 5)):
        for k in range(count):
            save(tmp_path / "pets" / name / f"{k:02}.png", np.full((4, 6), k, np.uint8))
    return tmp_path / "pets"


def values(images: torch.Tensor) -> list[int]:
    return (images[:, 0, 0, 0] * 255).round().int().tolist()


def test_every_fifth_is_for_testing_and_classes_take_turns(folder: Path) -> None:
    (folder / "cat" / "notes.txt").write_text("not an image")
    (folder / "cat" / "._00.png").write_text("what another system leaves behind")
    (folder / ".git").mkdir()
    test = load_set(folder)
    assert test.class_names == ("cat", "dog")
    assert test.images.shape == (3, 1, 4, 6)
    assert (test.labels.tolist(), values(test.images)) == ([0, 1, 0], [4, 4, 9])
    train = load_set(folder, "train")
    assert train.labels.tolist() == [0, 1] * 4 + [0] * 4
    assert values(train.images) == [0, 0, 1, 1, 2, 2, 3, 3, 5, 6, 7, 8]


def test_own_split(folder: Path) -> None:
    root = folder.parent / "root"
    shutil.copytree(folder, root / "train")
    shutil.copytree(folder, root / "test")
    (root / "train/cat/03.png").unlink()
    assert len(load_set(root, "train").images) == 14
    assert len(load_set(root, "test").images) == 15


def test_train_may_be_a_class(folder: Path) -> None:
    (folder / "cat").rename(folder / "train")
    assert load_set(folder).class_names == ("dog", "train")


def test_one_colour_image_makes_all_rgb_in_both_splits(folder: Path) -> None:
    colour = RNG.integers(0, 256, (4, 6, 3), np.uint8)
    save(folder / "dog/99.png", colour)  # the sixth, so it is for training
    assert load_data(folder)[0].shape == (3, 3, 4, 6)
    images, labels = load_data(folder, "train")
    last_dog = int((labels == 1).nonzero()[-1])
    np.testing.assert_array_equal((images[last_dog] * 255).round().numpy(), colour.transpose(2, 0, 1))


@pytest.mark.parametrize(("mode", "channels"), [("1", 1), ("LA", 1), ("P", 3), ("RGBA", 3)])
def test_modes(folder: Path, mode: str, channels: int) -> None:
    save(folder / "dog/04.png", grey(), mode)
    assert load_data(folder)[0].shape == (3, channels, 4, 6)


def test_size_resizes_each(folder: Path) -> None:
    odd = grey(9, 5)
    save(folder / "dog/04.png", odd)
    images, _ = load_data(folder, size=(3, 2))
    expected = area_resize(torch.tensor(odd / 255, dtype=torch.float32)[None, None], (3, 2))
    torch.testing.assert_close(images[1:2], expected)


def empty_class(folder: Path) -> None:
    (folder / "fish").mkdir()


def one_class(folder: Path) -> None:
    shutil.rmtree(folder / "dog")


def no_class(folder: Path) -> None:
    one_class(folder)
    shutil.rmtree(folder / "cat")


def other_size(folder: Path) -> None:
    save(folder / "dog/02.png", grey(5, 6))


def text_as_image(folder: Path) -> None:
    (folder / "dog/02.png").write_text("hello")


def empty_image(folder: Path) -> None:
    (folder / "dog/02.png").write_bytes(b"")


def garbage(folder: Path) -> None:
    (folder / "dog/02.png").write_bytes(b"\x89PNG\r\n\x1a\n" + 40 * b"garbage")


def cut_image(folder: Path) -> None:
    save(folder / "dog/04.png", grey())
    path = folder / "dog/04.png"
    path.write_bytes(path.read_bytes()[:60])


def floats(folder: Path) -> None:
    save(folder / "dog/02.tiff", grey().astype(np.float32))


def few(folder: Path) -> None:
    (folder / "dog/02.png").unlink()


def only_train(folder: Path) -> None:
    (folder / "cat").rename(folder / "train")
    shutil.rmtree(folder / "dog")


def validation(folder: Path) -> None:
    shutil.copytree(folder, folder.parent / "copy")
    for name in ("cat", "dog"):
        shutil.rmtree(folder / name)
    for name in ("train", "val"):
        shutil.copytree(folder.parent / "copy", folder / name)


def other_classes(folder: Path) -> None:
    shutil.copytree(folder, folder / "train")
    shutil.copytree(folder / "train", folder / "test")
    (folder / "test/dog").rename(folder / "test/wolf")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (empty_class, "The class folder {}/fish has no images in it: add some, or remove the folder"),
        (one_class, "{} has only one class folder, cat: make one sub-folder a class, two at least"),
        (no_class, "{} has no class folders: make one sub-folder a class"),
        (
            other_size,
            "{}/dog/02.png is 6 x 5 pixels (width x height), but {}/cat/00.png is 6 x 4: give a size",
        ),
        (
            text_as_image,
            "The image {}/dog/02.png can't be read (not a readable image): fix",
        ),
        (empty_image, "The image {}/dog/02.png can't be read (not a readable image)"),
        (cut_image, "The image {}/dog/04.png can't be read (not a readable image)"),
        (garbage, "The image {}/dog/02.png can't be read (not a readable image)"),
        (
            floats,
            "{}/dog/02.tiff has pixels of Pillow's mode F, whose range is not known",
        ),
        (few, "{} has no split of its own, and class 'dog' has 4 images, too few to put every 5th aside"),
        (validation, "{} has a folder val: what is held out to test must be called test, so rename it"),
        (only_train, "{} has a train folder only: add the other of train and test"),
        (
            other_classes,
            "{} has different classes in train and test: only one of them has dog, wolf; give both",
        ),
    ],
)
def test_error_words(folder: Path, spoil, words: str) -> None:
    spoil(folder)
    with pytest.raises(InputError, match="^" + re.escape(words.replace("{}", str(folder)))):
        load_set(folder)


def test_absurdly_large_image_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20)
    with pytest.raises(InputError, match=r"cat/00.png can't be read .*decompression bomb"):
        load_set(folder)


@pytest.mark.parametrize("name", [b"a\nb", b"a\x1b[2J", b"\xff\xfe"])
def test_class_folders_whose_names_can_t_be_printed(folder: Path, name: bytes) -> None:
    (folder / "cat").rename(folder / os.fsdecode(name))
    with pytest.raises(InputError, match="has characters that can't be printed: rename that class") as error:
        load_set(folder)
    assert str(error.value).isprintable()


def test_postscript_is_not_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "check_call", None)  # by which Pillow starts Ghostscript
    Image.fromarray(grey()).save(folder / "cat" / "0.png", "EPS")
    with pytest.raises(InputError, match="not a readable image"):
        load_set(folder, "train")
    assert ".eps" not in image_endings()


def test_doubts_of_pillow_are_not_warnings(folder: Path) -> None:
    """An icon whose picture is larger than it says: Pillow warns and reads it."""
    Image.fromarray(np.zeros((16, 16, 3), np.uint8)).save(folder / "cat" / "0.ico", sizes=[(16, 16)])
    content = bytearray((folder / "cat" / "0.ico").read_bytes())
    content[6] = 8  # the width
    (folder / "cat" / "0.ico").write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(load_set(folder, "train", size=4).images)


def test_what_can_t_fit_into_memory_is_refused_before_it_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sysconf", lambda name: 10)  # a machine of a hundred bytes
    with pytest.raises(InputError, match=r"needs 0.0 GiB of memory, but there are 0.0: give fewer or smaller images"):
        load_set(folder)
