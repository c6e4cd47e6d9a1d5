"""An image under attack, beside the clean one: both trees, and what changed."""

import dataclasses
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from gammacaps.evaluation.specs import attacked_images, live_spec
from gammacaps.explain.difference import Difference, difference
from gammacaps.explain.draw.figure import count_changes
from gammacaps.explain.parsing import routing_trees
from gammacaps.explain.tree import Tree
from gammacaps.explorer import questions
from gammacaps.explorer.answers.images import SEED, counted, data_url, judged, label_of, scores_of, shown, with_off
from gammacaps.explorer.answers.why import why
from gammacaps.explorer.drawing import draw_trees
from gammacaps.explorer.jobs.job import Tick
from gammacaps.explorer.networks import Network
from gammacaps.models import Model

COARSE = 6  # steps of an attack that follows a slider


def attack(asked: questions.AttackQuestion, network: Network, tick: Tick) -> dict[str, Any]:
    """Both trees, the changed image and what changed. The class that the network gives the clean image is attacked."""
    image = questions.asked_image(asked, network)
    model = with_off(asked, network)
    clean = judged(scores_of(model, image.unsqueeze(0))[0])
    attacked = attacked_image(asked, asked.eps, model, image, clean["predicted"], tick)
    answer: dict[str, Any] = {
        "eps": asked.eps,
        "attack": asked.attack,
        "target": asked.target,
        "label": label_of(asked, network),
        "clean": {**shown(image), **clean},
        "attacked": {**shown(attacked), **judged(scores_of(model, attacked.unsqueeze(0))[0])},
        "difference": {
            # Unchanged is mid-grey, a change by eps black or white.
            "png": data_url(((attacked - image) / (2 * max(asked.eps, questions.LEAST_EPS)) + 0.5).clamp(0, 1)),
            "magnified": round(1 / (2 * asked.eps), 1) if asked.eps else None,
            "largest": round((attacked - image).abs().max().item(), 4),
        },
    }
    if asked.off:
        answer["before"] = judged(scores_of(network.model, image.unsqueeze(0))[0])
    if network.trees:
        how: dict[str, Any] = {"tau": asked.tau, "class_names": network.class_names}
        trees = [routing_trees(model, x, **how) for x in (image, attacked)]
        if asked.coarse:
            trees = [each[-1:] for each in trees]
        change = difference(trees[0][-1], trees[1][-1])
        answer["drawings"] = draw_trees(trees, show_all=asked.all, names=network.names)
        answer["clean"]["tree"], answer["attacked"]["tree"] = (each[-1].to_json() for each in trees)
        answer["changed"] = change.to_json()
        answer["words"] = what_changed(trees[0][-1], change)
        answer["clean"]["why"], answer["attacked"]["why"] = (why(each[-1], network) for each in trees)
    return answer


def what_changed(clean: Tree, change: Difference) -> str:
    """What changed, in a line: the class first, then the layers in which anything did."""
    before, after = (clean.class_names[c] for c in change.predicted)
    said = [f"Taken for {before} → {after}." if before != after else f"Taken for {before} in both."]
    for layer in change.layers:
        counts = count_changes(layer)
        said += [f"{layer.name}: {counts}."] if counts else []
    if len(said) == 1:
        said.append("The same capsules are active, with the same parents.")
    return " ".join(said)


def attacked_image(
    asked: questions.AttackQuestion, eps: float, model: Model, image: Float[Tensor, "C H W"], label: int, tick: Tick
) -> Float[Tensor, "C H W"]:
    """The image after the attack that is asked for, at this radius."""
    images, labels = image.unsqueeze(0), torch.tensor([label], device=image.device)
    targets = None if asked.target is None else torch.tensor([asked.target], device=image.device)
    if eps == 0:
        return image
    spec = live_spec(asked.attack, eps)
    if asked.coarse and spec.step is not None and (spec.steps or 0) > COARSE:
        spec = dataclasses.replace(spec, steps=COARSE, step=2 * eps / COARSE)
    watched = counted(model, tick, questions.live_attacks()[asked.attack].passes)
    return attacked_images(spec, watched, images, labels, None, SEED, targets=targets, to_the_end=True)[0]
