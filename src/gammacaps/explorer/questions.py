"""What a page may ask, read from JSON: whatever is not exactly that is refused in one sentence."""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from gammacaps.attacks.attack import Live, victim_of
from gammacaps.attacks.table import all_attacks, attack_named
from gammacaps.errors import InputError
from gammacaps.explorer.changes import Change, changed, read_change
from gammacaps.explorer.networks import TAU, Network
from gammacaps.explorer.plain_values import choice, known, number, shortened, truth, whole
from gammacaps.models import has_capsules

MOST_OFF = 64  # capsules switched off at once
LEAST_EPS = 1e-6  # of an attack: less is lost in the rounding of a pixel
# Generated inputs: how many starts and steps unless told, and at most.
STARTS, STEPS, MOST_STARTS, MOST_STEPS = 6, 120, 60, 1000
PARSE = ("network", "image", "tau", "all", "off", "change")  # the fields of every question about an image


@dataclass(frozen=True)
class ParseQuestion:
    """The tree of an image."""

    network: int
    image: Any  # {"sample": 3} or {"pixels": base64 of C * H * W bytes}
    tau: float = TAU
    all: bool = False  # also draw capsules that are neither active nor chosen
    off: tuple[tuple[int, int], ...] = ()  # layer and capsule
    last: bool = False  # draw routing's last iteration alone, which is quicker
    change: Change = ()  # what is done to the image before


@dataclass(frozen=True)
class AttackQuestion(ParseQuestion):
    """The tree of an image before and after an attack."""

    attack: str = "pgd"  # by its name in the table of attacks
    eps: float = 0.1
    target: int | None = None  # the class to be taken for; without it any but the present one
    coarse: bool = False  # a few steps, and routing's last iteration alone: while a slider is dragged


@dataclass(frozen=True)
class BreakQuestion(AttackQuestion):
    """The smallest eps at which an attack changes the answer; `eps` is tried first."""


@dataclass(frozen=True)
class ActivateQuestion:
    """An input generated to activate a capsule."""

    network: int
    layer: int
    capsule: int
    starts: int = STARTS
    steps: int = STEPS


def read_parse(body: Any, networks: Sequence[Network]) -> ParseQuestion:
    fields = known(body, (*PARSE, "last"))
    return ParseQuestion(**_parse_fields(fields, networks), last=truth("last", fields.get("last", False)))


def read_attack(body: Any, networks: Sequence[Network]) -> AttackQuestion:
    fields = known(body, (*PARSE, "attack", "eps", "target", "coarse"))
    common = _attack_fields(fields, networks)
    eps = number("eps", fields.get("eps", networks[common["network"]].eps), 0, 1)
    if 0 < eps < LEAST_EPS:
        raise InputError(f"eps must be 0 or a number from {LEAST_EPS:g} to 1, not {shortened(eps)}.")
    return AttackQuestion(**common, eps=eps, coarse=truth("coarse", fields.get("coarse", False)))


def read_breaking(body: Any, networks: Sequence[Network]) -> BreakQuestion:
    fields = known(body, (*PARSE, "attack", "eps", "target"))
    common = _attack_fields(fields, networks)
    eps = number("eps", fields.get("eps", networks[common["network"]].eps), LEAST_EPS, 1)
    return BreakQuestion(**common, eps=eps)


def _attack_fields(fields: dict[str, Any], networks: Sequence[Network]) -> dict[str, Any]:
    common = _parse_fields(fields, networks)
    network = networks[common["network"]]
    name = fields.get("attack", "pgd")
    choice("attack", name, list(live_attacks()))
    if (reason := why_not(name, network)) is not None:
        raise InputError(f"{network.name} can't be attacked by {name}: {reason}; choose another attack, such as pgd.")
    target = fields.get("target")
    if target is not None:
        target = whole("target", target, 0, network.model.classes - 1)
        if not live_attacks()[name].aims:
            raise InputError(f"{name.capitalize()} aims at no class: leave target out.")
    return {**common, "attack": name, "target": target}


