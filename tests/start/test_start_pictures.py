"""What `gammacaps start` makes of a folder's pictures."""

import errno
import shutil

import numpy as np
import pytest
from drawn import stripes
from PIL import Image

from gammacaps.errors import InputError
from gammacaps.start.pictures import changes, images_of, look, middle, target_size


def quiet(*_):
    pass


def names(pictures):
    return {f"{each.path.parent.name}/{each.path.name}" for each in pictures}


def test_a_fifth_of_each_class_is_held_back_by_the_seed(tmp_path):
    folder = stripes(tmp_path / "bars", count=20)
    first, again, other = (look(folder, seed, quiet) for seed in (0, 0, 1))
    assert [sum(each.label == label for each in first.test) for label in (0, 1)] == [4, 4]
    assert len(first.train) == 32
    assert not names(first.train) & names(first.test)
    assert names(first.test) == names(again.test) != names(other.test)


def test_what_can_t_be_read_is_left_out_and_listed_with_its_reason(tmp_path):
    folder = stripes(tmp_path / "bars")
    (folder / "down" / "000.png").write_text("no picture")
    (folder / "down" / "001.png").write_bytes((folder / "down" / "001.png").read_bytes()[:50])
    pictures = look(folder, 0, quiet)
    assert len(pictures.all) == 22
    assert [each.partition(" (")[0] for each in pictures.skipped] == [
        str(folder / "down" / name) for name in ("000.png", "001.png")
    ]
    assert "(not a readable image)" in pictures.skipped[0]
    assert pictures.notes[0].startswith("2 files are left out (see pictures.txt): ")


def test_equal_pictures_are_never_both_in_train_and_test(tmp_path):
    folder = stripes(tmp_path / "bars", count=10)
    for k in range(10):
        for copy in range(3):
            shutil.copy(folder / "down" / f"{k:03}.png", folder / "down" / f"copy{k}-{copy}.png")
    for seed in range(5):
        pictures = look(folder, seed, quiet)
        assert not {each.digest for each in pictures.train} & {each.digest for each in pictures.test}
        assert any("30 pictures are equal to another" in note for note in pictures.notes)


def test_copies_are_no_further_test_pictures(tmp_path):
    folder = stripes(tmp_path / "bars", count=10)
    for k in range(10):
        for copy in range(3):
            shutil.copy(folder / "down" / f"{k:03}.png", folder / "down" / f"copy{k}-{copy}.png")
    pictures = look(folder, 0, quiet)
    assert [sum(each.label == label for each in pictures.test) for label in (0, 1)] == [2, 2]  # a fifth of ten
    assert [sum(each.label == label for each in pictures.train) for label in (0, 1)] == [8, 32]
    assert any(note.startswith("6 test pictures are left out, being equal to another test") for note in pictures.notes)
    own = tmp_path / "own"
    stripes(own / "train")
    for name in ("across", "down"):
        (own / "test" / name).mkdir(parents=True)
        for k in range(3):
            Image.fromarray(np.full((12, 14), len(name), np.uint8)).save(own / "test" / name / f"{k}.png")
    pictures = look(own, 0, quiet)
    assert names(pictures.test) == {"across/0.png", "down/0.png"}
    assert any(note.startswith("4 test pictures are left out, being equal to another test") for note in pictures.notes)


def test_copies_of_one_picture_are_too_few(tmp_path):
    folder = stripes(tmp_path / "bars", count=5)
    for k in range(1, 5):
        shutil.copy(folder / "down" / "000.png", folder / "down" / f"{k:03}.png")
    with pytest.raises(InputError, match=r"too few different pictures of class 'down' that can be used \(1\) to"):
        look(folder, 0, quiet)


def test_a_picture_that_the_machine_does_not_give_is_an_error_and_not_left_out(tmp_path, monkeypatch):
    folder = stripes(tmp_path / "bars")

    def full(*given, **how):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(Image, "open", full)
    with pytest.raises(InputError, match=r"across/000.png can't be read \(Too many open files\): check the file"):
        look(folder, 0, quiet)


