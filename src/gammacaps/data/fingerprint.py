"""Hashes of tensors, by which a data set or weights are known again."""

import hashlib

import torch
from torch import Tensor

from gammacaps.data.dataset import StoredImages

READ = 1000  # images of a set on disk read at once


def fingerprint(*tensors: Tensor | StoredImages) -> str:
    """A hash of the tensors' bytes and shapes; images on disk have that of the same images in memory."""
    digest = hashlib.sha256()
    for tensor in tensors:
        if isinstance(tensor, StoredImages):
            digest.update(str((torch.float32, tuple(tensor.shape))).encode())
            for start in range(0, len(tensor), READ):
                digest.update(tensor[start : start + READ].cpu().numpy().tobytes())
            continue
        plain = tensor.detach().cpu().contiguous()
        digest.update(str((plain.dtype, tuple(plain.shape))).encode())
        digest.update(plain.view(torch.uint8).numpy().tobytes() if plain.dim() else bytes(str(plain.item()), "ascii"))
    return digest.hexdigest()
