"""Matrices that show a network at work: which capsules are active, where they lead, which classes are mixed up."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from gammacaps.data import check_images
from gammacaps.errors import InputError
from gammacaps.explain.activate import check_capsules
from gammacaps.explain.pictures import figure_png, heat_figure, plain
from gammacaps.metrics import d_score
from gammacaps.models import CapsuleModel
from gammacaps.options import check_seed, check_whole

UNITS = ("capsule", "capsule type")
BATCH = 100  # images a pass: the couplings of matrix capsules take 4 MB an image


@dataclass(frozen=True, eq=False)
class ClassMap:
    """The mean activation of each capsule of a layer over the images of each class."""

    layer: str
    unit: str  # "capsule", or "capsule type" where those of a type were averaged
    classes: list[int]  # those that have images
    class_names: list[str]  # of these
    means: Tensor  # capsules, classes

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

    def png(self) -> bytes:
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
            axes.set_title(f"{name} (D = {D:.2f})", fontsize=10)
            axes.set_xlabel(f"{self.layer} {self.unit}", fontsize=9)
            axes.set_ylabel("image", fontsize=9)
            axes.tick_params(labelsize=8)
        figure.colorbar(shades, ax=figure.axes, fraction=0.04, pad=0.02).ax.tick_params(labelsize=8)
        return figure_png(figure)

    _repr_png_ = png


@dataclass(frozen=True, eq=False)
class CouplingMap:
    """Which capsules of a layer feed which above: couplings weighted by the lower capsule's activation."""

    layer: str
    above: str
    couplings: Tensor  # I J, mean coupling where the lower capsule is active; a row sums to 1, or to 0 if it never was
    fed: Tensor  # I J, mean of activation times coupling: how much goes that way
    names: list[str]  # of the upper capsules

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


@dataclass(frozen=True, eq=False)
class Confusion:
    """The confusion matrix: how many images of each class (row) were taken for which (column)."""

    matrix: list[list[int]]
    class_names: list[str]
    never: list[int]  # classes that have images and were never predicted
    meaning: str

    def to_json(self) -> dict[str, Any]:
        return {
            "matrix": self.matrix,
            "class_names": self.class_names,
            "never": self.never,
            "meaning": self.meaning,
        }

    def png(self) -> bytes:
        counts = torch.tensor(self.matrix, dtype=torch.float32)
        shares = counts / counts.sum(1, keepdim=True).clamp_min(1)
        cells = [[str(n) if n else "" for n in row] for row in self.matrix] if len(self.matrix) <= 20 else None
        figure = heat_figure(
            shares,
            self.class_names,
            self.class_names,
            title="Images by class and prediction",
            down="true class",
            across="taken for",
            cells=cells,
        )
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
    network, index, found = _activations(model, images, labels, layer, by_type, batch)
    classes = labels.unique().tolist()
    means = torch.stack([found[labels.cpu() == k].double().mean(0) for k in classes], dim=1).float()
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
        class_names: what the classes are called; their numbers unless told.
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
    network, index, found = _activations(model, images[both], labels[both], layer, by_type, batch)
    left, right = found[: len(shuffled)], found[len(shuffled) :]
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

    `layer` is the lower one: the last hidden layer, which feeds the class capsules, unless told.
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


def confusion_map(matrix: Sequence[Sequence[int]], class_names: Sequence[str] | None = None) -> Confusion:
    """A confusion matrix with its picture, from results["confusion"] and results["class_names"] of a results.json."""
    counts = torch.tensor(matrix)
    if counts.dim() != 2 or counts.shape[0] != counts.shape[1] or len(counts) == 0:
        raise InputError(f"A confusion matrix is square, a row and a column a class, not {tuple(counts.shape)}.")
    names = named(class_names, len(counts))
    total = counts.sum(1)
    never = ((counts.sum(0) == 0) & (total > 0)).nonzero().squeeze(1).tolist()
    mistakes = counts - counts.diag().diag()
    if mistakes.max() == 0:
        meaning = "No image was taken for another class."
    else:
        true, taken = divmod(int(mistakes.argmax()), len(counts))
        meaning = (
            f"The most frequent mistake: {names[true]} taken for {names[taken]} "
            f"({mistakes[true, taken]} of {total[true]} images)."
        )
    if never:
        meaning += f" Never predicted, so not learned: {', '.join(names[k] for k in never)}."
    return Confusion(counts.tolist(), names, never, meaning)


def activations_in_batches(
    network: CapsuleModel, index: int, images: Float[Tensor, "M C H W"], batch: int
) -> Iterator[Tensor]:
    """The activations (B, n) of a layer, batch by batch."""
    for part in in_batches(network, images, batch):
        with torch.no_grad():
            yield network.parse(part, couplings=False).activations[index].cpu()


def in_batches(model: nn.Module, images: Float[Tensor, "M C H W"], batch: int) -> Iterator[Tensor]:
    """Images (B, C, H, W), batch by batch, as and where the network's weights are."""
    if batch < 1:
        raise InputError(f"A batch has at least 1 image, not {batch}.")
    weight = next(model.parameters())
    for part in images.split(batch):
        yield part.to(weight)


def named(class_names: Sequence[str] | None, count: int) -> list[str]:
    """The names of the classes, or their numbers."""
    if class_names is None:
        return [str(k) for k in range(count)]
    if len(class_names) != count:
        raise InputError(f"{count} classes need {count} names, not {len(class_names)}: give one for each.")
    return list(class_names)


def _activations(
    model: nn.Module, images: Tensor, labels: Tensor, layer: str | int, by_type: bool, batch: int
) -> tuple[CapsuleModel, int, Float[Tensor, "M n"]]:
    """The network, the layer's index and the activations of its capsules, or of its types, on checked images."""
    network, index, _ = check_capsules(model, layer)
    check_images(images, labels, network.classes)
    found = torch.cat(list(activations_in_batches(network, index, images, batch)))
    if by_type:
        rows, columns = network.grids[index]
        types = found.shape[1] // (rows * columns)
        found = found.unflatten(1, (-1, types)).mean(1)  # places first, the type running fastest
    return network, index, found
