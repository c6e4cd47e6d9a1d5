"""Files that can't be read may be left out, and what is made of odd pictures is said."""

import errno
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gammacaps.cli import main
from gammacaps.data import load_set, store_set
from gammacaps.data.inspection import inspect_set
from gammacaps.errors import InputError
from gammacaps.runs.run import Run
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.train import train

RNG = np.random.default_rng(0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two classes of ten grey pictures, of 8x8."""
    for name in ("cat", "dog"):
        (tmp_path / "pets" / name).mkdir(parents=True)
        for k in range(10):
            Image.fromarray(RNG.integers(0, 256, (8, 8), np.uint8)).save(tmp_path / "pets" / name / f"{k}.png")
    return tmp_path / "pets"


def spoil(folder: Path) -> list[str]:
    """Two files that can't be read: one for training, one for testing."""
    broken = [folder / "cat" / "2.png", folder / "dog" / "4.png"]
    broken[0].write_text("no picture")
    broken[1].write_bytes(broken[1].read_bytes()[:60])
    return [str(path) for path in broken]


def test_an_unreadable_file_is_an_error_that_names_the_option(folder):
    spoil(folder)
    with pytest.raises(
        InputError,
        match=r"cat/2.png can't be read \(.*\): .* leave such files out with --skip-unreadable"
        " of gammacaps train and gammacaps data",
    ):
        load_set(folder, "train")


@pytest.mark.parametrize("reading", ["open", "convert"])
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), "Permission denied"),
        (OSError(errno.EMFILE, "Too many open files"), "Too many open files"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
        (MemoryError(), "out of memory"),
    ],
    ids=["permission", "open files", "disk", "memory"],
)
def test_what_the_machine_does_not_give_is_an_error_and_not_left_out(folder, monkeypatch, reading, error, words):
    def failing(*given, **how):
        raise error

    monkeypatch.setattr(Image if reading == "open" else Image.Image, reading, failing)
    with pytest.raises(InputError, match=rf"The image .*cat/0.png can't be read \({words}\): ") as caught:
        load_set(folder, "train", skip_unreadable=True)
    assert "--skip-unreadable" not in str(caught.value)


def test_a_file_that_sends_its_reader_before_its_beginning_is_left_out(folder, monkeypatch):
    convert = Image.Image.convert

    def seeks(image, *given):
        if Path(image.filename).name == "3.png":
            with Path(image.filename).open("rb") as file:
                file.seek(-1, 1)  # EINVAL, which here is the file's own fault
        return convert(image, *given)

    monkeypatch.setattr(Image.Image, "convert", seeks)
    assert list(load_set(folder, skip_unreadable=True).skipped) == [str(folder / c / "3.png") for c in ("cat", "dog")]


def test_unreadable_files_are_left_out_and_listed(folder):
    whole = {split: load_set(folder, split) for split in ("train", "test")}
    broken = spoil(folder)
    for split, missing in (("train", 1), ("test", 1)):
        data = load_set(folder, split, skip_unreadable=True)
        assert len(data.images) == len(whole[split].images) - missing
        assert list(data.skipped) == broken
        assert data.notes[0] == f"2 files are left out, since they can't be read: {', '.join(broken)}."
        kept = {image.numpy().tobytes() for image in whole[split].images}
        assert {image.numpy().tobytes() for image in data.images} <= kept  # no picture has changed its split
    assert whole["train"].skipped == whole["train"].notes == ()


def test_a_class_without_a_readable_picture_is_refused(folder):
    for path in (folder / "dog").iterdir():
        path.write_text("")
    with pytest.raises(InputError, match="has no train image of class 'dog' that can be read"):
        load_set(folder, skip_unreadable=True)


def test_a_run_keeps_what_was_skipped_and_reads_its_data_so_again(folder, tmp_path, capsys):
    broken = spoil(folder)
    small = {"model": ("filters=4", "primary_types=2", "hidden=[4]", "decoder=[]"), "steps": 1, "device": "cpu"}
    train(TrainConfig(data=str(folder), robust=False, skip_unreadable=True, **small), tmp_path / "run")
    assert capsys.readouterr().err.count("Note: 2 files are left out") == 1
    run = Run(tmp_path / "run")
    assert list(run.config.data.skipped) == broken
    assert len(run.load_data("test").images) == 3


def test_data_shows_and_stores_what_can_be_read(folder, tmp_path, capsys):
    broken = spoil(folder)
    main(["data", str(folder), "--skip-unreadable", "--json"])
    assert json.loads(capsys.readouterr().out)["skipped"] == broken
    assert store_set(folder, tmp_path / "stored", skip_unreadable=True) == {"train": 15, "test": 3}
    assert "2 files are left out" in capsys.readouterr().err


def test_what_is_made_of_odd_pictures_is_said_once_for_each_kind(folder):
    frames = [Image.fromarray(np.full((8, 8), value, np.uint8)) for value in (10, 200)]
    for name in ("0", "1"):
        (folder / "cat" / f"{name}.png").unlink()
        frames[0].save(folder / "cat" / f"{name}.gif", save_all=True, append_images=frames[1:])
    Image.fromarray(np.full((8, 8), 257 * 40, np.uint16)).save(folder / "dog" / "0.png")
    Image.new("CMYK", (8, 8), (0, 255, 255, 0)).save(folder / "dog" / "1.tiff")
    Image.new("RGBA", (8, 8), (0, 0, 255, 7)).save(folder / "dog" / "2.png")
    data = load_set(folder, "train")
    assert [note.partition(":")[0] for note in data.notes] == [
        "2 pictures are with several frames or pages, of which the first is read",
        "1 picture is of 16 bits, read as 8 bits with 65,535 as white",
        "1 picture is in the colours of print (CMYK), turned to RGB",
        "1 picture is stored with transparency, which is dropped",
    ]
    assert str(folder / "cat" / "0.gif") in data.notes[0]
    flat = {
        tuple((image[:, 0, 0] * 255).round().int().tolist()) for image in data.images if image.std((1, 2)).max() == 0
    }
    assert {(10, 10, 10), (40, 40, 40), (255, 0, 0), (0, 0, 255)} == flat
    assert set(data.notes) <= set(inspect_set(str(folder)).notes)


def test_a_damaged_second_frame_is_no_matter(folder):
    frames = [Image.fromarray(RNG.integers(0, 256, (8, 8), np.uint8)) for _ in range(3)]
    (folder / "cat" / "0.png").unlink()
    path = folder / "cat" / "0.gif"
    frames[0].save(path, save_all=True, append_images=frames[1:])
    path.write_bytes(path.read_bytes()[:-60])
    assert len(load_set(folder, "train").images) == 16
