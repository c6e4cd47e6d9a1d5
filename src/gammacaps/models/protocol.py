"""What the rest of gammacaps asks of a network, with the answer of one that says nothing else.

A capsule network of one's own is a `CapsuleModel` that sets `image_shape`, `classes` and `layers` and has a `parse`:
attacks on its scores, metrics, the audit, generated inputs and parse trees then work on it. The vote attack also needs
`mean_votes`, trees of each iteration of routing `couplings_after`, capsules switched off `capsule_modules`, and images
made by a decoder `reconstruct`. A classifier without capsules is a `Model`; attacks and `check` take any function
from images to scores.
"""

from typing import Any, TypeGuard

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from gammacaps.errors import InputError
from gammacaps.models.parse import Parse
from gammacaps.ops import rule_named, rule_names


class Model(nn.Module):
    """A network that classifies: images (B, C, H, W) in [0, 1] to scores (B, N)."""

    image_shape: tuple[int, int, int]  # C H W
    classes: int
    architecture: str = ""  # its name in config.json; of a network that can't be stored there is none
    title: str = "network"  # in words
    loss: str = "cross-entropy"  # what it learns from, by default
    routing: str | None = None  # the rule of its routing; None: it does not route
    iterations: int | None = None  # of its routing
    depends_on_neighbours: bool = False  # whether what it says of an image depends on the other images of the batch
    neighbours_option: tuple[str, str] | None = None  # the option that makes it so, and the one that would not
    reconstructs: bool = False  # whether it has a decoder
    no_decoder: str = ""  # what to say where there is none, if it could have one

    @property
    def routing_title(self) -> str | None:
        """Its routing in words, by the table of rules; None where it does not route."""
        if self.routing is None:
            return None
        return rule_named(self.routing).title if self.routing in rule_names() else "a rule of its own"

    def encode(self, images: Tensor) -> Any:
        """Its first part, that training may compute twice to keep less in memory."""
        raise NotImplementedError(f"{type(self).__name__} has no part called encode, to be computed twice.")

    def probabilities(self, scores: Float[Tensor, "B N"]) -> Float[Tensor, "B N"]:
        """The scores in [0, 1]: logits by softmax."""
        return scores.softmax(dim=1)

    def compile_routing(self, backend: str = "inductor") -> bool:
        """Compiles routing that has no kernels of its own, in place, and says whether there is such routing."""
        return False


