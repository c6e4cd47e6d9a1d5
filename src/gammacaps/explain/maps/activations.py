"""Which capsules of a layer are active: image by image, and on the mean of each class."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from gammacaps.data import check_images
from gammacaps.errors import InputError
from gammacaps.explain.activate import check_capsules
from gammacaps.explain.batches import BATCH, activations_in_batches, named
from gammacaps.explain.pictures import figure_png, heat_figure, plain
from gammacaps.metrics import d_score
from gammacaps.models import CapsuleModel
from gammacaps.options import check_seed, check_whole
from gammacaps.short_repr import short_repr

UNITS = ("capsule", "capsule type")


@dataclass(frozen=True, eq=False)
class ClassMap:
    """The mean activation of each capsule of a layer over the images of each class."""

    layer: str
    unit: str  # "capsule", or "capsule type" where those of a type were averaged
    classes: list[int]  # those that have images
    class_names: list[str]  # of these
    means: Tensor  # capsules, classes

    __repr__ = short_repr

    def to_json(self) -> dict[str, Any]:
        return {
            "layer": self.layer,
            "unit": self.unit,
            "classes": self.classes,
            "class_names": self.class_names,
            "means": plain(self.means),
        }

    def png(self) -> bytes:
        title = f"Mean activation of each {self.layer} {self.unit}"
        names = [str(j) for j in range(len(self.means))]
        return figure_png(
            heat_figure(self.means.T, self.class_names, names, title=title, down="class", across=self.unit)
        )

    _repr_png_ = png


@dataclass(frozen=True, eq=False)
class ActivationMap:
    """The paper's activation map: a row an image, a column a capsule, for all classes shuffled and for one alone."""

    layer: str
    unit: str  # "capsule", or "capsule type" where those of a type were averaged
    label: int
    class_name: str
    shuffled: Tensor  # M n, images of all classes
    alone: Tensor  # m n, images of the one class
    shuffled_indices: Tensor  # M, which images they are
    alone_indices: Tensor  # m
    d_shuffled: float  # D-score of these images; capsules that follow the input have a larger one ...
    d_alone: float  # ... over all classes than within one

    __repr__ = short_repr

    def to_json(self) -> dict[str, Any]:
        return {
            "layer": self.layer,
            "unit": self.unit,
            "label": self.label,
            "class_name": self.class_name,
            "shuffled": plain(self.shuffled),
            "alone": plain(self.alone),
            "shuffled_indices": plain(self.shuffled_indices),
            "alone_indices": plain(self.alone_indices),
            "d_shuffled": round(self.d_shuffled, 4),
            "d_alone": round(self.d_alone, 4),
        }

    def png(self, *, with_d: bool = True) -> bytes:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 4), layout="constrained")
        panels = (
            (self.shuffled, "all classes", self.d_shuffled),
            (self.alone, f"only {self.class_name}", self.d_alone),
        )
        for axes, (values, name, D) in zip(figure.subplots(1, 2), panels, strict=True):
            shades = axes.imshow(
                values.cpu().numpy(), cmap="gray", vmin=0, vmax=1, aspect="auto", interpolation="nearest"
            )
            axes.set_title(f"{name} (D = {D:.2f})" if with_d else name, fontsize=10)
            axes.set_xlabel(f"{self.layer} {self.unit}", fontsize=9)
            axes.set_ylabel("image", fontsize=9)
            axes.tick_params(labelsize=8)
        figure.colorbar(shades, ax=figure.axes, fraction=0.04, pad=0.02).ax.tick_params(labelsize=8)
        return figure_png(figure)

    _repr_png_ = png


def class_map(
    model: nn.Module,
    images: Float[Tensor, "M C H W"],
    labels: Int[Tensor, "M"],
    layer: str | int = "hidden 1",
    *,
    class_names: Sequence[str] | None = None,
    by_type: bool = False,
    batch: int = BATCH,
) -> ClassMap:
    """Mean activation of each capsule over the images of each class; `activation_map` for what the options mean."""
    network, index, activations = _activations(model, images, labels, layer, by_type, batch)
    classes = labels.unique().tolist()
    means = torch.stack([activations[labels.cpu() == k].double().mean(0) for k in classes], dim=1).float()
    names = named(class_names, network.classes)
    return ClassMap(network.layers[index], UNITS[by_type], classes, [names[k] for k in classes], means)


def activation_map(
    model: nn.Module,
    images: Float[Tensor, "M C H W"],
    labels: Int[Tensor, "M"],
    layer: str | int = "hidden 1",
    *,
    label: int = 0,
    count: int = 100,
    class_names: Sequence[str] | None = None,
    by_type: bool = False,
    seed: int = 0,
    batch: int = BATCH,
) -> ActivationMap:
    """Activations image by image (the paper's appendix D): `count` of all classes, shuffled, and `count` of one.

    Args:
        model: a capsule network.
        layer: one of model.layers, such as "hidden 1", or its index.
        label: the class that is shown alone.
        count: images on each side; fewer where there are fewer.
        class_names: what the classes are called; their numbers by default.
        by_type: mean over the places of each capsule type: the paper's 16 columns of EM routing.
        seed: of the choice of images.
    """
    check_images(images, labels)
    check_whole("count", count)
    check_seed(seed)
    own = (labels == label).nonzero().squeeze(1).cpu()
    if len(own) == 0:
        raise InputError(f"An activation map needs images of class {label}, and there are none: give some.")
    generator = torch.Generator().manual_seed(seed)
    shuffled = torch.randperm(len(images), generator=generator)[:count]
    alone = own[torch.randperm(len(own), generator=generator)[:count]]
    both = torch.cat((shuffled, alone)).to(images.device)
    network, index, activations = _activations(model, images[both], labels[both], layer, by_type, batch)
    left, right = activations[: len(shuffled)], activations[len(shuffled) :]
    return ActivationMap(
        network.layers[index],
        UNITS[by_type],
        label,
        named(class_names, network.classes)[label],
        left,
        right,
        shuffled,
        alone,
        d_score(left).item(),
        d_score(right).item(),
    )


def _activations(
    model: nn.Module, images: Tensor, labels: Tensor, layer: str | int, by_type: bool, batch: int
) -> tuple[CapsuleModel, int, Float[Tensor, "M n"]]:
    """The network, the layer's index and the activations of its capsules, or of its types, on checked images."""
    network, index, _ = check_capsules(model, layer)
    check_images(images, labels, network.classes)
    activations = torch.cat(list(activations_in_batches(network, index, images, batch)))
    if by_type:
        rows, columns = network.grids[index]
        types = activations.shape[1] // (rows * columns)
        activations = activations.unflatten(1, (-1, types)).mean(1)  # places first, the type running fastest
    return network, index, activations
