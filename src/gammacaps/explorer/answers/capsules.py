"""A capsule: the input generated for it, the real images that activate it, and what the audit says of it."""

from typing import Any

import torch

from gammacaps.data.group_names import name_of_classes
from gammacaps.evaluation.identity import identity
from gammacaps.explain.activate import Generated, activate
from gammacaps.explain.examples import features, stand_out
from gammacaps.explain.kept_inputs import SEARCH, generated_of, serves, usual_way
from gammacaps.explain.looks import looks_at, tinted
from gammacaps.explain.pictures import plain
from gammacaps.explain.search import SEARCHES
from gammacaps.explain.without_each import sufferers
from gammacaps.explorer import questions
from gammacaps.explorer.answers.images import counted, data_url, judged
from gammacaps.explorer.jobs.job import Tick
from gammacaps.explorer.networks import Network

EXAMPLES = 8  # real images shown for a capsule


def activated(asked: questions.ActivateQuestion, network: Network, tick: Tick) -> dict[str, Any]:
    """An input generated for a capsule, the mean of the best: the lengths that these and it reached, and its scores."""
    before = activated_before(asked, network)
    return before or _told(_new(asked, network, tick), asked.starts, asked.steps, asked, network)


def activated_before(asked: questions.ActivateQuestion, network: Network) -> dict[str, Any] | None:
    """The same answer by an input that the run's folder keeps; None where it keeps none that was searched as hard."""
    kept = _kept(asked, network)
    return None if kept is None else _told(*kept, asked, network)


def _told(
    made: Generated, starts: int, steps: int, asked: questions.ActivateQuestion, network: Network
) -> dict[str, Any]:
    return {
        "png": data_url(made.image),
        "activation": round(made.activation, 4),
        "best": [
            {"png": data_url(image), "activation": round(reached, 4)}
            for image, reached in zip(made.best, made.activations.tolist(), strict=True)
        ],
        "empty": round(length_without(network, asked.layer, asked.capsule), 4),
        **judged(made.scores),
        "features": features(made).to_json(),
        "starts": starts,
        "steps": steps,
        "search": SEARCH,
        "words": SEARCHES[SEARCH].words,
    }


def _how(asked: questions.ActivateQuestion, network: Network) -> dict[str, Any]:
    return usual_way(network.capsules.layers[asked.layer], network.radius)


def _new(asked: questions.ActivateQuestion, network: Network, tick: Tick) -> Generated:
    model = counted(network.capsules, tick, asked.steps)
    how = _how(asked, network)
    return activate(model, asked.layer, asked.capsule, starts=asked.starts, steps=asked.steps, **how)


def _kept(asked: questions.ActivateQuestion, network: Network) -> tuple[Generated, int, int] | None:
    """What the run's folder keeps, with its starts and steps, if it was searched so and at least as hard."""
    kept = network.inputs.get(network.capsules.layers[asked.layer])
    if kept is None or (asked.starts, asked.steps) != (questions.STARTS, questions.STEPS):
        return None
    starts, steps = int(kept.made.get("starts", 0)), int(kept.made.get("steps", 0))
    made = {"weights": identity(network.model), "starts": starts, "steps": steps, **_how(asked, network)}
    if starts < asked.starts or steps < asked.steps or not serves(kept, made, [asked.capsule]):
        return None
    return generated_of(kept, [asked.capsule], network.capsules)[0], starts, steps


@torch.no_grad()
def length_without(network: Network, layer: int, index: int) -> float:
    """The length that a capsule has in a black image."""
    black = torch.zeros(1, *network.model.image_shape, device=network.images.device)
    return network.capsules.parse(black, couplings=False).activations[layer][0, index].item()


def capsule(network: Network, layer: int, index: int) -> dict[str, Any]:
    """What is known of a capsule, with pictures of the real images, tinted where it looks."""
    answer = known(network, layer, index)
    places = [found["sample"] for found in answer["examples"]]
    if places:
        images = network.images[places]  # 8 C H W
        tints = tinted(images, looks_at(network.capsules, images, layer, [index] * len(places)))
        for found, image, tint in zip(answer["examples"], images, tints, strict=True):
            found |= {"png": data_url(image), "looks": data_url(tint)}
    return answer


def known(network: Network, layer: int, index: int) -> dict[str, Any]:
    """Which real images activate a capsule most, the classes it serves, and what the audit says of it."""
    answer: dict[str, Any] = {
        "name": network.names.get((layer, index), ""),
        "examples": [],
        "serves": None,
        "audit": audited(network, layer, index),
        "without": None,
    }
    if network.missing:
        return answer
    lengths, labels = network.lengths[layer][:, index], network.labels.cpu()  # M
    for place in lengths.argsort(descending=True, stable=True)[:EXAMPLES].tolist():
        label = int(labels[place]) if network.labelled else None
        answer["examples"].append({"sample": place, "activation": round(lengths[place].item(), 4), "label": label})
    if not network.labelled:
        return answer
    classes = labels.unique().tolist()
    means = torch.stack([lengths[labels == k].double().mean() for k in classes])
    served = [classes[place] for place in stand_out(means.unsqueeze(0))[0]]
    answer["serves"] = {"classes": classes, "means": plain(means), "serves": served}
    answer["without"] = without(network, layer, index)
    return answer


def without(network: Network, layer: int, index: int) -> list[dict[str, Any]] | None:
    """The classes that suffer most when a hidden capsule is switched off: shares that are right, before and after."""
    found = network.without(layer)
    if found is None:
        return None
    before, without_each = found
    return [
        {"class": one.label, "before": round(one.before, 4), "without": round(one.without, 4)}
        for one in sufferers(before, without_each[index])
    ]


def audited(network: Network, layer: int, index: int) -> dict[str, Any] | None:
    """A capsule's row of audit.json, where there is one."""
    name = network.capsules.layers[layer]
    for audited_layer in (network.audit or {}).get("layers", ()):
        if audited_layer["layer"] == name:
            for row in audited_layer["capsules"]:
                if row["capsule"] == index:
                    assert network.audit is not None
                    names, data = network.audit["class_names"], network.audit["data"]["name"]
                    about = {"tau": network.audit["tau"], "eps": network.audit["eps"]}
                    return {**about, "name": name_of_classes(row["classes"], names, data), **row}
    return None
