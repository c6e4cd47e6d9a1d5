"""Classes that mean none of the above: where noise, blank images and foreign images fall (section 5.2 of the paper)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from gammacaps.data import check_images
from gammacaps.explain.batches import BATCH, in_batches, named
from gammacaps.explain.pictures import figure_png, heat_figure, plain
from gammacaps.models import Model
from gammacaps.options import check_seed, check_whole
from gammacaps.short_repr import short_repr

NOISE = ("uniform noise", "Gaussian noise", "salt and pepper")
BLANK = {"black": 0.0, "grey": 0.5, "white": 1.0}
OTHER = "other images"
LOW = 0.5  # halfway between what the margin loss wants of an absent class (0.1) and of a present one (0.9)


@dataclass(frozen=True, eq=False)
class NoneOfTheAbove:
    """Where images that show no class fall. A none-of-the-above class takes most of them, of most kinds."""

    kinds: list[str]
    images: list[int]  # how many of each kind
    class_names: list[str]
    shares: Tensor  # kinds, N: share of the images that was taken for each class
    scores: Tensor  # kinds: mean of the highest score, in [0, 1]
    classes: list[int]  # the none-of-the-above classes
    perhaps: list[int]  # classes that take so many, but not of so many kinds
    low: bool  # the mean score over the kinds is low, so that no class capsule is truly active for these images
    meaning: str
    seed: int

    __repr__ = short_repr

    def to_json(self) -> dict[str, Any]:
        return {
            "kinds": self.kinds,
            "images": self.images,
            "class_names": self.class_names,
            "shares": plain(self.shares),
            "scores": plain(self.scores),
            "classes": self.classes,
            "perhaps": self.perhaps,
            "low": self.low,
            "meaning": self.meaning,
            "seed": self.seed,
        }

    def png(self) -> bytes:
        rows = [f"{kind} (score {score:.2f})" for kind, score in zip(self.kinds, self.scores.tolist(), strict=True)]
        cells = [[f"{share:.0%}" if share >= 0.005 else "" for share in line] for line in self.shares.tolist()]
        wide = len(self.class_names) > 20
        figure = heat_figure(
            self.shares,
            rows,
            self.class_names,
            title="What images that show nothing are taken for",
            cells=None if wide else cells,
        )
        return figure_png(figure)

    _repr_png_ = png


@torch.no_grad()
def none_of_the_above(
    model: Model,
    others: Float[Tensor, "M C H W"] | None = None,
    *,
    count: int = 200,
    class_names: Sequence[str] | None = None,
    seed: int = 0,
    batch: int = BATCH,
) -> NoneOfTheAbove:
    """Finds the class that a network uses for whatever it does not know.

    A class is that if it takes at least half of the images (and twice its equal share, where there are few classes)
    in at least two thirds of the kinds. It is named as a doubtful one if the mean of its shares over the kinds is as
    high as that demands, without being so even.

    Args:
        model: any network; the scores of one without capsules are taken as probabilities.
        others: images in [0, 1] of the network's shape that show none of its classes, of another data set.
        count: images of each kind of noise. A blank image is one.
        class_names: what the classes are called; their numbers by default.
    """
    check_whole("count", count)
    check_seed(seed)
    images = images_of_nothing(model.image_shape, count, seed)
    if others is not None:
        check_images(others, where="The other images")
        images[OTHER] = others
    shares, scores = [], []
    for part in images.values():
        each_score = torch.cat([_scores(model, some) for some in in_batches(model, part, batch)])  # B N
        predicted = each_score.argmax(1).bincount(minlength=model.classes)
        shares.append(predicted / len(part))
        scores.append(each_score.amax(1).mean())
    table, top = torch.stack(shares).float(), torch.stack(scores).float()
    names = named(class_names, model.classes)
    classes, perhaps = verdict(table)
    return NoneOfTheAbove(
        list(images),
        [len(part) for part in images.values()],
        names,
        table,
        top,
        classes,
        perhaps,
        top.mean().item() < LOW,
        _meaning(table, top.mean().item(), classes, perhaps, names),
        seed,
    )


def images_of_nothing(shape: tuple[int, int, int], count: int, seed: int) -> dict[str, Tensor]:
    """Images (B, C, H, W) by kind: `count` of each noise, the same for a seed on every device, and blank ones."""
    uniform, normal, coin = (np.random.default_rng((seed, kind)) for kind in range(3))
    size = (count, *shape)
    noise = (
        uniform.random(size),
        np.clip(normal.normal(0.5, 0.25, size), 0, 1),
        coin.integers(0, 2, size),  # each pixel black or white
    )
    images = {kind: torch.from_numpy(pixels).float() for kind, pixels in zip(NOISE, noise, strict=True)}
    return images | {kind: torch.full((1, *shape), shade) for kind, shade in BLANK.items()}


def verdict(shares: Float[Tensor, "kinds N"]) -> tuple[list[int], list[int]]:
    """The none-of-the-above classes, and the doubtful ones."""
    K, N = shares.shape
    much = max(0.5, min(1.0, 2 / N))
    taken = (shares >= much).sum(0)  # N
    sure = 3 * taken >= 2 * K
    doubtful = ~sure & (shares.mean(0) >= 2 / 3 * much)
    return sure.nonzero().squeeze(1).tolist(), doubtful.nonzero().squeeze(1).tolist()


def _scores(model: Model, images: Tensor) -> Tensor:
    """The scores in [0, 1], on the CPU."""
    return model.probabilities(model(images)).cpu()


def _meaning(shares: Tensor, score: float, classes: list[int], perhaps: list[int], names: list[str]) -> str:
    low = f"mean score {score:.2f}" + (", low: no class is truly active" if score < LOW else "")
    if not classes and not perhaps:
        return f"No class stands for none of the above: images that show nothing fall into several ({low})."
    chosen = (classes or perhaps)[0]
    mean, kinds = shares[:, chosen].mean(), int((shares[:, chosen] >= 0.5).sum())
    stands = "stands" if classes else "may stand"
    return (
        f"{names[chosen]} {stands} for none of the above: it takes {mean:.0%} of the images that show nothing, and at "
        f"least half in {kinds} of {len(shares)} kinds ({low})."
    )
