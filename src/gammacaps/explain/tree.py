"""The parse tree of an image: every active capsule and the parent that it chose (the paper's gamma-capsule network)."""

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gammacaps.data import check_images
from gammacaps.errors import InputError
from gammacaps.metrics.tree import t_scores
from gammacaps.models import CapsuleModel, Parse, require_capsules
from gammacaps.options import check_tau

# Up to so many parents a node above the primary layer keeps its couplings to all of them.
FEW_PARENTS = 64


@dataclass(frozen=True)
class Layer:
    """A layer's capsules; with a grid, capsule (row, column, type) is (row * columns + column) * types + type."""

    name: str
    activations: tuple[float, ...]  # of all its capsules
    grid: tuple[int, int]  # rows and columns of places; (1, 1) where capsules have no place
    types: int  # capsules at each place


@dataclass(slots=True)  # a frozen one takes three times as long to make, and a tree has hundreds
class Node:
    """A capsule that is active, or that an active one chose. Only active capsules below the last layer choose."""

    layer: int
    index: int
    activation: float
    active: bool  # activation > tau
    chosen: bool  # it is the parent of an active capsule
    parent: int | None  # in the next layer; None where it does not choose, or where the largest coupling is shared
    coupling: float | None  # the largest; None where it does not choose
    second: float | None  # the second largest
    couplings: tuple[float, ...] | None  # to all parents, above the primary layer and where they are few


@dataclass(frozen=True, eq=False)
class ParseTree:
    """What one image's capsules chose. Shows itself in a notebook; `gammacaps.explain.draw` has more to choose from."""

    image: Float[Tensor, "C H W"]
    layers: tuple[Layer, ...]  # from the primary capsules to the class capsules
    nodes: tuple[Node, ...]  # by layer, then by index
    T: tuple[float, ...]  # of each routed layer, over all its lower capsules (equation 2 for this image)
    scores: tuple[float, ...]
    predicted: int
    tau: float
    class_names: tuple[str, ...]
    iteration: int | None = None  # the couplings are those of this iteration; None: of the last

    def nodes_of(self, layer: int) -> dict[int, Node]:
        """The nodes of a layer by their index."""
        return self._by_layer[layer]

    @functools.cached_property
    def _by_layer(self) -> list[dict[int, Node]]:
        found: list[dict[int, Node]] = [{} for _ in self.layers]
        for node in self.nodes:
            found[node.layer][node.index] = node
        return found

    @functools.cached_property
    def ways(self) -> dict[tuple[int, int], int | None]:
        """The class at the end of each node's path from parent to parent; None where it ends before."""
        last = len(self.layers) - 1
        found: dict[tuple[int, int], int | None] = {(last, i): i for i in range(len(self.scores))}
        for node in reversed(self.nodes):
            if node.layer < last:
                found[node.layer, node.index] = None if node.parent is None else found[node.layer + 1, node.parent]
        return found

    def active(self, layer: int) -> int:
        """How many capsules of a layer are active."""
        return sum(activation > self.tau for activation in self.layers[layer].activations)

    def tell(self, layer: int, index: int) -> str:
        """A capsule in words: by its number, in a grid by its place and type, a class by its name."""
        return self.names(layer)[index]

    def names(self, layer: int) -> Sequence[str]:
        """All capsules of a layer in words."""
        if layer == len(self.layers) - 1:
            return self.class_names
        told = self.layers[layer]
        return _names(told.name, told.grid, told.types, len(told.activations))

    def to_json(self) -> dict[str, Any]:
        """Plain values, numbers to 4 digits; the nodes of a layer are columns, entry n of each telling of node n.

        format       1
        tau, predicted, scores, T, class_names, iteration: as above
        layers       a list, from the primary capsules up, each with
          name, grid, types, activations: as in `Layer`
          nodes      index, active, chosen, parent, coupling, second, couplings: as in `Node`, a list each;
                     couplings is null as a whole where no node of the layer keeps them
        """
        columns_of = ("index", "active", "chosen", "parent", "coupling", "second", "couplings")
        layer_of = ("name", "activations", "grid", "types")
        fields = ("tau", "predicted", "scores", "T", "class_names", "iteration")
        layers = []
        for l, layer in enumerate(self.layers):
            nodes = self.nodes_of(l).values()
            columns: dict[str, Any] = {name: _rounded([getattr(node, name) for node in nodes]) for name in columns_of}
            if all(entry is None for entry in columns["couplings"]):
                columns["couplings"] = None
            layers.append({**{name: _rounded(getattr(layer, name)) for name in layer_of}, "nodes": columns})
        return {"format": 1, **{name: _rounded(getattr(self, name)) for name in fields}, "layers": layers}

    def _repr_svg_(self) -> str:
        from gammacaps.explain.draw import draw

        return draw(self)


