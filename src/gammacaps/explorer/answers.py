"""What the page is told: an image's tree, an attack on it, a capsule and what activates it. Plain values all of it."""

import base64
import shlex
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gammacaps.attacks import fgsm, noise, pgd, vote_surrogate
from gammacaps.data.split import rank_in_class
from gammacaps.errors import InputError
from gammacaps.explain.activate import activate
from gammacaps.explain.difference import Difference, difference
from gammacaps.explain.draw.figure import count_changes
from gammacaps.explain.examples import features, stand_out
from gammacaps.explain.off import without
from gammacaps.explain.parsing import routing_parses, routing_trees, tree_of, trees_T
from gammacaps.explain.pictures import image_png, plain
from gammacaps.explain.tree import Tree
from gammacaps.explorer import questions
from gammacaps.explorer.drawing import draw_trees
from gammacaps.explorer.networks import Network
from gammacaps.explorer.work import Tick
from gammacaps.models import CapsuleModel, Model, Parse
from gammacaps.models.twin import twin

SEED = 0
PGD_STEPS, DRAWS = 40, 20
EXAMPLES = 8  # real images shown for a capsule
# A price on brightness leaves dark what a class capsule does not look at, as in the report.
CLASS_PENALTY = 1e-4


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


def group_of(asked: questions.Parse, networks: Sequence[Network]) -> Hashable:
    """What questions must have in common to share a pass; None where an image's scores depend on its neighbours'."""
    alone = isinstance(networks[asked.network].model, CapsuleModel) and not networks[asked.network].trees
    return None if alone else (asked.network, asked.off)


def passes(asked: Sequence[questions.Parse], network: Network) -> list[Passed]:
    """One pass for the images of all questions, which are of one group."""
    images = torch.stack([questions.image_of(each.image, network) for each in asked])  # B C H W
    model = with_off(asked[0], network)
    before = scores_of(network.model, images) if asked[0].off else None
    parses: list[Parse] = []
    if network.trees:
        assert isinstance(model, CapsuleModel)
        with torch.no_grad():
            only_last = all(each.last for each in asked)
            parses = [model.parse(images)] if only_last else routing_parses(model, images)
    T = [trees_T(each) for each in parses]
    scores = parses[-1].scores if parses else scores_of(model, images)
    return [
        Passed(image, scores[b], None if before is None else before[b], model, parses, T, b)
        for b, image in enumerate(images)
    ]


def parse(asked: questions.Parse, network: Network, found: Passed | None = None) -> dict[str, Any]:
    """The tree by each of routing's iterations, its drawings, and with capsules off the scores before."""
    found = found or passes([asked], network)[0]
    answer: dict[str, Any] = {"label": label_of(asked, network), **shown(found.image), **judged(found.scores)}
    if found.before is not None:
        answer["before"] = judged(found.before)
    if isinstance(found.model, CapsuleModel) and found.parses:
        made = list(zip(found.parses, found.T, strict=True))
        wanted = [(None, made[-1])] if asked.last else list(enumerate(made, 1))
        how = (found.place, found.image, asked.tau, network.class_names)
        trees = [tree_of(found.model, parse, *how, iteration=k, T=T) for k, (parse, T) in wanted]
        answer["drawings"] = draw_trees([trees], show_all=asked.all)
        answer["tree"] = trees[-1].to_json()
    return answer


def attack(asked: questions.Attack, network: Network, tick: Tick) -> dict[str, Any]:
    """Both trees, the changed image and what changed. The class that the network gives the clean image is attacked."""
    image = questions.image_of(asked.image, network)
    model = with_off(asked, network)
    clean = judged(scores_of(model, image.unsqueeze(0))[0])
    attacked = attacked_image(asked, model, image, clean["predicted"], tick)
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
        found = difference(trees[0][-1], trees[1][-1])
        answer["drawings"] = draw_trees(trees, show_all=asked.all)
        answer["clean"]["tree"], answer["attacked"]["tree"] = (each[-1].to_json() for each in trees)
        answer["changed"] = found.to_json()
        answer["words"] = tell_difference(trees[0][-1], found)
    return answer


