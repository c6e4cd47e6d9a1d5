"""A network before anything is asked: what it is, and images to pick from."""

import shlex
from typing import Any

from gammacaps.data.split import rank_in_class
from gammacaps.errors import InputError
from gammacaps.explorer import questions
from gammacaps.explorer.answers.images import data_url
from gammacaps.explorer.networks import Network


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
        "note": network.note,
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
    about: dict[str, Any] = {
        "name": network.name,
        "given": shlex.quote(network.given),
        "architecture": model.architecture,
        "routing": model.routing,
        "iterations": model.iterations,
        "image_shape": list(model.image_shape),
        "class_names": list(network.class_names),
        "weights": sum(p.numel() for p in model.parameters()),
        "trees": network.trees,
        "attacks": [
            {"name": name, "words": live.words, "aims": live.aims}
            for name, live in questions.live_attacks().items()
            if questions.why_not(name, network) is None
        ],
        "trained_on": training.data if training else None,
        "under_attack": training.robust if training else None,
        "way": training.way() if training else None,  # of training, in words
        "eps": network.eps,
        "tau": network.tau,
        "images": len(network.images),
        "labelled": network.labelled,
        "missing": network.missing,
        "audit": None,
        "layers": [],
        "names": {f"{layer}.{capsule}": name for (layer, capsule), name in network.names.items()},
    }
    if network.trees:
        names = network.capsules.layers
        about["layers"] = [{"name": n, "capsules": c} for n, c in zip(names, network.counts, strict=True)]
    if network.audit is not None:
        about["audit"] = network.audit["verdict"]
    return about
