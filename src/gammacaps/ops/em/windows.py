"""Which children a parent's position sees, as a few numbers: kernels count with them instead of reading an index."""

from typing import NamedTuple


class Windows(NamedTuple):
    """Windows over a grid of places with `types` children each, in the order of `receptive_fields`."""

    height: int
    width: int
    types: int
    rows: int  # of a window
    columns: int
    stride: int

    @classmethod
    def over(cls, height: int, width: int, types: int, kernel: int | None, stride: int) -> "Windows":
        """Square windows, or the whole grid as one where kernel is None."""
        if kernel is None:
            return cls(height, width, types, height, width, max(height, width))
        return cls(height, width, types, kernel, kernel, stride)

    @property
    def children(self) -> int:
        """n: the children in all."""
        return self.height * self.width * self.types

    @property
    def grid(self) -> tuple[int, int]:
        """The parents' positions, rows and columns."""
        return (self.height - self.rows) // self.stride + 1, (self.width - self.columns) // self.stride + 1

    @property
    def L(self) -> int:
        """The parents' positions."""
        return self.grid[0] * self.grid[1]

    @property
    def K(self) -> int:
        """The children in a window."""
        return self.rows * self.columns * self.types

    @property
    def overlap(self) -> tuple[int, int]:
        """In how many windows a child can stand, down and across."""
        return (self.rows - 1) // self.stride + 1, (self.columns - 1) // self.stride + 1
