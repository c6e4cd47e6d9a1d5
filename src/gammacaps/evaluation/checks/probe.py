"""Checks that probe a classifier itself: its gradients, its repeatability, and where attacks must win."""

from typing import Any

import torch
from torch import Tensor

from gammacaps.attacks import LOSSES, frozen, pgd
from gammacaps.attacks.balls import BALLS
from gammacaps.attacks.gradient import Classifier
from gammacaps.errors import InputError
from gammacaps.evaluation.checks.finding import Finding, graded, missed, percent
from gammacaps.evaluation.interval import wilson
from gammacaps.models import Model
from gammacaps.radius import radius


def gradients(
    model: Classifier, images: Tensor, labels: Tensor, eps: float, seed: int, norm: str = "linf"
) -> list[Finding]:
    """For each loss of an attack, the share of images whose gradient is zero, infinite or not a number.

    Looked at near the images, where an attack starts, and only where the answer is right: elsewhere it has no work.
    """
    generator = torch.Generator(images.device).manual_seed(seed)
    points = BALLS[norm](images, eps).start(generator).detach().requires_grad_()
    checks = []
    with frozen(model), torch.enable_grad():
        scores = model(points)
        right = scores.argmax(dim=1) == labels
        for name, loss in LOSSES.items():
            if not scores.requires_grad:
                checks.append(Finding(f"gradient-{name}", "fail", 1.0, "The network gives no gradient at all."))
                continue
            if name == "ce-log" and (scores < 0).any():
                checks.append(Finding("gradient-ce-log", "skip", None, "The scores are no lengths."))
                continue
            try:
                value = loss(scores, labels).sum()
            except InputError as error:
                checks.append(Finding(f"gradient-{name}", "skip", None, f"{str(error).rstrip('.')}."))
                continue
            (gradient,) = torch.autograd.grad(value, points, retain_graph=True, materialize_grads=True)
            flat = gradient.flatten(1)[right]
            if len(flat) == 0:
                return []
            broken = (~flat.isfinite()).any(1).float().mean().item()
            zero = (flat == 0).all(1).float().mean().item()
            if broken > 0:
                words = (
                    f"{percent(broken)} of the gradients of the loss {name} hold a NaN or infinity: PGD can't follow"
                )
                checks.append(Finding(f"gradient-{name}", "fail", broken, f"{words}."))
            else:
                verdict = graded(zero, 0.01, 0.1)
                end = "" if verdict == "pass" else ": PGD is blind there, and its accuracy too high"
                words = f"{percent(zero)} of the gradients of the loss {name} are zero{end}"
                checks.append(Finding(f"gradient-{name}", verdict, zero, f"{words}."))
    return checks


def learned(correct: Tensor, labels: Tensor) -> Finding:
    """Clean accuracy must be above the share of the most frequent class, or there is nothing to attack."""
    right, guessed = correct.float().mean().item(), labels.bincount().max().item() / len(labels)
    if wilson(int(correct.sum()), len(correct))[0] > guessed:
        return Finding("learned", "pass", right, "The network is better than guessing.")
    words = f"{percent(right)} are right, and always naming one class gives {percent(guessed)}"
    return Finding("learned", "warn", right, f"{words}, within what chance allows: too little for an attack to break.")


def asked_again(model: Classifier, images: Tensor) -> list[Finding]:
    """`repeats`, and `neighbours` where scores stay the same: else any change may be the model's own chance."""
    again = repeats(model, images)
    if again.verdict == "pass":
        return [again, neighbours(model, images)]
    words = "Whether an image's scores change with the images beside it could not be judged"
    return [again, Finding("neighbours", "skip", None, f"{words}, since they change each time.")]


@torch.no_grad()
def repeats(model: Classifier, images: Tensor) -> Finding:
    """The same images must get the same scores again."""
    number = _largest_change(model(images), model(images))
    if number <= 1e-5:
        return Finding("repeats", "pass", number, "The same image gets the same scores each time.")
    words = f"The same image gets scores that differ by up to {number:.2g}: answers are random"
    return Finding("repeats", "fail", number, f"{words}, and an attack must average over them.")


@torch.no_grad()
def neighbours(model: Classifier, images: Tensor) -> Finding:
    """An image's scores must not change with the images beside it in its batch.

    But for rounding, a thousandth of the largest score: a GPU rounds products of a CNN by the size of the batch.
    """
    together = model(images)
    noise = torch.rand(images.shape, generator=torch.Generator().manual_seed(0)).to(images)
    half = len(images) // 2
    mixed = model(torch.cat((images[:half], noise[half:])))[:half] if half else together[:0]
    alone = torch.cat([model(image) for image in images[:16].split(1)])
    number = max(_largest_change(together[:half], mixed), _largest_change(together[:16], alone))
    if number <= 1e-3 * max(1.0, together.abs().max().item()):
        return Finding("neighbours", "pass", number, "An image's scores do not depend on the images beside it.")
    words = f"An image's scores change by up to {number:.2g} with the images beside it in the batch"
    option = model.neighbours_option if isinstance(model, Model) and model.depends_on_neighbours else None
    end = "" if option is None else f" (by {option[0]}; use a network with {option[1]})"
    return Finding("neighbours", "fail", number, f"{words}: no figure for one image holds{end}.")


def bound(model: Classifier, images: Tensor, labels: Tensor, seed: int) -> Finding:
    """At eps 0.5 all images can become the same grey one, so no more than the most frequent class can be kept."""
    attainable = labels.bincount().max().item() / len(labels)
    generator = torch.Generator(images.device).manual_seed(seed)
    attacked = pgd(model, images, labels, eps=0.5, step=0.05, steps=40, until_broken=True, generator=generator)
    with torch.no_grad():
        kept = (model(attacked).argmax(dim=1) == labels).float().mean().item()
    excess = max(0.0, kept - attainable)
    verdict = graded(excess, 0.02, 0.1)
    words = f"At eps 0.5 PGD leaves {percent(kept)}, where {percent(attainable)} is all that can be kept"
    end = "" if verdict == "pass" else ": the attack falls short of what is surely possible"
    return Finding("attainable-at-0.5", verdict, kept, f"{words}{end}.")


def longer(
    model: Classifier,
    images: Tensor,
    labels: Tensor,
    eps: float,
    seed: int,
    drawn_from: int,
    norm: str = "linf",
) -> Finding:
    """Images that stood under all attacks, attacked for longer: of all they were drawn from, few may still fall."""
    if len(images) == 0:
        return Finding(
            "longer-attacks", "pass", 0.0, "No image stood, so that no longer attack could lower the figure."
        )
    generator = torch.Generator(images.device).manual_seed(seed + 1)
    options: dict[str, Any] = {"steps": 300, "step": eps / 20, "until_broken": True, "generator": generator}
    attacked = pgd(model, images, labels, eps=eps, norm=norm, **options)
    with torch.no_grad():
        fell = int((model(attacked).argmax(dim=1) != labels).sum())
    words = f"Of {len(images)} images that stood at eps {radius(eps)}, {fell} fell to 300 more steps from a new start"
    verdict = missed(fell, drawn_from)
    end = "" if verdict == "pass" else ": the worst case above is still too high"
    return Finding("longer-attacks", verdict, fell / max(1, drawn_from), f"{words}{end}.")


def _largest_change(first: Tensor, second: Tensor) -> float:
    return (first - second).abs().nan_to_num(torch.inf).max().item() if len(first) else 0.0
