"""Answers kept by their question, packed; the least used go first."""

import zlib
from collections import OrderedDict

KEPT = 4 * 2**20  # bytes of answers, packed to about a ninth


class KeptAnswers:
    """Packed answers by their question; where they grow too large, the least lately used is dropped."""

    def __init__(self) -> None:
        self.packed: OrderedDict[str, bytes] = OrderedDict()
        self.size = 0  # bytes

    def find(self, key: str) -> bytes | None:
        if key not in self.packed:
            return None
        self.packed.move_to_end(key)
        return zlib.decompress(self.packed[key])

    def keep(self, key: str, packed: bytes) -> None:
        self.size += len(packed) - len(self.packed.pop(key, b""))
        self.packed[key] = packed
        while self.size > KEPT:
            _, gone = self.packed.popitem(last=False)
            self.size -= len(gone)


def pack(answer: bytes) -> bytes:
    return zlib.compress(answer, 1)
