"""An image's tree by routing's iterations; questions that wait together share a pass of the network."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from gammacaps.explain.difference import difference
from gammacaps.explain.parsing import routing_parses, tree_of, trees_T
from gammacaps.explain.tree import Tree
from gammacaps.explorer import questions
from gammacaps.explorer.answers.images import judged, label_of, scores_of, shown, with_off
from gammacaps.explorer.answers.why import why
from gammacaps.explorer.drawing import draw_trees
from gammacaps.explorer.networks import Network
from gammacaps.models import Model, Parse, has_capsules


@dataclass(frozen=True, eq=False)
class Passed:
    """What a pass of a network left of one of its images: all that the answer to a question is made of."""

    image: Float[Tensor, "C H W"]
    scores: Float[Tensor, "N"]
    before: Float[Tensor, "N"] | None  # with all capsules on, where some are off
    model: Model  # which made the pass
    parses: Sequence[Parse]  # of all of its images, by routing's iterations; of a network without trees none
    T: Sequence[Sequence[Sequence[float]]]  # of these
    place: int  # of this image
    unchanged: int | None  # the place of the image as it was before anything was done to it
    original: Float[Tensor, "C H W"]  # that image


def group_of(asked: questions.ParseQuestion, networks: Sequence[Network]) -> Hashable:
    """What questions must have in common to share a pass; None where an image's scores depend on its neighbours'."""
    alone = networks[asked.network].model.depends_on_neighbours
    return None if alone else (asked.network, asked.off)


def passes(asked: Sequence[questions.ParseQuestion], network: Network) -> list[Passed]:
    """One pass for the images of all questions, which are of one group."""
    originals = [questions.image_of(each.image, network) for each in asked]
    changed = [b for b, each in enumerate(asked) if each.change]
    shown = [questions.asked_image(each, network) for each in asked]
    images = torch.stack([*shown, *(originals[b] for b in changed)])  # B C H W, those asked about first
    model = with_off(asked[0], network)
    before = scores_of(network.model, images) if asked[0].off else None
    parses: list[Parse] = []
    if network.trees:
        assert has_capsules(model)
        with torch.no_grad():
            only_last = all(each.last for each in asked)
            parses = [model.parse(images)] if only_last else routing_parses(model, images)
    T = [trees_T(each) for each in parses]
    scores = parses[-1].scores if parses else scores_of(model, images)
    places = {b: len(asked) + n for n, b in enumerate(changed)}
    return [
        Passed(
            *(image, scores[b], None if before is None else before[b], model, parses, T),
            *(b, places.get(b), originals[b]),
        )
        for b, image in enumerate(shown)
    ]


def parse(asked: questions.ParseQuestion, network: Network, passed: Passed | None = None) -> dict[str, Any]:
    """The tree by each of routing's iterations, its drawings, and with capsules off the scores before.

    Where something was done to the image, what differs from the tree before is marked and told.
    """
    passed = passed or passes([asked], network)[0]
    answer: dict[str, Any] = {"label": label_of(asked, network), **shown(passed.image), **judged(passed.scores)}
    if passed.before is not None:
        answer["before"] = judged(passed.before)
    if has_capsules(passed.model) and passed.parses:
        made = list(zip(passed.parses, passed.T, strict=True))
        wanted = [(None, made[-1])] if asked.last else list(enumerate(made, 1))
        model, how = passed.model, (asked.tau, network.class_names)

        def trees_of(place: int, image: Float[Tensor, "C H W"]) -> list[Tree]:
            return [tree_of(model, parse, place, image, *how, iteration=k, T=T) for k, (parse, T) in wanted]

        trees = trees_of(passed.place, passed.image)
        before = [] if passed.unchanged is None else [trees_of(passed.unchanged, passed.original)]
        answer["drawings"] = draw_trees([*before, trees], show_all=asked.all, names=network.names)[len(before) :]
        answer["tree"] = trees[-1].to_json()
        answer["why"] = why(trees[-1], network)
        if before:
            answer["changed"] = difference(before[0][-1], trees[-1]).to_json()
    return answer
