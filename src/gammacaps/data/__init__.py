"""Data sets by name, or from a user's own files, as tensors in [0, 1].

>>> import gammacaps
>>> data = gammacaps.data.load_set("fashion-mini", "train")
>>> data.images.shape, data.class_names[:2]
(torch.Size([2000, 1, 28, 28]), ('T-shirt', 'Trouser'))
"""

from gammacaps.data.checks import check_images
from gammacaps.data.dataset import DataSet, StoredImages, StoredSet
from gammacaps.data.formats import Content
from gammacaps.data.loading import SPLITS, find, is_imported, load_data, load_set, open_set, own_path
from gammacaps.data.named_sets import MINI, File, NamedSet, SplitFiles, add_data_set, is_mixed, names
from gammacaps.data.resize import area_resize
from gammacaps.data.write_npy_folder import store_batches, store_set

__all__ = [
    "MINI",
    "SPLITS",
    "Content",
    "DataSet",
    "File",
    "NamedSet",
    "SplitFiles",
    "StoredImages",
    "StoredSet",
    "add_data_set",
    "area_resize",
    "check_images",
    "find",
    "is_imported",
    "is_mixed",
    "load_data",
    "load_set",
    "names",
    "open_set",
    "own_path",
    "store_batches",
    "store_set",
]