@functools.lru_cache(64)  # they don't hang on the image
def _names(name: str, grid: tuple[int, int], types: int, count: int) -> tuple[str, ...]:
    if grid == (1, 1):
        return tuple(f"{name} capsule {i}" for i in range(count))
    places = [f"{name} row {place // grid[1]}, column {place % grid[1]}" for place in range(count // types)]
    return tuple(f"{place}, type {kind}" for place in places for kind in range(types))


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
        Layer(name, tuple(activations[b].tolist()), grid, activations.shape[1] // (grid[0] * grid[1]))
        for name, activations, grid in zip(parse.layers, parse.activations, network.grids, strict=True)
    )
    nodes: list[Node] = []
    chosen: set[int] = set()
    for l, layer in enumerate(layers):
        couplings = parse.couplings[l] if l < len(layers) - 1 else None
        found = _nodes(l, layer, chosen, tau, None if couplings is None else couplings[b])
        chosen = {node.parent for node in found if node.parent is not None}
        nodes += found
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


def _nodes(l: int, layer: Layer, chosen: set[int], tau: float, couplings: Tensor | None) -> list[Node]:
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


@dataclass(frozen=True)
class LayerDifference:
    """What became of a layer's active capsules."""

    name: str
    same: tuple[int, ...]  # active in both trees, with the same parent
    moved: tuple[tuple[int, int | None, int | None], ...]  # active in both: capsule, its parent before and after
    appeared: tuple[int, ...]  # active in the second tree only
    vanished: tuple[int, ...]  # active in the first tree only


@dataclass(frozen=True)
class Difference:
    """How one tree differs from another, layer by layer, and the class that each predicts."""

    layers: tuple[LayerDifference, ...]
    predicted: tuple[int, int]

    def to_json(self) -> dict[str, Any]:
        """Plain values: the fields as they are, and of each layer also how many there are of each kind."""
        kinds = ("same", "moved", "appeared", "vanished")
        layers = [
            {**dataclasses.asdict(layer), "counts": {kind: len(getattr(layer, kind)) for kind in kinds}}
            for layer in self.layers
        ]
        return _rounded({"predicted": self.predicted, "layers": layers})


def difference(clean: ParseTree, attacked: ParseTree) -> Difference:
    """Which capsules changed their parent, appeared or vanished from the first tree to the second."""
    shapes = [[(layer.name, layer.grid, layer.types) for layer in tree.layers] for tree in (clean, attacked)]
    if shapes[0] != shapes[1]:
        raise InputError("The two trees are of networks of different shapes: compare two trees of one network.")
    if clean.tau != attacked.tau:
        raise InputError(
            f"The two trees call a capsule active above {clean.tau:g} and above {attacked.tau:g}: give both one tau."
        )
    layers = []
    for l, layer in enumerate(clean.layers):
        before, after = (
            {index: node.parent for index, node in tree.nodes_of(l).items() if node.active}
            for tree in (clean, attacked)
        )
        both = [i for i in before if i in after]
        layers.append(
            LayerDifference(
                layer.name,
                tuple(i for i in both if before[i] == after[i]),
                tuple((i, before[i], after[i]) for i in both if before[i] != after[i]),
                tuple(i for i in after if i not in before),
                tuple(i for i in before if i not in after),
            )
        )
    return Difference(tuple(layers), (clean.predicted, attacked.predicted))


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


def _rounded(value: Any) -> Any:
    """Numbers to 4 digits and tuples as lists, all the way down."""
    if isinstance(value, dict):
        return {key: _rounded(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        # Numbers are looked at here, since a tree has thousands.
        return [round(v, 4) + 0.0 if type(v) is float else v if v is None else _rounded(v) for v in value]  # no -0.0
    return round(value, 4) + 0.0 if isinstance(value, float) else value
