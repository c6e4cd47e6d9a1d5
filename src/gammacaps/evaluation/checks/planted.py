"""The attack's own test (Zimmermann et al., 2022): it must find adversarial examples that surely are there."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gammacaps.attacks import frozen, pgd
from gammacaps.attacks.auto import auto_attack
from gammacaps.attacks.balls import BALLS, LinfBall
from gammacaps.attacks.gradient import Classifier
from gammacaps.evaluation.checks.finding import Finding, graded, percent
from gammacaps.models import has_capsules

Features = Callable[[Tensor], Tensor]
POINTS = 200
MOST = 512  # features looked at, for a square matrix of them is solved for each image


def planted(
    model: Classifier, images: Tensor, eps: float, seed: int, *, apgd: bool = False, norm: str = "linf"
) -> Finding:
    """Alters the network's last step so that an adversarial example exists near each image, and attacks it.

    By PGD, and where `apgd` says that the figures rest on AutoAttack's APGD-CE too, by that where PGD found nothing.
    """
    features = features_of(model, images)
    if features is None:
        words = "The network shows no features beside its scores, so that no new last step could be planted"
        return Finding("planted-examples", "skip", None, f"{words}.")
    generator = torch.Generator(images.device).manual_seed(seed)
    with torch.no_grad():
        direction, threshold, possible = plant(features, images, eps, generator, norm)
    images, direction, threshold = images[possible], direction[possible], threshold[possible]
    if len(images) == 0:
        words = "Near no image could a last step be found that one random point passes and the others do not"
        return Finding("planted-examples", "skip", None, f"{words}.")

    def altered(points: Tensor, own: slice = slice(None)) -> Tensor:
        passed = (features(points) * direction[own]).sum(1) - threshold[own]
        return torch.stack((-passed, passed), dim=1)

    ball = BALLS[norm](images, eps)
    labels = torch.zeros(len(images), dtype=torch.int64, device=images.device)
    with frozen(model):
        ways: dict[str, Any] = {"step": eps / 10, "steps": 100, "restarts": 2, "generator": generator}
        attacked = pgd(altered, images, labels, eps=eps, norm=norm, **ways)
        with torch.no_grad():
            seen = altered(attacked).argmax(1).bool()
            tries = [altered(ball.start(generator)).argmax(1) for _ in range(POINTS)]
            by_chance = torch.stack(tries).amax(0).float().mean().item()
        missed = [slice(j, j + 1) for j in (~seen).nonzero().flatten().tolist()] if apgd else []
        later = 0
        for own in missed:  # one by one: an image's last step is its own
            network = functools.partial(altered, own=own)
            moved = auto_attack(network, images[own], labels[own], eps=eps, part="apgd-ce", seed=seed, norm=norm)
            with torch.no_grad():
                later += int(network(moved).argmax(1))
    both = int(seen.sum()) + later
    words = (
        f"In a copy altered so that an adversarial example surely lies near each image, PGD finds {int(seen.sum())} of "
        f"{len(images)}{f' and APGD-CE {later} of the others' if missed else ''} ({POINTS} random points: "
        f"{percent(by_chance)})"
    )
    lost = len(images) - both
    verdict = graded(lost, max(1, len(images) / 10), max(1, len(images) / 4))
    who = "they" if missed else "it"
    end = "" if verdict == "pass" else f": {who} can't be trusted to find those of the network itself"
    return Finding("planted-examples", verdict, both / len(images), f"{words}{end}.")


def plant(
    features: Features, images: Tensor, eps: float, generator: torch.Generator, norm: str = "linf"
) -> tuple[Float[Tensor, "B F"], Float[Tensor, "B"], Tensor]:
    """For each image a linear step on its features that a corner of its ball passes and random points do not.

    A ball of another norm than L-inf has no corners that are like all others: there it is one more random point.

    The direction is that of a linear discriminant; the threshold lies nearly at the corner's value, so that little
    more than the planted point passes. Gives also which images it could be found for.
    """
    ball = BALLS[norm](images, eps)
    inner = torch.stack([features(ball.start(generator)) for _ in range(POINTS)], dim=1)  # B points F
    inner = torch.cat((inner, features(images).unsqueeze(1)), dim=1)
    corner = ball.start(generator)
    if isinstance(ball, LinfBall):
        corner = torch.where(corner < images, ball.low, ball.high)
    goal = features(corner)  # B F
    centre = inner.mean(1, keepdim=True)
    offsets = inner - centre
    spread = offsets.transpose(1, 2) @ offsets / inner.shape[1]  # B F F
    scale = spread.diagonal(dim1=1, dim2=2).mean(1).clamp_min(1e-20)
    ridge = torch.eye(spread.shape[1], device=images.device) * (1e-3 * scale).view(-1, 1, 1)
    # By Cholesky: torch's batched linalg.solve may hang on a CPU where MKL has several threads.
    lower = torch.linalg.cholesky((spread + ridge).double())
    direction = torch.cholesky_solve((goal - centre.squeeze(1)).double().unsqueeze(2), lower).squeeze(2).to(goal)
    direction = direction / direction.norm(dim=1, keepdim=True).clamp_min(1e-20)
    highest = (inner @ direction.unsqueeze(2)).squeeze(2).amax(1)
    reached = (goal * direction).sum(1)
    return direction, reached - 0.01 * (reached - highest), reached > highest


def features_of(model: Classifier, images: Tensor) -> Features | None:
    """What the last step of a network works on: its capsules' poses, or what the last linear layer to run is given."""
    if has_capsules(model):
        network = model

        def poses(points: Tensor) -> Tensor:
            parse = network.parse(points, couplings=False)
            return torch.cat([p.flatten(1) for p in parse.poses[-2:]], dim=1)[:, -MOST:]

        return poses
    linear = [m for m in model.modules() if isinstance(m, nn.Linear)] if isinstance(model, nn.Module) else []

    def given(points: Tensor) -> list[Tensor]:
        caught: list[Tensor] = []
        hooks = [m.register_forward_pre_hook(lambda _, inputs: caught.append(inputs[0])) for m in linear]
        try:
            model(points)
        finally:
            for hook in hooks:
                hook.remove()
        return caught

    with torch.no_grad():
        if not given(images[:1]):
            return None
    return lambda points: given(points)[-1].flatten(1)[:, -MOST:]
