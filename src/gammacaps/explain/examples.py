"""What a capsule stands for, by real images: which activate it most, which classes it serves."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from gammacaps.data import check_images
from gammacaps.errors import InputError
from gammacaps.explain.activate import Generated, check_capsules
from gammacaps.explain.batches import BATCH, activations_in_batches, named
from gammacaps.explain.pictures import Row, figure_png, grid_png, heat_figure, plain
from gammacaps.options import check_tau
from gammacaps.short_repr import short_repr

ROWS = 32  # capsules in a picture, at most
ALIKE = 0.5  # correlation from which two images show the same feature
APART = 0.2  # between the classes' mean lengths of a capsule, the largest and the smallest: with less it serves none


@dataclass(frozen=True, eq=False)
class Strongest:
    """The images of a set that activate each capsule most, the strongest first."""

    layer: str
    capsules: list[int]
    indices: Tensor  # capsules, count: which images of the set
    activations: Tensor  # capsules, count
    images: Tensor  # capsules, count, C H W

    __repr__ = short_repr

    def to_json(self) -> dict[str, Any]:
        return {
            "layer": self.layer,
            "capsules": self.capsules,
            "indices": plain(self.indices),
            "activations": plain(self.activations),
        }

    def png(self) -> bytes:
        """A row a capsule, each image with its activation; of more than 32 capsules the first."""
        rows = [
            Row(list(images), [f"{a:.2f}" for a in reached.tolist()], f"{self.layer}: {capsule}")
            for capsule, images, reached in zip(self.capsules, self.images, self.activations, strict=True)
        ]
        return grid_png(rows[:ROWS], side=56)

    _repr_png_ = png


@dataclass(frozen=True, eq=False)
class Served:
    """Which classes each capsule of a layer serves: those whose images make it long, on the mean.

    A capsule that is about as long for every class tells none of them from another, and serves none.
    """

    layer: str
    tau: float  # a capsule is active when longer than this
    classes: list[int]  # those that have images
    class_names: list[str]  # of these
    means: Tensor  # capsules, classes: the capsule's mean length over the class's images
    share: Tensor  # capsules, classes: of the capsule's activation, each class weighing the same; sums to 1
    active: Tensor  # capsules, classes: in what share of the class's images it is active
    serves: list[list[int]]  # for each capsule the classes it serves, that of the largest mean first

    __repr__ = short_repr

    def to_json(self) -> dict[str, Any]:
        return {
            "layer": self.layer,
            "tau": self.tau,
            "classes": self.classes,
            "class_names": self.class_names,
            "means": plain(self.means),
            "share": plain(self.share),
            "active": plain(self.active),
            "serves": self.serves,
        }

    def png(self) -> bytes:
        names = [str(j) for j in range(len(self.active))]
        title = f"The classes that {self.layer} capsules serve, by their mean length"
        shown = torch.zeros_like(self.means)
        for j, served in enumerate(self.serves):
            for k in served:
                shown[j, self.classes.index(k)] = self.means[j, self.classes.index(k)]
        return figure_png(heat_figure(shown.T, self.class_names, names, title=title, down="class", across="capsule"))

    _repr_png_ = png


@dataclass(frozen=True, eq=False)
class Features:
    """Whether the images generated for a capsule show one feature or several, which blur their mean."""

    correlation: float  # mean over the pairs of images, 1 for a single image
    groups: list[list[int]]  # images that are alike, by their place among the best; the largest group first
    meaning: str

    __repr__ = short_repr

    def to_json(self) -> dict[str, Any]:
        return {"correlation": round(self.correlation, 4), "groups": self.groups, "meaning": self.meaning}


def strongest(
    model: nn.Module,
    images: Float[Tensor, "M C H W"],
    layer: str | int,
    capsules: Sequence[int] | None = None,
    count: int = 8,
    *,
    batch: int = BATCH,
) -> Strongest:
    """The `count` images that activate each capsule of a layer most, in one pass; of equals the first in the set.

    Args:
        model: a capsule network.
        layer: one of model.layers, such as "hidden 1", or its index.
        capsules: their indices; all of the layer where there are none.
        batch: images per pass.
    """
    network, index, total = check_capsules(model, layer)
    check_images(images)
    chosen = list(range(total) if capsules is None else capsules)
    for capsule in chosen:
        if not 0 <= capsule < total:
            name = network.layers[index]
            raise InputError(f"There is no capsule {capsule} in layer '{name}': its capsules are 0 to {total - 1}.")
    if not 1 <= count <= len(images):
        raise InputError(f"The strongest of {len(images)} images can be 1 to {len(images)} of them, not {count}.")
    values = torch.empty(len(chosen), 0)
    indices = torch.empty(len(chosen), 0, dtype=torch.int64)
    seen = 0
    for activations in activations_in_batches(network, index, images, batch):
        new = torch.arange(seen, seen + len(activations)).expand(len(chosen), -1)
        seen += len(activations)
        values = torch.cat((values, activations[:, chosen].T), dim=1)
        indices = torch.cat((indices, new), dim=1)
        order = values.argsort(dim=1, descending=True, stable=True)[:, :count]  # earlier images stand first
        values, indices = values.gather(1, order), indices.gather(1, order)
    shown = images.cpu()[indices.flatten()].unflatten(0, indices.shape)
    return Strongest(network.layers[index], chosen, indices, values, shown)


def classes_served(
    model: nn.Module,
    images: Float[Tensor, "M C H W"],
    labels: Int[Tensor, "M"],
    layer: str | int = "hidden 1",
    *,
    tau: float = 0.1,
    class_names: Sequence[str] | None = None,
    batch: int = BATCH,
) -> Served:
    """How long each capsule is for the images of each class, how often it is active, and which classes stand out."""
    network, index, _ = check_capsules(model, layer)
    check_images(images, labels, network.classes)
    check_tau(tau)
    activations = torch.cat(list(activations_in_batches(network, index, images, batch)))  # M n
    classes = labels.unique().tolist()
    own = [activations[labels.cpu() == k].double() for k in classes]
    means = torch.stack([a.mean(0) for a in own], dim=1)  # n classes
    active = torch.stack([(a > tau).double().mean(0) for a in own], dim=1)
    share = means / means.sum(1, keepdim=True).clamp_min(1e-12)
    serves = [[classes[k] for k in line] for line in stand_out(means)]
    names = named(class_names, network.classes)
    return Served(
        layer=network.layers[index],
        tau=tau,
        classes=classes,
        class_names=[names[k] for k in classes],
        means=means.float(),
        share=share.float(),
        active=active.float(),
        serves=serves,
    )


def stand_out(means: Float[Tensor, "n classes"]) -> list[list[int]]:
    """For each capsule the classes whose mean is nearer to its largest than to its smallest, the largest first.

    None where these two are less than APART from each other. By differences and not by a length of its own, since
    many capsules of a well-trained network are long in every image.
    """
    low, high = means.amin(1, keepdim=True), means.amax(1, keepdim=True)
    chosen = (means > (low + high) / 2) & (high - low >= APART)
    order = means.argsort(dim=1, descending=True, stable=True).tolist()
    return [[k for k in line if chosen[j, k]] for j, line in enumerate(order)]


def features(generated: Generated) -> Features:
    """One feature or several: the best images in groups, within which each correlates with another by 0.5 or more.

    The paper reads the same from a blurred mean ("in the latter case, the generated images would look blurred").
    """
    between = correlations(generated.best, generated.best)  # best best
    count = len(between)
    groups = sorted(_connected(between >= ALIKE), key=lambda group: (-len(group), group))
    pairs = between[~torch.eye(count, dtype=torch.bool)]
    mean = pairs.mean().item() if count > 1 else 1.0
    if len(groups) == 1:
        meaning = f"One feature: the {count} best images are alike (mean correlation {mean:.2f})."
    elif len(groups) == count:
        meaning = f"No common feature: no two of the {count} best images are alike (mean correlation {mean:.2f})."
    else:
        meaning = f"{len(groups)} features: the {count} best images fall into groups (mean correlation {mean:.2f})."
    return Features(mean, groups, meaning)


def correlations(first: Float[Tensor, "A C H W"], second: Float[Tensor, "B C H W"]) -> Float[Tensor, "A B"]:
    """Pearson's correlation of each pair of images, over the pixels; images of one shade are alike only if equal."""
    a, b = (images.cpu().double().flatten(1) for images in (first, second))
    x, y = (flat - flat.mean(1, keepdim=True) for flat in (a, b))
    lengths = x.norm(dim=1, keepdim=True) * y.norm(dim=1)  # A B
    varied = lengths > 1e-9
    equal = (a.unsqueeze(1) - b).abs().amax(-1) < 1e-9
    return torch.where(varied, x @ y.T / lengths.clamp_min(1e-9), equal.double()).clamp(-1, 1)


def _connected(joined: Tensor) -> list[list[int]]:
    """The groups of a graph: what can be reached from one another."""
    groups: list[list[int]] = []
    left = set(range(len(joined)))
    while left:
        group, edge = set[int](), {min(left)}
        while edge:
            group |= edge
            edge = {k for j in edge for k in left if joined[j, k]} - group
        groups.append(sorted(group))
        left -= group
    return groups