def tell_difference(clean: Tree, found: Difference) -> str:
    """What changed, in a line: the class first, then the layers in which anything did."""
    before, after = (clean.class_names[c] for c in found.predicted)
    said = [f"Taken for {before} → {after}." if before != after else f"Taken for {before} in both."]
    for layer in found.layers:
        counts = count_changes(layer)
        said += [f"{layer.name}: {counts}."] if counts else []
    if len(said) == 1:
        said.append("The same capsules are active, with the same parents.")
    return " ".join(said)


def attacked_image(
    asked: questions.Attack, model: Model, image: Float[Tensor, "C H W"], label: int, tick: Tick
) -> Float[Tensor, "C H W"]:
    images, labels = image.unsqueeze(0), torch.tensor([label], device=image.device)
    targets = None if asked.target is None else torch.tensor([asked.target], device=image.device)
    generator = torch.Generator(image.device).manual_seed(SEED)
    if asked.eps == 0:
        return image
    if asked.attack == "noise":
        told = counted(model, tick, DRAWS + 1)  # one pass before the draws
        return noise(told.forward, images, labels, eps=asked.eps, draws=DRAWS, generator=generator)[0]
    if asked.attack == "fgsm":
        return fgsm(counted(model, tick, 1).forward, images, labels, eps=asked.eps, targets=targets)[0]
    victim = vote_surrogate(model) if asked.attack == "vote" else model
    return pgd(
        # A function and no network, since the kernels for networks on a GPU know nothing of capsules switched off.
        counted(victim, tick, PGD_STEPS).forward,
        images,
        labels,
        eps=asked.eps,
        step=asked.eps / 10,
        steps=PGD_STEPS,
        targets=targets,
        generator=generator,
    )[0]


def activated(asked: questions.Activate, network: Network, tick: Tick) -> dict[str, Any]:
    """An input generated for a capsule, the mean of the best: the lengths that these and it reached, and its scores."""
    top = asked.layer == len(network.counts) - 1
    made = activate(
        counted(network.capsules, tick, asked.steps),
        asked.layer,
        asked.capsule,
        starts=asked.starts,
        steps=asked.steps,
        best=min(5, asked.starts),
        penalty=CLASS_PENALTY if top else None,
        seed=SEED,
    )
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
        "starts": asked.starts,
        "steps": asked.steps,
    }


@torch.no_grad()
def length_without(network: Network, layer: int, index: int) -> float:
    """The length that a capsule has in a black image."""
    black = torch.zeros(1, *network.model.config.image_shape, device=network.images.device)
    return network.capsules.parse(black, couplings=False).activations[layer][0, index].item()


def capsule(network: Network, layer: int, index: int) -> dict[str, Any]:
    """Real images that activate a capsule most, the classes it serves, and what the audit says of it."""
    answer: dict[str, Any] = {"examples": [], "serves": None, "audit": audited(network, layer, index)}
    if network.missing:
        return answer
    lengths, labels = network.lengths[layer][:, index], network.labels.cpu()  # M
    for place in lengths.argsort(descending=True, stable=True)[:EXAMPLES].tolist():
        png, length = data_url(network.images[place]), round(lengths[place].item(), 4)
        label = int(labels[place]) if network.labelled else None
        answer["examples"].append({"sample": place, "png": png, "activation": length, "label": label})
    if not network.labelled:
        return answer
    classes = labels.unique().tolist()
    means = torch.stack([lengths[labels == k].double().mean() for k in classes])
    served = [classes[place] for place in stand_out(means.unsqueeze(0))[0]]
    answer["serves"] = {"classes": classes, "means": plain(means), "serves": served}
    return answer


