"""All that the page must know of its networks, as plain values: what the server works out once, and the weights."""

import base64
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from gammacaps.data.split import rank_in_class
from gammacaps.errors import InputError
from gammacaps.explain.activate import BEST
from gammacaps.explain.draw.capsules import name_lines
from gammacaps.explain.draw.paths import OTHER
from gammacaps.explain.draw.svg import ALONE
from gammacaps.explain.kept_inputs import SEARCH, usual_way
from gammacaps.explain.search import SEARCHES
from gammacaps.explorer import answers, questions
from gammacaps.explorer.answers.attacked import COARSE
from gammacaps.explorer.answers.breaking import MOST, STEP, TRIES
from gammacaps.explorer.answers.capsules import known
from gammacaps.explorer.answers.images import SEED
from gammacaps.explorer.answers.why import class_sets
from gammacaps.explorer.drawing import PALETTE
from gammacaps.explorer.networks import Network
from gammacaps.models.browser_form import packed_weights, shape_of, why_not

ATTACKS = ("pgd", "fgsm", "vote", "noise")  # those that attacks.js has
MOVE = 0.01  # the length of a step of the search, as `activate` has it
NO_IMAGES = "This page was made without test images: draw one, or open an image file."


def packed_page(networks: Sequence[Network]) -> dict[str, Any]:
    """The networks and the images that they share; an error where one of them can't run in the browser."""
    for network in networks:
        if (reason := why_not(network.model)) is not None:
            raise InputError(
                f"{network.name} can't run in a page without a server: {reason}; leave --static out, and the explorer "
                "serves it."
            )
    return {"networks": [packed_network(network) for network in networks], "images": packed_images(networks[0])}


def packed_network(network: Network) -> dict[str, Any]:
    model = network.model
    facts = answers.described(network)
    facts["attacks"] = [attack for attack in facts["attacks"] if attack["name"] in ATTACKS]
    facts["missing"] = NO_IMAGES if network.missing else ""
    # Whoever opens the page need not know where files lie on the machine that made it.
    facts["given"] = shlex.quote(Path(network.given).name)
    facts["trained_on"] = facts["trained_on"] and Path(facts["trained_on"]).name
    kind, weights = packed_weights(model)
    hidden = len(network.counts) - 2
    return {
        "facts": facts,
        "shape": shape_of(model),
        "weights": {"kind": kind, "base64": base64.b64encode(weights).decode()},
        "names": {f"{l}.{i}": lines_of(name) for (l, i), name in network.names.items()},
        "class_sets": list(class_sets(network, hidden).items()) if hidden > 0 else [],
        "drawing": {"palette": PALETTE, "other": OTHER, "alone": ALONE},
        "labels": network.labels.tolist(),
        "order": order_of(network),
        "note": network.note.split(". ")[0] + "." if network.note else "",
        "source": Path(network.source).name,
        "patches": answers.patches(network, lambda done, of: None),
        "capsules": [[known(network, l, i) for i in range(count)] for l, count in enumerate(network.counts)],
        "made": made_before(network),
        "numbers": numbers_of(network),
    }


def made_before(network: Network) -> dict[str, Any]:
    """The inputs generated for capsules that the run's folder keeps, as the server answers with them."""
    every = [(l, i) for l, count in enumerate(network.counts) if l > 0 for i in range(count)]
    found = {f"{l}.{i}": answers.activated_before(questions.ActivateQuestion(0, l, i), network) for l, i in every}
    return {place: answer for place, answer in found.items() if answer is not None}


def numbers_of(network: Network) -> dict[str, Any]:
    """How hard attacks and searches try: what the server has."""
    live = {name: each for name, each in questions.live_attacks().items() if name in ATTACKS}
    search = SEARCHES[SEARCH]
    hidden, top = (usual_way(layer, network.radius) for layer in ("hidden 1", "class"))
    return {
        "seed": SEED,
        "coarse": COARSE,
        "least_eps": questions.LEAST_EPS,
        "attacks": {
            name: {"steps": each.numbers(1.0).steps, "step": each.numbers(1.0).step, "passes": each.passes}
            for name, each in live.items()
        },
        "breaking": {"step": STEP, "most": MOST, "tries": TRIES},
        "generated": {
            "starts": questions.STARTS,
            "steps": questions.STEPS,
            "step": MOVE,
            "first": search.first,
            "last": search.last,
            "noise": hidden["noise"],
            "penalty": hidden["penalty"],
            "class_penalty": top["penalty"],
            "best": BEST,
            "search": SEARCH,
            "words": search.words,
        },
    }


def lines_of(name: str) -> dict[str, Any]:
    """A capsule's name, and how it is broken beside the capsule, in one line or two."""
    return {"name": name, "one_line": name_lines(name, 1), "two_lines": name_lines(name, 2)}


def order_of(network: Network) -> list[int]:
    """The images by turns of every class."""
    labels = network.labels.tolist()
    rank = rank_in_class(network.labels.cpu().numpy())
    return sorted(range(len(labels)), key=lambda place: (rank[place], labels[place]))


def packed_images(network: Network) -> dict[str, str]:
    """As bytes where that loses nothing."""
    images = network.images.cpu().float()
    levels = (images * 255).round().clamp(0, 255).byte()
    exact = torch.equal(levels.float() / 255, images)
    content = levels.numpy().tobytes() if exact else images.numpy().astype("<f4").tobytes()
    return {"kind": "uint8" if exact else "float32", "base64": base64.b64encode(content).decode()}
