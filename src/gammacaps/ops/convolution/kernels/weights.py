"""A convolution's weight, arranged as the kernels read it."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

LINE = 128  # bytes of one row of a block in shared memory: the widest the copy engine and the tensor cores take


class Arranged(NamedTuple):
    """A weight in both orders and in the kernels' precision. Rows end in zeros, up to a multiple of LINE bytes."""

    forward: Float[Tensor, "K kkC"]  # one row a filter
    backward: Float[Tensor, "Ckk K"]  # one row a channel and tap
    filters: int
    channels: int
    kernel: int


def arrange(weight: Float[Tensor, "K C k k"], dtype: torch.dtype, out: Arranged | None = None) -> Arranged:
    """The copies of a weight that the convolutions take: to be made once per weight.

    A new weight can be written over the copies `out` of an old one, for CUDA graphs that read them.
    """
    K, C, k, _ = weight.shape
    if out is None:
        pad = -k * k * C % (LINE // dtype.itemsize), -K % (LINE // dtype.itemsize)
        out = Arranged(
            torch.zeros(K, k * k * C + pad[0], dtype=dtype, device=weight.device),
            torch.zeros(C * k * k, K + pad[1], dtype=dtype, device=weight.device),
            K,
            C,
            k,
        )
    elif (out.filters, out.channels, out.kernel, out.forward.dtype) != (K, C, k, dtype):
        raise ValueError(
            f"`out` holds {tuple(out[2:])} in {out.forward.dtype}, not {(K, C, k)} in {dtype}: leave it out"
        )
    weight = weight.detach()
    out.forward[:, : k * k * C].view(K, k, k, C).copy_(weight.permute(0, 2, 3, 1))
    out.backward[:, :K].view(C, k, k, K).copy_(weight.permute(1, 2, 3, 0))
    return out


def precision(dtype: torch.dtype) -> str:
    """How the tensor cores multiply float32: as torch's own convolutions do, which by default round to TF32.

    Where that is switched off, three products make one of full precision. Half precision needs no help.
    """
    return "tf32x3" if dtype == torch.float32 and not torch.backends.cudnn.allow_tf32 else "tf32"