def test_of_the_folder_s_own_split_test_pictures_that_are_trained_on_are_left_out(tmp_path):
    for part in ("train", "test"):
        stripes(tmp_path / "bars" / part)  # the same ones
    Image.fromarray(np.zeros((12, 14), np.uint8)).save(tmp_path / "bars" / "test" / "down" / "new.png")
    Image.fromarray(np.ones((12, 14), np.uint8)).save(tmp_path / "bars" / "test" / "across" / "new.png")
    pictures = look(tmp_path / "bars", 0, quiet)
    assert names(pictures.test) == {"down/new.png", "across/new.png"}
    assert any("24 test pictures are left out" in note for note in pictures.notes)


def test_a_picture_in_two_classes_is_left_out(tmp_path):
    folder = stripes(tmp_path / "bars")
    shutil.copy(folder / "down" / "003.png", folder / "across" / "same.png")
    pictures = look(folder, 0, quiet)
    assert not {"down/003.png", "across/same.png"} & names(pictures.all)
    assert any("2 pictures are left out, being in more than one class" in note for note in pictures.notes)


def test_too_few_pictures_and_too_few_classes_are_refused(tmp_path):
    with pytest.raises(InputError, match="only one class folder, down: make one sub-folder a class"):
        look(stripes(tmp_path / "one", ("down",)), 0, quiet)
    few = stripes(tmp_path / "few", count=5)
    (few / "down" / "000.png").write_text("")
    with pytest.raises(InputError, match=r"too few different pictures of class 'down' that can be used \(4\) to"):
        look(few, 0, quiet)
    assert any(
        note.startswith("Few pictures to learn from") for note in look(stripes(tmp_path / "bars"), 0, quiet).notes
    )


def test_grey_pictures_that_are_stored_as_colour_stay_grey(tmp_path):
    folder = stripes(tmp_path / "bars")
    grey = Image.open(folder / "down" / "000.png")
    grey.convert("RGB").save(folder / "down" / "000.png")
    Image.fromarray(np.full((12, 14), 9, np.uint8)).save(folder / "down" / "palette.gif")
    pictures = look(folder, 0, quiet)
    assert pictures.grey
    image, _ = next(images_of([each for each in pictures.all if each.path.suffix == ".gif"], True, (12, 14), False))
    assert (image * 255).round().unique().tolist() == [9]
    Image.new("RGB", (14, 12), (255, 0, 0)).save(folder / "down" / "red.png")
    pictures = look(folder, 0, quiet)
    assert not pictures.grey
    assert "25 pictures are grey and 1 in colour: all become RGB." in pictures.notes


def test_pictures_of_other_sizes_are_stretched_or_cut_to_the_middle(tmp_path):
    folder = stripes(tmp_path / "bars")
    wide = np.zeros((12, 42), np.uint8)
    wide[:, 14:28] = 200  # its middle
    Image.fromarray(wide).save(folder / "down" / "wide.png")
    pictures = look(folder, 0, quiet)
    size = target_size(pictures, 40, None)
    assert size == (12, 14)
    assert target_size(pictures, 7, None) == (8, 8)  # the least that a network is given
    assert target_size(pictures, 40, 28) == (24, 28)
    (odd,) = [each for each in pictures.all if each.path.name == "wide.png"]
    cut, stretched = (next(images_of([odd], True, size, crop))[0] for crop in (True, False))
    assert cut.shape == stretched.shape == (1, 1, 12, 14)
    assert (cut * 255).unique().tolist() == [200]
    assert stretched.min() == 0
    words = [" ".join(changes(pictures, size, crop)) for crop in (True, False)]
    assert "and cut to the middle" in words[0]
    assert "and stretched; --crop cuts them" in words[1]
    assert middle(np.zeros((3, 30, 10)), (20, 10)).shape == (3, 20, 10)
