"""An image's tree by routing's iterations; questions that wait together share a pass of the network."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from gammacaps.explain.parsing import routing_parses, tree_of, trees_T
from gammacaps.explorer import questions
from gammacaps.explorer.answers.images import judged, label_of, scores_of, shown, with_off
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


def group_of(asked: questions.ParseQuestion, networks: Sequence[Network]) -> Hashable:
    """What questions must have in common to share a pass; None where an image's scores depend on its neighbours'."""
    alone = networks[asked.network].model.depends_on_neighbours
    return None if alone else (asked.network, asked.off)


def passes(asked: Sequence[questions.ParseQuestion], network: Network) -> list[Passed]:
    """One pass for the images of all questions, which are of one group."""
    images = torch.stack([questions.image_of(each.image, network) for each in asked])  # B C H W
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
    return [
        Passed(image, scores[b], None if before is None else before[b], model, parses, T, b)
        for b, image in enumerate(images)
    ]


def parse(asked: questions.ParseQuestion, network: Network, passed: Passed | None = None) -> dict[str, Any]:
    """The tree by each of routing's iterations, its drawings, and with capsules off the scores before."""
    passed = passed or passes([asked], network)[0]
    answer: dict[str, Any] = {"label": label_of(asked, network), **shown(passed.image), **judged(passed.scores)}
    if passed.before is not None:
        answer["before"] = judged(passed.before)
    if has_capsules(passed.model) and passed.parses:
        made = list(zip(passed.parses, passed.T, strict=True))
        wanted = [(None, made[-1])] if asked.last else list(enumerate(made, 1))
        how = (passed.place, passed.image, asked.tau, network.class_names)
        trees = [tree_of(passed.model, parse, *how, iteration=k, T=T) for k, (parse, T) in wanted]
        answer["drawings"] = draw_trees([trees], show_all=asked.all, names=network.names)
        answer["tree"] = trees[-1].to_json()
    return answer
