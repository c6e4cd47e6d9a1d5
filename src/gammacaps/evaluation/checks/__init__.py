"""Whether robustness figures can be believed: each check has a verdict, a number and a sentence of meaning."""

import torch
from torch import Tensor

from gammacaps.attacks.gradient import Classifier
from gammacaps.data import StoredImages
from gammacaps.evaluation.checks.compare import compare
from gammacaps.evaluation.checks.finding import Finding
from gammacaps.evaluation.checks.planted import planted
from gammacaps.evaluation.checks.probe import asked_again, bound, gradients, learned, longer
from gammacaps.evaluation.class_turns import drawn_in_turns
from gammacaps.evaluation.measure import Measured
from gammacaps.names import VerdictWord
from gammacaps.progress import OnProgress

__all__ = ["Finding", "all_checks", "probed_radius", "verdict"]

# Images that a probe looks at, so that the checks take a small part of an evaluation's time.
PROBED = 100
PLANTED = 32
ENOUGH = 0.1  # of the images must stand at the radius that is probed


def all_checks(
    model: Classifier,
    images: Tensor | StoredImages,
    labels: Tensor,
    correct: Tensor,
    outcomes: list[Measured],
    curve: list[Measured],
    *,
    seed: int = 0,
    progress: OnProgress = lambda *_: None,
) -> list[Finding]:
    """All checks, the probes on images of all classes, at `probed_radius`."""
    eps, norm = probed_radius(correct, outcomes), outcomes[0].spec.norm if outcomes else "linf"
    drawn = drawn_in_turns(labels.cpu(), seed)  # stored images are read by places on the CPU
    some, named = images[drawn[:PROBED]], labels[drawn[:PROBED]]
    checks = [learned(correct, labels), *compare(outcomes, curve)]
    if any(m.spec.eps == eps for m in outcomes):
        stood, done = _stood(correct, outcomes, eps)
        index = drawn[stood[drawn]][:PROBED]
        drawn_from = round(int(done.sum()) * len(index) / max(1, int(stood.sum())))
        progress("check of longer attacks", 0, len(index))
        checks.append(longer(model, images[index], labels[index], eps, seed, drawn_from, norm))
    progress("checks of gradients", 0, len(some))
    if norm == "linf":  # in which a radius is known that makes all images the same
        checks.append(bound(model, some, named, seed))
    checks += gradients(model, some, named, eps, seed, norm)
    checks += asked_again(model, some)
    progress("check by planted examples", 0, len(some[:PLANTED]))
    apgd = any(m.spec.attack == "apgd-ce" and m.spec.eps == eps for m in outcomes)
    checks.append(planted(model, some[:PLANTED], eps, seed, apgd=apgd, norm=norm))
    return checks


def probed_radius(correct: Tensor, outcomes: list[Measured]) -> float:
    """The largest radius (in L-inf below 0.5) at which a tenth of the images stand: else there is nothing to doubt.

    Where there is none, the smallest; without any attack 0.1.
    """
    radii = sorted({m.spec.eps for m in outcomes if 0 < m.spec.eps < (0.5 if m.spec.norm == "linf" else torch.inf)})
    standing = {eps: _stood(correct, outcomes, eps) for eps in radii}
    kept = [eps for eps, (stood, done) in standing.items() if done.any() and stood.sum() >= ENOUGH * done.sum()]
    return max(kept, default=radii[0] if radii else 0.1)


def _stood(correct: Tensor, outcomes: list[Measured], eps: float) -> tuple[Tensor, Tensor]:
    """The images that stood under all attacks at a radius, and those that all attacks came to."""
    here = [m for m in outcomes if m.spec.eps == eps]
    done = torch.stack([m.done for m in here]).all(0)
    return correct & ~torch.stack([m.broken for m in here]).any(0) & done, done


def verdict(checks: list[Finding]) -> VerdictWord:
    """The worst of them."""
    verdicts = {check.verdict for check in checks}
    return "fail" if "fail" in verdicts else "warn" if "warn" in verdicts else "pass"
