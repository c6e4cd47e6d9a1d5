"""Networks for other programs: an ONNX file, or a program of torch.export, both for any number of images at once."""

import copy
import io
import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gammacaps.errors import InputError
from gammacaps.files import check_can_write, write_whole
from gammacaps.models.protocol import Model

ENDINGS = (".onnx", ".pt2")
TOLERANCE = 1e-4  # between the network's scores and those of its ONNX file, on images of noise


def export(model: Model, path: str | Path) -> None:
    """Writes the network, images (B, C, H, W) to scores (B, N), as `.onnx` or as `.pt2`, which torch.export.load reads.

    Routing is written as the paper's formulas (`ops/routing/rules.py`): code of our own can't leave with a graph.
    """
    path = Path(path)
    if path.suffix not in ENDINGS:
        raise InputError(f"{path} ends neither in {' nor in '.join(ENDINGS)}: choose one of these by its ending.")
    check_can_write(path.parent, (path.name,))
    program = exported(model)
    if path.suffix == ".onnx":
        content = _onnx(program, model)
    else:
        buffer = io.BytesIO()
        torch.export.save(program, buffer)
        content = buffer.getvalue()
    write_whole(path, content)


def exported(model: Model) -> torch.export.ExportedProgram:
    """The network as a program of torch.export, on the CPU, with a batch of any size."""
    plain = copy.deepcopy(model).cpu().eval().requires_grad_(False)
    for weight in plain.parameters():
        weight.data = weight.data.contiguous()  # some lie in an order that is faster here, and that no file keeps
    images = torch.zeros(2, *model.image_shape)
    shapes = ({0: torch.export.Dim("batch")},)
    return torch.export.export(plain, (images,), dynamic_shapes=shapes, strict=False)


def _onnx(program: torch.export.ExportedProgram, model: Model) -> bytes:
    """An ONNX file, once ONNX Runtime has given the network's scores from it."""
    try:
        import onnxruntime
        import onnxscript  # noqa: F401  torch needs it
    except ImportError:
        raise InputError("ONNX is not installed: pip install 'gammacaps[onnx]', or export to a .pt2 file.") from None
    chatter = logging.getLogger("torch.onnx")
    before = chatter.level
    chatter.setLevel(logging.ERROR)  # or it tells that torchvision, which nothing here uses, is not installed
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch's own, about itself
            exported_network: Any = torch.onnx.export(
                program, input_names=["images"], output_names=["scores"], dynamo=True, verbose=False
            )
    finally:
        chatter.setLevel(before)
    content: bytes = exported_network.model_proto.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    images = torch.rand(3, *model.image_shape, generator=torch.Generator().manual_seed(0))
    (scores,) = session.run(None, {"images": images.numpy()})
    difference = float(np.abs(scores - program.module()(images).numpy()).max())
    if not difference < TOLERANCE:
        raise RuntimeError(f"ONNX Runtime's scores differ from the network's by {difference:.1e}; nothing was written.")
    return content
