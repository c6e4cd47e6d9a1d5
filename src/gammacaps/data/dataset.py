"""One split of a data set, as everything after `gammacaps.data` sees it."""

from dataclasses import dataclass

from jaxtyping import Float32, Int64
from torch import Tensor


@dataclass(frozen=True, eq=False)
class DataSet:
    """Images in [0, 1] with their labels, what the classes are called, and where it all came from."""

    images: Float32[Tensor, "N C H W"]
    labels: Int64[Tensor, "N"]
    class_names: tuple[str, ...]
    name: str
    source: str
