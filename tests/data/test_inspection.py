import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gammacaps.cli import main
from gammacaps.data.inspection import inspect_set

RNG = np.random.default_rng(0)


def picture(path: Path, height: int = 20, width: int = 24, channels: int = 3) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = (height, width, channels) if channels > 1 else (height, width)
    Image.fromarray(RNG.integers(0, 256, shape, np.uint8)).save(path)


@pytest.fixture
def pets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two classes of ten and five colour images, all different, all of one size."""
    monkeypatch.chdir(tmp_path)
    for name, count in (("cat", 10), ("dog", 5)):
        for k in range(count):
            picture(tmp_path / "pets" / name / f"{k:02}.png")
    return Path("pets")


def status(*arguments: object) -> int:
    try:
        main([str(a) for a in arguments])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_good_data_is_told_and_how_to_go_on(pets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status("data", "check", pets) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "15 images of 2 classes (train, test):"
    assert lines[1].split() == ["cat", "8", "2"]
    assert lines[2].split() == ["dog", "4", "1"]
    assert lines[3] == "Sizes (width x height): 24 x 20 (15)"
    assert lines[4] == "Modes: RGB (15)"
    assert lines[-1] == "Nothing must be fixed. Train with: gammacaps train --data pets"
    assert status("data", "check", pets, "--size", 64, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["images_by_class"] == {"train": [8, 4], "test": [2, 1]}
    assert facts["problems"] == []
    assert facts["notes"][0].startswith("15 images are smaller than --size 64 and will be enlarged: pets/cat/00.png")


def test_broken_files_are_each_named_and_the_rest_is_told(pets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (pets / "cat/03.png").write_text("not an image")
    whole = (pets / "dog/02.png").read_bytes()
    (pets / "dog/02.png").write_bytes(whole[: len(whole) // 2])
    Image.fromarray(np.zeros((20, 24), np.uint16)).save(pets / "dog/03.png")
    assert status("data", "check", pets) == 1
    out = capsys.readouterr().out
    for name in ("cat/03.png", "dog/02.png", "dog/03.png"):
        assert out.count(f"pets/{name}") == 1
    assert "13 images of 2 classes" in out
    assert "Train with" not in out


def copy_to_test(pets: Path) -> None:
    shutil.copy(pets / "cat/00.png", pets / "cat/04.png")  # every fifth is a test image


def copy_to_other_class(pets: Path) -> None:
    shutil.copy(pets / "cat/00.png", pets / "dog/00.png")


def other_size(pets: Path) -> None:
    picture(pets / "dog/01.png", 30, 40)


def too_small(pets: Path) -> None:
    picture(pets / "dog/01.png", 4, 40)


def too_few(pets: Path) -> None:
    (pets / "dog/01.png").unlink()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (copy_to_test, "1 image is both in train and in test: pets/cat/00.png = pets/cat/04.png; keep each in one"),
        (copy_to_other_class, "1 image is in more than one class: pets/cat/00.png (cat) = pets/dog/00.png (dog)"),
        (other_size, "The images are of 2 sizes: most are 24 x 20, but pets/dog/01.png is 40 x 30; give --size"),
        (too_small, "1 image is too small for a network, whose smallest takes 5 x 5: pets/dog/01.png (40 x 4)"),
        (too_few, "class 'dog' has 4 images, too few"),
    ],
)
def test_what_must_be_fixed(pets: Path, spoil, words: str) -> None:
    spoil(pets)
    assert any(words in problem for problem in inspect_set("pets").problems), inspect_set("pets").problems


def grey(pets: Path) -> None:
    picture(pets / "dog/01.png", channels=1)


def transparent(pets: Path) -> None:
    picture(pets / "dog/01.png", channels=4)


def turned(pets: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.open(pets / "dog/01.png").save(pets / "dog/01.jpg", exif=exif)
    (pets / "dog/01.png").unlink()


def uneven(pets: Path) -> None:
    for k in range(10, 30):
        picture(pets / "cat" / f"{k}.png")


def no_image(pets: Path) -> None:
    (pets / "cat/notes.txt").write_text("whiskers")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (grey, "1 image is grey among colour images: all become RGB."),
        (transparent, "1 picture is stored with transparency, which is dropped: pets/dog/01.png."),
        (turned, "1 photo is stored turned, with a mark that says so (pets/dog/01.jpg)"),
        (uneven, "The classes are uneven: cat has 24 training images, dog 4; always saying cat is right for 86%."),
        (no_image, "1 file is left out, being no image of a class: pets/cat/notes.txt."),
    ],
)
def test_what_is_good_to_know(pets: Path, change, words: str) -> None:
    change(pets)
    seen = inspect_set("pets")
    assert not seen.problems
    assert any(note.startswith(words) for note in seen.notes), seen.notes


def test_stretched_images_and_a_size_too_small(pets: Path) -> None:
    picture(pets / "dog/01.png", 20, 60)
    seen = inspect_set("pets", size=16)
    assert not seen.problems
    assert "1 image is of another shape than 16 x 16 and will be stretched: pets/dog/01.png (60 x 20)." in seen.notes
    assert "--size 4 is less than 5" in inspect_set("pets", size=4).problems[0]


def test_own_split_and_npz(pets: Path) -> None:
    for split in ("train", "test"):
        shutil.copytree(pets, Path("both") / split)
    assert (
        inspect_set("both").problems[0].startswith("15 images are both in train and in test: both/train/cat/00.png = ")
    )
    images = RNG.integers(0, 256, (10, 20, 20), np.uint8)
    images[9] = images[0]
    np.savez("own.npz", images=images, labels=np.arange(10) % 2)
    seen = inspect_set("own.npz")
    assert seen.counts("train") == [4, 4]
    assert [problem.split(":")[0] for problem in seen.problems] == [
        "1 image is both in train and in test",
        "1 image is in more than one class",
    ]
    np.savez("own.npz", images=images, labels=np.arange(10) % 2 * 3)
    assert any("No training image is of 1, 2: the network" in note for note in inspect_set("own.npz").notes)
    np.savez("own.npz", images=images)
    assert "lacks labels" in inspect_set("own.npz").problems[0]


def test_a_copy_in_another_class_and_a_file_beside_the_classes_are_named(pets: Path) -> None:
    for name in ("cat/90.png", "cat/91.png", "dog/90.png"):
        shutil.copyfile(pets / "cat/00.png", pets / name)
    shutil.copyfile(pets / "cat/00.png", pets / "loose.png")
    seen = inspect_set("pets")
    assert any("pets/cat/00.png (cat) = pets/dog/90.png (dog)" in problem for problem in seen.problems), seen.problems
    assert any(note.endswith("being no image of a class: pets/loose.png.") for note in seen.notes), seen.notes


def test_what_is_nowhere_is_an_error(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert status("data", "check", "nowhere/pets") == 2
    assert "There is no file or folder nowhere/pets" in capsys.readouterr().err
