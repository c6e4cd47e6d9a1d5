"""The parse trees of images, from a network's couplings: one an image, or one for each of routing's iterations."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gammacaps.data import check_images
from gammacaps.errors import InputError
from gammacaps.explain.draw import draw
from gammacaps.explain.tree import Node, Tree, TreeLayer
from gammacaps.metrics.tree import t_scores
from gammacaps.models import CapsuleModel, Parse, require_capsules
from gammacaps.options import check_tau
from gammacaps.short_repr import short_repr

# Up to so many parents a node above the primary layer keeps its couplings to all of them.
FEW_PARENTS = 64


@dataclass(frozen=True, eq=False)
class ParseTree(Tree):
    """What one image's capsules chose. Shows itself in a notebook; `gammacaps.explain.draw` has more to choose from."""

    __repr__ = short_repr

    def _repr_svg_(self) -> str:
        return draw(self)


def parse_tree(
    model: nn.Module,
    image: Tensor,
    *,
    tau: float = 0.1,
    class_names: Sequence[str] | None = None,
) -> ParseTree:
    """The parse tree of one image (C, H, W). A capsule is active if its activation is above `tau`."""
    return parse_trees(model, _alone(image), tau=tau, class_names=class_names)[0]


@torch.no_grad()
def parse_trees(
    model: nn.Module,
    images: Tensor,
    *,
    tau: float = 0.1,
    class_names: Sequence[str] | None = None,
) -> list[ParseTree]:
    """The parse trees of images (B, C, H, W), from one pass of the network."""
    network, names = _check(model, images, tau, class_names)
    parse = network.parse(images.to(next(network.parameters())))
    T = trees_T(parse)
    return [tree_of(network, parse, b, image, tau, names, T=T) for b, image in enumerate(images)]


@torch.no_grad()
def routing_trees(
    model: nn.Module,
    image: Tensor,
    *,
    tau: float = 0.1,
    class_names: Sequence[str] | None = None,
) -> list[ParseTree]:
    """One image's tree by the couplings of routing's iteration 1, 2, ... and last, which is its parse tree.

    Every layer starts from the final capsules of the layer below, as in the network; activations are final in all
    trees. In iteration 1 all couplings are equal, so that no capsule has a parent yet.
    """
    images = _alone(image)
    network, names = _check(model, images, tau, class_names)
    parses = routing_parses(network, images)
    return [tree_of(network, parse, 0, image, tau, names, k) for k, parse in enumerate(parses, 1)]


@torch.no_grad()
def routing_parses(network: CapsuleModel, images: Float[Tensor, "B C H W"]) -> list[Parse]:
    """One pass of images, with the couplings of routing's iteration 1, 2, ... and last."""
    parse = network.parse(images.to(next(network.parameters())))
    before = [network.couplings_after(k, parse) for k in range(1, network.iterations or 1)]
    return [*(dataclasses.replace(parse, couplings=couplings) for couplings in before), parse]


def tree_of(
    network: CapsuleModel,
    parse: Parse,
    b: int,
    image: Float[Tensor, "C H W"],
    tau: float,
    names: tuple[str, ...],
    iteration: int | None = None,
    T: Sequence[Sequence[float]] | None = None,
) -> ParseTree:
    """The tree of image b of a parse, which may be one that `routing_parses` gave for an iteration.

    `T` is what `trees_T` says of the parse, which need not be worked out for each of its images.
    """
    T = T or trees_T(parse)
    layers = tuple(
        TreeLayer(name, tuple(activations[b].tolist()), grid, activations.shape[1] // (grid[0] * grid[1]))
        for name, activations, grid in zip(parse.layers, parse.activations, network.grids, strict=True)
    )
    nodes: list[Node] = []
    chosen: set[int] = set()
    for l, layer in enumerate(layers):
        couplings = parse.couplings[l] if l < len(layers) - 1 else None
        own = _nodes(l, layer, chosen, tau, None if couplings is None else couplings[b])
        chosen = {node.parent for node in own if node.parent is not None}
        nodes += own
    scores = layers[-1].activations
    predicted = int(parse.scores[b].argmax())
    return ParseTree(image.detach().cpu(), layers, tuple(nodes), tuple(T[b]), scores, predicted, tau, names, iteration)


def trees_T(parse: Parse) -> list[list[float]]:
    """For each image of a parse, the T of each routed layer."""
    layers = []
    for couplings, parents in zip(parse.couplings, parse.parents, strict=True):
        assert couplings is not None
        layers.append(t_scores(couplings, parents))
    return torch.stack(layers, dim=1).clamp(min=0).tolist()  # not -1e-9


def _nodes(l: int, layer: TreeLayer, chosen: set[int], tau: float, couplings: Tensor | None) -> list[Node]:
    """The active capsules of a layer and those that the layer below chose; `couplings` (I, J) to the layer above."""
    active = [i for i, activation in enumerate(layer.activations) if activation > tau]
    choices: dict[int, tuple[int | None, float | None, float | None, tuple[float, ...] | None]] = {}
    if couplings is not None:
        rows = couplings[torch.tensor(active, dtype=torch.int64, device=couplings.device)]  # active J
        largest = rows.topk(2, dim=-1)
        keep = l > 0 and rows.shape[1] <= FEW_PARENTS
        kept = [tuple(row) for row in rows.tolist()] if keep else [None] * len(active)
        for i, row, (first, second), (parent, _) in zip(
            active, kept, largest.values.tolist(), largest.indices.tolist(), strict=True
        ):
            # A parent is one coupling above all others; matrix capsules outside every window have none.
            choices[i] = (parent if first > second else None, first, second, row)
    nobody = (None, None, None, None)
    return [
        Node(l, i, layer.activations[i], layer.activations[i] > tau, i in chosen, *choices.get(i, nobody))
        for i in sorted({*active, *chosen})
    ]


def _alone(image: Tensor) -> Tensor:
    if image.dim() != 3:
        raise InputError(f"A tree is of one image (C, H, W), not of {tuple(image.shape)}: use parse_trees for a batch.")
    return image.unsqueeze(0)


def _check(
    model: nn.Module, images: Tensor, tau: float, class_names: Sequence[str] | None
) -> tuple[CapsuleModel, tuple[str, ...]]:
    """The network, and the names of its classes: their numbers where none are given."""
    network = require_capsules(model, "make a tree of", "an image's couplings depend on its")
    check_images(images)
    check_tau(tau)
    classes = network.classes
    names = tuple(map(str, range(classes))) if class_names is None else tuple(class_names)
    if len(names) != classes:
        raise InputError(f"The network has {classes} classes, but {len(names)} names are given: give one a class.")
    return network, names
