"""A network and test images to the paper's definitions: are these gamma-capsules, and is there a parse tree?"""

import dataclasses
import time
from typing import Any

import torch
from torch import Tensor

from gammacaps.auditing.audit_layer import audit_layer
from gammacaps.auditing.class_attack import ClassAttack
from gammacaps.auditing.config import AuditConfig
from gammacaps.auditing.kinds import GAMMA
from gammacaps.auditing.parents import ParentCounter
from gammacaps.auditing.patterns import told_by_pattern
from gammacaps.auditing.table import verdict
from gammacaps.auditing.told_apart import different_sets, pairs_told_apart
from gammacaps.data import DataSet
from gammacaps.environment import describe_machine, pick_device
from gammacaps.errors import InputError, check_choice
from gammacaps.evaluation.evaluate import balanced
from gammacaps.models import CapsuleModel, Model, check_fit, require_capsules
from gammacaps.progress import OnProgress
from gammacaps.runs.audits import FORMAT

# The largest radius where neither the user nor the run names one.
EPS = 0.1
CPU_BATCH, GPU_BATCH = 64, 512  # images per pass where nobody says


def audit(model: Model, data: DataSet, config: AuditConfig, progress: OnProgress = lambda *_: None) -> dict[str, Any]:
    """Definitions 3.1 to 3.5 on a test set, as the plain values of audit.json."""
    network, layers = _check_model(model, config)
    device = pick_device(config.device)
    asked = config
    if config.batch is None:
        config = dataclasses.replace(config, batch=CPU_BATCH if device.type == "cpu" else GPU_BATCH)
    network = network.to(device).eval()
    images, labels = (t.to(device) for t in balanced(data, config.limit))
    check_fit(network, data, "audit it on data like its own")
    started = time.monotonic()
    eps = sorted(set(config.eps or (EPS / 2, EPS)))
    lengths, tree = look(network, images, config)
    assert config.batch is not None
    attack = ClassAttack(network, images, labels, config.batch, config.seed)
    audited = [
        audit_layer(network, layer, images, labels, lengths[layer], eps, config, progress, attack) for layer in layers
    ]
    results = {
        "format": FORMAT,
        "data": {"name": data.name, "source": str(data.source), "split": "test", "images": len(images)},
        "class_names": list(data.class_names),
        "tau": config.tau,
        "eps": eps,
        "layers": audited,
        "tree": tree,
        **together(audited, len(data.class_names)),
        "pattern": pattern(network, audited, lengths, attack, eps[-1], config),
        "settings": {k: list(v) if isinstance(v, tuple) else v for k, v in dataclasses.asdict(asked).items()},
        "machine": describe_machine(config.device),
        "seconds": round(time.monotonic() - started, 1),
    }
    return {"verdict": verdict(results), **results}


@torch.no_grad()
def look(model: CapsuleModel, images: Tensor, config: AuditConfig) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
    """The lengths (M, I) of each layer's capsules, and how each layer chooses its parents (Definition 3.5)."""
    lengths: dict[str, list[Tensor]] = {layer: [] for layer in model.layers}
    trees = [ParentCounter(config.tau, images.device) for _ in model.layers[1:]]
    for part in images.split(config.batch):
        parse = model.parse(part)
        for layer, activations in zip(model.layers, parse.activations, strict=True):
            lengths[layer].append(activations)
        for l, tree in enumerate(trees):
            couplings = parse.couplings[l]
            assert couplings is not None
            tree.update(parse.activations[l], couplings, parse.parents[l])
    names = zip(model.layers[:-1], model.layers[1:], strict=True)
    return (
        {layer: torch.cat(parts) for layer, parts in lengths.items()},
        [{"from": below, "to": above, **tree.compute()} for (below, above), tree in zip(names, trees, strict=True)],
    )


def together(audited: list[dict[str, Any]], classes: int) -> dict[str, Any]:
    """What the gamma-capsules of all layers say together, and how many hold on images that did not name them."""
    rows = [row for layer in audited for row in layer["capsules"] if row["kind"] == GAMMA]
    sets = [row["classes"] for row in rows]
    known = [row["held_out"] for row in rows if row["held_out"] is not None]
    return {
        "held_out": sum(known) if known or not rows else None,
        "class_sets": different_sets(sets),
        "pairs_told_apart": pairs_told_apart(sets, classes),
    }


def pattern(
    model: CapsuleModel,
    audited: list[dict[str, Any]],
    lengths: dict[str, Tensor],
    attack: ClassAttack,
    eps: float,
    config: AuditConfig,
) -> dict[str, Any] | None:
    """How well the class is told from which of the audited capsules are active, beside the network's own answers."""
    chosen = {layer["layer"]: [row["capsule"] for row in layer["capsules"]] for layer in audited}

    def active(of: dict[str, Tensor]) -> Tensor:
        return torch.cat([of[layer][:, own] > config.tau for layer, own in chosen.items()], dim=1)  # M I

    under_attack, _ = look(model, attack.at(eps), config)
    told = told_by_pattern(active(lengths), active(under_attack), attack.labels, model.classes)
    if told is None:
        return None
    own = {
        f"network_{name}": (of[model.layers[-1]].argmax(1) == attack.labels).double().mean().item()
        for name, of in (("clean", lengths), ("attacked", under_attack))
    }
    return {**told, **own, "eps": eps}


def _check_model(model: Model, config: AuditConfig) -> tuple[CapsuleModel, tuple[str, ...]]:
    """The network and the layers to audit, each once."""
    network = require_capsules(model, "audit", "what a capsule says depends on an image's", verb="audit")
    for layer in config.layers:
        check_choice("layer", layer, network.layers)
    layers = tuple(dict.fromkeys(config.layers or network.layers[1:-1]))
    if not layers:
        raise InputError("This network has no hidden capsules: name the layers to audit, such as --layers class.")
    return network, layers
