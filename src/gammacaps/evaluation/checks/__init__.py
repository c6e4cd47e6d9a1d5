"""Whether robustness figures can be believed: each check has a verdict, a number and a sentence of meaning."""

import torch
from torch import Tensor

from gammacaps.attacks.gradient import Classifier
from gammacaps.data import StoredImages
from gammacaps.evaluation.checks.check import Check, Verdict
from gammacaps.evaluation.checks.compare import compare
from gammacaps.evaluation.checks.planted import planted
from gammacaps.evaluation.checks.probe import bound, gradients, learned, longer, neighbours, repeats
from gammacaps.evaluation.measure import Measured, Report

__all__ = ["Check", "Verdict", "all_checks", "verdict"]

# Images that a probe looks at, so that the checks take a small part of an evaluation's time.
PROBED = 100
PLANTED = 32


def all_checks(
    model: Classifier,
    images: Tensor | StoredImages,
    labels: Tensor,
    correct: Tensor,
    found: list[Measured],
    curve: list[Measured],
    *,
    seed: int = 0,
    report: Report = lambda *_: None,
) -> list[Check]:
    """All checks, the probes at the largest radius below 0.5 (or at 0.1 where there is none)."""
    radii = [m.spec.eps for m in found if 0 < m.spec.eps < 0.5]
    eps = max(radii, default=0.1)
    some, named = images[:: max(1, len(images) // PROBED)][:PROBED], labels[:: max(1, len(labels) // PROBED)][:PROBED]
    checks = [learned(correct, labels), *compare(found, curve)]
    here = [m for m in found if m.spec.eps == eps]
    if here:
        done = torch.stack([m.done for m in here]).all(0)
        stood = correct & ~torch.stack([m.broken for m in here]).any(0) & done
        index = stood.nonzero().squeeze(1)[:PROBED]
        drawn_from = round(int(done.sum()) * len(index) / max(1, int(stood.sum())))
        report("check of longer attacks", 0, len(index))
        checks.append(longer(model, images[index], labels[index], eps, seed, drawn_from))
    report("checks of gradients", 0, len(some))
    checks.append(bound(model, some, named, seed))
    checks += gradients(model, some, named, eps, seed)
    checks += [repeats(model, some), neighbours(model, some)]
    report("check by planted examples", 0, len(some[:PLANTED]))
    checks.append(planted(model, some[:PLANTED], eps, seed))
    return checks


def verdict(checks: list[Check]) -> Verdict:
    """The worst of them."""
    found = {check.verdict for check in checks}
    return "fail" if "fail" in found else "warn" if "warn" in found else "pass"
