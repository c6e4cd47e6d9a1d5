"""The decoder's image beside the real one and a generated one (the paper's appendix F, its sneaker)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from gammacaps.data import check_images
from gammacaps.errors import InputError
from gammacaps.explain.activate import Generated
from gammacaps.explain.batches import BATCH, in_batches, named
from gammacaps.explain.examples import correlations
from gammacaps.explain.pictures import Row, grid_png, plain
from gammacaps.models import require_decoder
from gammacaps.short_repr import short_repr


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """What the decoder makes of images. It shows what they look like; a generated input, what a capsule needs."""

    labels: list[int]  # the class capsule that each was reconstructed from
    class_names: list[str]  # of these
    images: Tensor  # B C H W
    reconstructions: Tensor  # B C H W
    errors: Tensor  # B, mean squared difference of a pixel
    generated: Tensor | None  # B C H W, inputs generated for the same class capsules
    activations: list[float] | None  # of these capsules by the generated inputs
    likeness: Tensor | None  # B, correlation of the generated input and the reconstruction

    __repr__ = short_repr

    def to_json(self) -> dict[str, Any]:
        return {
            "labels": self.labels,
            "class_names": self.class_names,
            "errors": plain(self.errors),
            "activations": self.activations and [round(a, 4) for a in self.activations],
            "likeness": None if self.likeness is None else plain(self.likeness),
        }

    def png(self) -> bytes:
        """A column an image: itself, its reconstruction and, where there is one, the generated input."""
        rows = [
            Row(list(self.images), self.class_names, "image"),
            Row(list(self.reconstructions), [f"error {e:.3f}" for e in self.errors.tolist()], "reconstruction"),
        ]
        if self.generated is not None and self.activations is not None:
            rows.append(Row(list(self.generated), [f"length {a:.2f}" for a in self.activations], "generated input"))
        return grid_png(rows)

    _repr_png_ = png


@torch.no_grad()
def reconstruct(
    model: nn.Module,
    images: Float[Tensor, "B C H W"],
    labels: Int[Tensor, "B"] | None = None,
    *,
    generated: Sequence[Generated] | None = None,
    class_names: Sequence[str] | None = None,
    batch: int = BATCH,
) -> Reconstruction:
    """Images as the decoder makes them from the class capsule of `labels`, or from the longest.

    Args:
        model: a network with a decoder.
        generated: for each image an input generated for the same class capsule, to stand beside it.
        class_names: what the classes are called; their numbers by default.
    """
    network = require_decoder(model)
    check_images(images, labels, network.classes)
    if generated is not None and len(generated) != len(images):
        raise InputError(f"{len(images)} images need as many generated inputs beside them, not {len(generated)}.")
    made: list[Tensor] = []
    chosen: list[int] = []
    for part in in_batches(network, images, batch):
        parse = network.parse(part, couplings=False)
        if labels is None:
            own = parse.scores.argmax(1)
        else:
            own = labels[len(chosen) : len(chosen) + len(part)].to(part.device).long()
        made.append(network.reconstruct(parse, own).cpu().to(images.dtype))
        chosen += own.tolist()
    reconstructions, real = torch.cat(made), images.detach().cpu()
    names = named(class_names, network.classes)
    inputs = activations = likeness = None
    if generated is not None:
        inputs = torch.stack([one.image.cpu() for one in generated])
        activations = [one.activation for one in generated]
        pairs = zip(inputs.split(1), reconstructions.split(1), strict=True)
        likeness = torch.cat([correlations(*pair)[0] for pair in pairs]).float()
    errors = (reconstructions - real).square().flatten(1).mean(1)
    return Reconstruction(
        chosen, [names[k] for k in chosen], real, reconstructions, errors, inputs, activations, likeness
    )