class CapsuleModel(Model):
    """A network of capsules: `parse` says all of an image, and the scores are the activations of its class capsules.

    One of your own sets image_shape, classes and layers, and has a parse; all else can stay as it is.

    >>> import gammacaps
    >>> from gammacaps.models import CapsuleModel, Parse
    >>> from gammacaps.nn import PrimaryCapsules, RoutedCapsules
    >>> class Mine(CapsuleModel):
    ...     image_shape, classes, layers = (1, 28, 28), 10, ("primary", "class")
    ...
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.primary = PrimaryCapsules(1, types=4, size=8, kernel=9, stride=4)  # 5 x 5 places: 100 capsules
    ...         self.top = RoutedCapsules(100, 10, 8, 16)  # to 10 capsules of size 16
    ...
    ...     def parse(self, images, *, couplings=True):
    ...         below = self.primary(images)  # B 100 8
    ...         above, coupled = self.top(below, couplings)  # B 10 16, B 100 10
    ...         lengths = tuple(gammacaps.ops.length(poses) for poses in (below, above))
    ...         return Parse(self.layers, (below, above), lengths, (coupled,), (None,), lengths[-1])
    >>> images, labels = gammacaps.load_data("fashion-mini")
    >>> gammacaps.check(Mine(), images[:20], labels[:20], attacks="fgsm", checks=False)["clean"]["images"]
    20
    >>> gammacaps.explain.parse_tree(Mine(), images[0]).layers[0].name
    'primary'
    """

    title = "capsule network"
    loss = "margin"
    layers: tuple[str, ...]  # of capsules, as in a Parse: "primary", "hidden 1", ..., "class"

    def parse(self, images: Float[Tensor, "B C H W"], *, couplings: bool = True) -> Parse:
        """Poses, activations, couplings (or None for each, where they are not asked for) and scores of all layers."""
        raise NotImplementedError(f"{type(self).__name__} is a capsule network: give it a method parse.")

    def forward(self, images: Tensor) -> Float[Tensor, "B N"]:
        return self.parse(images, couplings=False).scores

    def probabilities(self, scores: Float[Tensor, "B N"]) -> Float[Tensor, "B N"]:
        """The scores in [0, 1]: lengths as they are."""
        return scores

    @property
    def grids(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns of the places in each layer, (1, 1) where capsules have no place.

        Capsule (row, column, type) has the index (row * columns + column) * types + type.
        """
        return ((1, 1),) * len(self.layers)

    @torch.no_grad()
    def counts(self) -> tuple[int, ...]:
        """How many capsules each layer has."""
        black = torch.zeros(1, *self.image_shape).to(next(self.parameters()))
        return tuple(activations.shape[1] for activations in self.parse(black, couplings=False).activations)

    def mean_votes(self) -> "CapsuleModel":
        """The same network on the same weights with equal couplings, which the vote attack takes in its place."""
        raise self._silent("what it is with the mean of the votes in place of routing", "mean_votes()")

    def couplings_after(self, iterations: int, parse: Parse) -> tuple[Tensor, ...]:
        """The couplings with which routing of so many iterations ends, each layer from the parse's capsules below."""
        raise self._silent("its couplings after some of its iterations", "couplings_after(iterations, parse)")

    @property
    def capsule_modules(self) -> tuple[nn.Module, ...]:
        """The module that makes each layer's capsules: it gives poses (B, I, d), or a NamedTuple that holds `poses`."""
        raise self._silent("which modules make its capsules", "the property capsule_modules")

    def reconstruct(self, parse: Parse, labels: Int[Tensor, "B"] | None = None) -> Float[Tensor, "B C H W"]:
        """The image that a decoder makes of the class capsule of `labels`, or of the longest."""
        raise NotImplementedError(
            f"{type(require_decoder(self)).__name__} has a decoder: give it a method reconstruct."
        )

    def _silent(self, what: str, define: str) -> InputError:
        return InputError(f"A {type(self).__name__} does not say {what}: define {define} in its class.")


def has_capsules(model: object) -> TypeGuard[CapsuleModel]:
    """Whether it has votes, poses and a Parse."""
    return isinstance(model, CapsuleModel)


def has_mean_votes(model: object) -> TypeGuard[CapsuleModel]:
    """Whether it says what it is with equal couplings, as the vote attack asks."""
    return has_capsules(model) and type(model).mean_votes is not CapsuleModel.mean_votes


def shows_capsules(model: object) -> TypeGuard[CapsuleModel]:
    """Whether it has capsules that can be shown image by image."""
    return has_capsules(model) and not model.depends_on_neighbours


def require_capsules(model: object, to: str, reason: str, verb: str = "use") -> CapsuleModel:
    """The network, if it has capsules `to` do something with, image by image; `reason` is why neighbours hinder."""
    if not has_capsules(model):
        raise InputError(f"A {type(model).__name__} has no capsules to {to}: use a capsule network.")
    if model.depends_on_neighbours:
        if model.neighbours_option is None:
            raise InputError(f"In this network {reason} neighbours: {verb} a network that takes each image by itself.")
        together, apart = model.neighbours_option
        raise InputError(f"This network has {together}, so {reason} neighbours: {verb} a network with {apart}.")
    return model


def require_decoder(model: object) -> CapsuleModel:
    """The network, if it can reconstruct images."""
    if has_capsules(model) and model.reconstructs:
        return model
    other = f"A {type(model).__name__} has no decoder: use a gamma-capsule network that has one."
    raise InputError(model.no_decoder or other if has_capsules(model) else other)