def live_attacks() -> dict[str, Live]:
    """The attacks that can be played with, by name, in the order of the menu."""
    live = {attack.name: attack.live for attack in all_attacks() if attack.live is not None}
    return dict(sorted(live.items(), key=lambda item: item[1].place))


def why_not(attack: str, network: Network) -> str | None:
    """Why an attack can't run on a network, or None where it can."""
    chosen, model = attack_named(attack), network.model
    if chosen.sees == "votes" and has_capsules(model) and not network.trees:
        return "what its capsules say of an image depends on the images beside it"
    return chosen.why_not(victim_of(model, model.classes))


def read_activate(body: Any, networks: Sequence[Network]) -> ActivateQuestion:
    fields = known(body, ("network", "layer", "capsule", "starts", "steps"))
    starts = whole("starts", fields.get("starts", STARTS), 1, MOST_STARTS)
    steps = whole("steps", fields.get("steps", STEPS), 1, MOST_STEPS)
    return ActivateQuestion(*read_capsule(fields, networks), starts, steps)


def read_capsule(fields: dict[str, Any], networks: Sequence[Network]) -> tuple[int, int, int]:
    """Network, layer and capsule."""
    place = whole("network", fields.get("network", 0), 0, len(networks) - 1)
    network = networks[place]
    layers = len(network.capsules.layers)
    layer = whole("layer", fields.get("layer"), 0, layers - 1)
    return place, layer, whole("capsule", fields.get("capsule"), 0, network.counts[layer] - 1)


def asked_image(asked: ParseQuestion, network: Network) -> Float[Tensor, "C H W"]:
    """The image that a question is about, changed as it says."""
    return changed(image_of(asked.image, network), asked.change)


def image_of(asked: Any, network: Network) -> Float[Tensor, "C H W"]:
    """The image that is meant, by its number among the samples or by its pixels."""
    if not isinstance(asked, dict) or len(asked) != 1 or not {"sample", "pixels"} & set(asked):
        raise InputError('An image is {"sample": its number} or {"pixels": "its bytes in base64"}.')
    if "sample" in asked:
        if network.missing:
            raise InputError(f"There are no images to pick: {network.missing}")
        return network.images[whole("sample", asked["sample"], 0, len(network.images) - 1)]
    channels, height, width = network.model.image_shape
    try:
        content = base64.b64decode(asked["pixels"], validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise InputError("The pixels are no base64: send the image's bytes so encoded.") from None
    if len(content) != channels * height * width:
        raise InputError(
            f"The network takes images of {channels} x {height} x {width} bytes, one a pixel and channel, "
            f"not of {len(content)}."
        )
    levels = torch.frombuffer(bytearray(content), dtype=torch.uint8).float() / 255
    return levels.view(channels, height, width).to(network.images.device)


def _parse_fields(fields: dict[str, Any], networks: Sequence[Network]) -> dict[str, Any]:
    place = whole("network", fields.get("network", 0), 0, len(networks) - 1)
    network = networks[place]
    if "image" not in fields:
        raise InputError('Which image? Give {"image": {"sample": 0}} or its pixels.')
    image_of(fields["image"], network)
    tau = number("tau", fields.get("tau", TAU), 0, 0.99)
    show_all = truth("all", fields.get("all", False))
    off = fields.get("off", [])
    if not isinstance(off, list) or len(off) > MOST_OFF:
        raise InputError(f"off must be a list of at most {MOST_OFF} pairs of layer and capsule.")
    for pair in off:
        if not isinstance(pair, list) or len(pair) != 2:
            raise InputError("off must be a list of pairs of layer and capsule, such as [[1, 3]].")
        _, layer, _ = read_capsule({"network": place, "layer": pair[0], "capsule": pair[1]}, networks)
        if layer == len(network.counts) - 1:
            raise InputError("Class capsules can't be switched off: there is no layer above them.")
    pairs = tuple(sorted({(layer, capsule) for layer, capsule in off}))
    change = read_change(fields.get("change", {}))
    return {
        "network": place,
        "image": fields["image"],
        "tau": tau,
        "all": show_all,
        "off": pairs,
        "change": change,
    }
