"""Where the capsules of a layer lead, over many images."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gammacaps.data import check_images
from gammacaps.errors import InputError
from gammacaps.explain.activate import check_capsules
from gammacaps.explain.batches import BATCH, in_batches, named
from gammacaps.explain.pictures import figure_png, heat_figure, plain
from gammacaps.short_repr import short_repr


@dataclass(frozen=True, eq=False)
class CouplingMap:
    """Which capsules of a layer feed which above: couplings weighted by the lower capsule's activation."""

    layer: str
    above: str
    couplings: Tensor  # I J, mean coupling where the lower capsule is active; a row sums to 1, or to 0 if it never was
    fed: Tensor  # I J, mean of activation times coupling: how much goes that way
    names: list[str]  # of the upper capsules

    __repr__ = short_repr

    def to_json(self) -> dict[str, Any]:
        return {
            "layer": self.layer,
            "above": self.above,
            "couplings": plain(self.couplings),
            "fed": plain(self.fed),
            "names": self.names,
        }

    def png(self) -> bytes:
        names = [str(i) for i in range(len(self.couplings))]
        title = f"Couplings from {self.layer} to {self.above}, weighted by activation"
        figure = heat_figure(
            self.couplings.T, self.names, names, title=title, down=self.above, across=f"{self.layer} capsule"
        )
        return figure_png(figure)

    _repr_png_ = png


@torch.no_grad()
def coupling_map(
    model: nn.Module,
    images: Float[Tensor, "M C H W"],
    layer: str | int = -2,
    *,
    class_names: Sequence[str] | None = None,
    batch: int = BATCH,
) -> CouplingMap:
    """Which capsules of a layer feed which of the layer above, over the images: sum of a_i c_ij over the sum of a_i.

    `layer` is the lower one: the last hidden layer, which feeds the class capsules, by default.
    """
    network, index, _ = check_capsules(model, layer)
    check_images(images)
    if index == len(network.layers) - 1:
        below = ", ".join(network.layers[:-1])
        raise InputError(f"Couplings lead from a layer to the one above, and none is above 'class': use {below}.")
    fed: Tensor | float = 0.0
    active: Tensor | float = 0.0
    for part in in_batches(network, images, batch):
        parse = network.parse(part)
        couplings = parse.couplings[index]
        assert couplings is not None
        a = parse.activations[index]  # B I
        fed = fed + torch.einsum("bi,bij->ij", a, couplings).double().cpu()
        active = active + a.sum(0).double().cpu()
    assert isinstance(fed, Tensor)
    assert isinstance(active, Tensor)
    means = fed / active.clamp_min(1e-12).unsqueeze(1)
    last = index == len(network.layers) - 2
    names = named(class_names if last else None, fed.shape[1])
    upper, lower = network.layers[index + 1], network.layers[index]
    return CouplingMap(lower, upper, means.float(), (fed / len(images)).float(), names)
