"""smallNORB by viewpoint: who is learned from, who is tested, and from where."""

import gzip
import itertools
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from gammacaps.data import load_set
from gammacaps.data.norb_info import AZIMUTH, ELEVATION, INSTANCE, read_info
from gammacaps.data.viewpoints import HELD_OUT, OFFICIAL, viewpoint_split
from gammacaps.errors import InputError

# Two toys a class more than are held out; every class, elevation and azimuth, one lighting.
VIEWS = list(itertools.product(range(2), (0, 1, 2, 3, 5), range(9), range(0, 36, 2)))  # class, instance, ...


def matrix(values: np.ndarray) -> bytes:
    magic = {"uint8": 0x1E3D4C55, "int32": 0x1E3D4C54}[str(values.dtype)]
    sizes = (*values.shape, *(1,) * (3 - values.ndim))
    return struct.pack(f"<II{len(sizes)}I", magic, values.ndim, *sizes) + values.tobytes()


def put(folder: Path, split: str, *, info: np.ndarray | None = None, with_info: bool = True) -> np.ndarray:
    """Every pair of VIEWS in its own grey, which tells its place; in smallNORB's files of 1 x 1 pixels."""
    table = np.array(VIEWS, np.int32)
    places = np.arange(len(table))
    pixels = np.stack([places % 256, places // 256], axis=1).astype(np.uint8)[:, :, None, None]
    codes = np.column_stack([table[:, 1:], np.zeros(len(table), np.int32)]).astype(np.int32)
    files = {"dat": pixels, "cat": table[:, 0].copy()} | (
        {"info": codes if info is None else info} if with_info else {}
    )
    for kind, values in files.items():
        (folder / f"smallnorb48-{split}-{kind}.mat.gz").write_bytes(gzip.compress(matrix(values)))
    return table


def rows_of(part, table: np.ndarray) -> np.ndarray:
    """What the table says of the images of a part, pair by pair: their two views stand side by side."""
    grey = (255 * part.data.images[:, 0, 0, 0]).round().long().view(-1, 2)
    found = table[(grey[:, 0] + 256 * grey[:, 1]).numpy()]
    assert part.data.labels.view(-1, 2).tolist() == found[:, :1].repeat(2, axis=1).tolist()
    assert part.toys.view(-1, 2).tolist() == (10 * found[:, 0] + found[:, 1])[:, None].repeat(2, axis=1).tolist()
    return found


@pytest.mark.parametrize(
    ("by", "column", "codes"), [("azimuth", AZIMUTH, {0, 2, 4, 30, 32, 34}), ("elevation", ELEVATION, {0, 1, 2})]
)
def test_toys_and_viewpoints_are_apart_inside_the_test_split(tmp_path, by, column, codes):
    table = put(tmp_path, "testing")
    put(tmp_path, "training", with_info=False)
    tested = []
    for seed in (0, 1):
        split = viewpoint_split(by, data_dir=tmp_path, size=1, seed=seed)
        assert split.protocol == HELD_OUT
        train, familiar, new = (rows_of(part, table) for part in (split.train, split.familiar, split.new))
        seen = 1 + column  # of the table, whose first column is the class
        assert set(train[:, seen]) == set(familiar[:, seen]) == codes
        assert not set(new[:, seen]) & codes
        held = set(familiar[:, 1 + INSTANCE])
        assert len(held) == 2
        assert held == set(new[:, 1 + INSTANCE])
        assert not held & set(train[:, 1 + INSTANCE])
        # A third of 162 viewpoints of 2 classes: of three toys for training, of two for the test.
        assert [len(part) for part in (train, familiar, new)] == [54 * 2 * 3, 54 * 2 * 2, 108 * 2 * 2]
        tested.append(held)
    assert not tested[0] & tested[1]


def test_with_both_files_the_official_toys_are_used_whatever_the_seed(tmp_path):
    table = put(tmp_path, "testing")
    other = np.column_stack([table[:, 1:], np.zeros(len(table), np.int32)]).astype(np.int32)
    other[:, INSTANCE] += 4  # 4 to 9, as the training split's are 4, 6, 7, 8 and 9
    put(tmp_path, "training", info=other)
    for seed in (0, 3):
        split = viewpoint_split("azimuth", data_dir=tmp_path, size=1, seed=seed)
        assert split.protocol == OFFICIAL
        assert sorted(set((split.train.toys % 10).tolist())) == [4, 5, 6, 7, 9]
        assert sorted(set((split.new.toys % 10).tolist())) == [0, 1, 2, 3, 5]
        assert [len(part.toys) for part in (split.train, split.familiar, split.new)] == [1080, 1080, 2160]


def test_the_real_file_has_every_toy_from_every_viewpoint(shared_data):
    info = read_info("smallnorb", "test", shared_data)
    assert info.shape == (24300, 4)
    assert len(np.unique(info[:, :3], axis=0)) == 5 * 9 * 18
    assert read_info("smallnorb", "train", shared_data) is None


INFO = np.zeros((len(VIEWS), 4), np.int32)


@pytest.mark.parametrize(
    ("info", "words"),
    [
        (None, r"viewpoints are not known here: put the -info file of its test split, or better of both, beside .*dat"),
        (INFO[:, :3], r"holds int32 of the shape \(1620, 3\), not four 32-bit numbers a pair"),
        (INFO.astype(np.uint8), r"holds uint8 of the shape \(1620, 4\), not four"),
        (INFO[:0], r"holds int32 of the shape \(0, 4\)"),
        (INFO[:7], r"has 1620 pairs, but its -info file tells of 7: put both from one place there"),
        (INFO + np.array([0, 0, 1, 0], np.int32), "pair 0 has 1 in column 3, which smallNORB does not know"),
        (INFO + np.array([-1, 0, 0, 0], np.int32), "pair 0 has -1 in column 1"),
        (INFO + np.array([0, 9, 0, 0], np.int32), "pair 0 has 9 in column 2"),
        (INFO, "-info file knows 1 toys a class, too few to hold two out"),
    ],
)
def test_a_file_that_does_not_fit_gets_one_sentence(tmp_path, info, words):
    put(tmp_path, "testing", info=info, with_info=info is not None)
    put(tmp_path, "training", with_info=False)
    with pytest.raises(InputError, match=words):
        viewpoint_split(data_dir=tmp_path, size=1)


def test_other_kinds_of_viewpoint_and_sizes_get_one_sentence(tmp_path):
    with pytest.raises(InputError, match=r"There is no kind of viewpoint 'azimut' .did you mean 'azimuth'"):
        viewpoint_split("azimut", data_dir=tmp_path)
    with pytest.raises(InputError, match="size"):
        viewpoint_split(data_dir=tmp_path, size=0)


def test_a_set_seen_from_one_side_alone_can_be_split_by_elevation_only(tmp_path):
    table = put(tmp_path, "testing")
    info = np.column_stack([table[:, 1:], np.zeros(len(table), np.int32)]).astype(np.int32)
    info[:, AZIMUTH] = 0  # all from where training looks
    put(tmp_path, "testing", info=info)
    put(tmp_path, "training", with_info=False)
    with pytest.raises(InputError, match="has no images for one part of the split by viewpoint"):
        viewpoint_split("azimuth", data_dir=tmp_path, size=1)
    assert torch.is_tensor(viewpoint_split("elevation", data_dir=tmp_path, size=1).new.toys)


def test_the_toys_to_choose_by_and_the_unseen_ones_divide_the_test_split(tmp_path):
    table = put(tmp_path, "testing")
    put(tmp_path, "training", with_info=False)
    places = {}
    for name, toys in (("smallnorb-choice", {0, 1}), ("smallnorb-unseen", {2, 3, 5})):
        part = load_set(name, "test", data_dir=tmp_path, size=1)
        assert part.name == name
        grey = (255 * part.images[:, 0, 0, 0]).round().long().view(-1, 2)  # the views of a pair stand side by side
        places[name] = (grey[:, 0] + 256 * grey[:, 1]).tolist()
        shown = table[places[name]]
        assert set(shown[:, 1]) == toys
        assert part.labels.view(-1, 2).tolist() == shown[:, :1].repeat(2, axis=1).tolist()
        assert load_set(name, "train", data_dir=tmp_path, size=1).labels.shape == (2 * len(table),)
    assert sorted(itertools.chain(*places.values())) == list(range(len(table)))


@pytest.mark.parametrize(
    ("info", "words"),
    [
        (None, "smallnorb-unseen is a part of smallNORB's test split, and only its -info file tells which: put that"),
        (INFO[:7], r"has 1620 pairs, but its -info file tells of 7: put both from one place there"),
        (INFO, "shows none of the toys of smallnorb-unseen: put the whole set there"),
    ],
)
def test_a_part_of_the_test_split_without_its_file_is_one_sentence(tmp_path, info, words):
    put(tmp_path, "testing", info=info, with_info=info is not None)
    with pytest.raises(InputError, match=words):
        load_set("smallnorb-unseen", "test", data_dir=tmp_path)