def audited(network: Network, layer: int, index: int) -> dict[str, Any] | None:
    """A capsule's row of audit.json, where there is one."""
    name = network.capsules.layers[layer]
    for found in (network.audit or {}).get("layers", ()):
        if found["layer"] == name:
            for row in found["capsules"]:
                if row["capsule"] == index:
                    assert network.audit is not None
                    return {"tau": network.audit["tau"], "eps": network.audit["eps"], **row}
    return None


def samples(network: Network, label: int | None, first: int, count: int) -> dict[str, Any]:
    """Images to pick from, those of one class or by turns of every class."""
    if label is not None and not network.labelled:
        raise InputError(f"The images of {network.source} are of other classes than the network's: leave class out.")
    labels = network.labels.tolist()
    rank = rank_in_class(network.labels.cpu().numpy())
    places = [place for place, k in enumerate(labels) if label in (None, k)]
    places.sort(key=lambda place: (rank[place], labels[place]))
    chosen = places[first : first + count]
    return {
        "missing": network.missing,
        "source": network.source,
        "total": len(places),
        "samples": [
            {"sample": p, "label": labels[p] if network.labelled else None, "png": data_url(network.images[p])}
            for p in chosen
        ],
    }


def described(network: Network) -> dict[str, Any]:
    """What the page says of a network before anything is asked."""
    model, training = network.model, network.about.train
    found: dict[str, Any] = {
        "name": network.name,
        "given": shlex.quote(network.given),
        "architecture": model.architecture,
        "routing": getattr(model.config, "routing", "em" if model.architecture == "matrix" else None),
        "iterations": getattr(model.config, "iterations", None),
        "image_shape": list(model.config.image_shape),
        "class_names": list(network.class_names),
        "weights": sum(p.numel() for p in model.parameters()),
        "trees": network.trees,
        "trained_on": training.data if training else None,
        "under_attack": training.robust if training else None,
        "eps": network.eps,
        "images": len(network.images),
        "labelled": network.labelled,
        "missing": network.missing,
        "audit": None,
        "layers": [],
    }
    if network.trees:
        names = network.capsules.layers
        found["layers"] = [{"name": n, "capsules": c} for n, c in zip(names, network.counts, strict=True)]
    if network.audit is not None:
        found["audit"] = network.audit["verdict"]
    return found


def label_of(asked: questions.Parse, network: Network) -> int | None:
    """The class of a test image; of any other image, or one of other classes than the network's, nobody knows."""
    return int(network.labels[asked.image["sample"]]) if "sample" in asked.image and network.labelled else None


def with_off(asked: questions.Parse, network: Network) -> Model:
    return without(network.capsules, asked.off) if asked.off else network.model


@torch.no_grad()
def scores_of(model: Model, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B N"]:
    """In [0, 1]: the lengths of class capsules; of a network without capsules the probabilities."""
    scores = model(images)
    return scores if isinstance(model, CapsuleModel) else scores.softmax(1)


def judged(scores: Float[Tensor, "N"]) -> dict[str, Any]:
    return {"scores": plain(scores), "predicted": int(scores.argmax())}


def counted(model: Any, tick: Tick, total: int) -> Any:
    """The same network, which tells of each pass it makes; with another's hooks it keeps them."""
    told = twin(model)
    done = 0

    def count(module: nn.Module, given: object) -> None:
        nonlocal done
        tick(min(done, total), total)
        done += 1

    (told.encoder if isinstance(told, CapsuleModel) else told.layers[-1]).register_forward_pre_hook(count)
    return told


def shown(image: Float[Tensor, "C H W"]) -> dict[str, str]:
    """An image to look at, and its bytes to ask about again."""
    levels = (image * 255).round().byte().cpu().numpy().tobytes()
    return {"png": data_url(image), "pixels": base64.b64encode(levels).decode()}


def data_url(image: Float[Tensor, "C H W"]) -> str:
    """A PNG of the image's own pixels."""
    return "data:image/png;base64," + base64.b64encode(image_png(image, side=max(image.shape[1:]))).decode()
