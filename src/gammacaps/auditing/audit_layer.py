"""The audit of one layer: each capsule attacked in each image, as far as a verdict depends on it."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from gammacaps.attacks.capsules import push
from gammacaps.auditing.class_attack import ClassAttack
from gammacaps.auditing.config import AuditConfig
from gammacaps.auditing.held_out import holds
from gammacaps.auditing.kinds import GAMMA, View, counts, judge, row, view
from gammacaps.auditing.tries import FLAT, tries_of
from gammacaps.models import CapsuleModel
from gammacaps.progress import OnProgress


def audit_layer(
    model: CapsuleModel,
    layer: str,
    images: Float[Tensor, "M C H W"],
    labels: Int[Tensor, "M"],
    lengths: Float[Tensor, "M n"],
    eps: Sequence[float],
    config: AuditConfig,
    progress: OnProgress,
    class_attack: ClassAttack,
) -> dict[str, Any]:
    """The kind of each capsule at every eps (rising) and tau, and the figures behind it.

    A change that was found within one radius is allowed in all larger ones, so gamma never rises with eps; nor does it
    with further tries of the attack, of which the furthest change counts.
    """
    assert config.batch is not None
    index, count, batch = model.layers.index(layer), lengths.shape[1], config.batch
    random = np.random.default_rng((config.seed, index))
    drawn = np.arange(count)
    if count > config.capsules:
        drawn = np.sort(random.choice(count, config.capsules, replace=False))
    capsules = torch.from_numpy(drawn).to(images.device)
    # One start for each image, so that it does not depend on the batch.
    starts = {"random": torch.from_numpy(2 * random.random(images.shape, dtype=np.float32) - 1).to(images)}
    if config.strong:
        starts["another random"] = torch.from_numpy(2 * random.random(images.shape, dtype=np.float32) - 1).to(images)
        starts["the image itself"] = torch.zeros_like(images)
    lengths = lengths[:, capsules]  # M I
    taus = sorted({config.tau, *config.taus})
    views = {tau: view(lengths, labels, model.classes, tau, config.seed) for tau in taus}
    main = views[config.tau]

    # The least and the most that any change so far made of each capsule; leaving the image alone is one.
    extremes = {False: lengths.clone(), True: lengths.clone()}
    verdicts, passes = [], 0
    tries = tries_of(config)
    attacked, crossed = [0] * len(tries), [0] * len(tries)
    for radius in eps:
        looked_at = list(views.values()) if radius == eps[-1] else [main]
        if config.strong and radius > 0:
            starts["the class attack's end"] = ((class_attack.at(radius) - images) / radius).clamp(-1, 1)
        for (upward, extreme), (t, one) in itertools.product(extremes.items(), enumerate(tries)):
            if one.start not in starts:  # within a radius of 0 there is nothing but the image
                continue
            title = f"{layer}, eps {radius:g}, {'lengthening' if upward else 'shortening'}"
            title += f", try {t + 1} of {len(tries)}" if config.strong else ""
            m, i, until = pairs(looked_at, extreme, upward)
            if one.loss == "log-odds":  # elsewhere it goes the length's way
                flat = (lengths[m, i] > FLAT) & (not upward)
                m, i, until = m[flat], i[flat], until[flat]
            for first in range(0, len(m), batch):
                part = slice(first, first + batch)
                reached, spent = push(
                    model,
                    index,
                    images[m[part]],
                    capsules[i[part]],
                    torch.full_like(m[part], upward, dtype=torch.bool),
                    until[part],
                    starts[one.start][m[part]],
                    eps=radius,
                    step=config.attack_step,
                    steps=one.steps,
                    loss=one.loss,
                )
                before = extreme[m[part], i[part]]
                extreme[m[part], i[part]] = before.maximum(reached) if upward else before.minimum(reached)
                passes += spent
                progress(title, min(first + batch, len(m)), len(m))
            attacked[t] += len(m)
            crossed[t] += int(((extreme[m, i] > until) == upward).sum())
        verdicts.append(judge(main, extremes[False], extremes[True]))

    over_tau = {tau: judge(seen, extremes[False], extremes[True]) for tau, seen in views.items()}
    clean = judge(main, lengths, lengths)
    held_out = holds(main, extremes[False], extremes[True])
    return {
        "layer": layer,
        "of": count,
        "counts": counts(verdicts[-1]),
        "capsules": [
            {
                "capsule": int(number),
                **row(main, verdicts, i),
                "gamma_capsule_at": [tau for tau, verdict in over_tau.items() if verdict.kinds[i] == GAMMA],
                "held_out": held_out[i],
            }
            for i, number in enumerate(drawn)
        ],
        "over_eps": [{"eps": e, **counts(v)} for e, v in zip((0.0, *eps), (clean, *verdicts), strict=True)],
        "over_tau": [{"tau": tau, **counts(verdict)} for tau, verdict in over_tau.items()],
        "passes": passes,
        "tries": [
            {"start": one.start, "loss": one.loss, "steps": one.steps, "pairs": attacked[t], "crossed": crossed[t]}
            for t, one in enumerate(tries)
        ],
    }


def pairs(views: Sequence[View], extreme: Float[Tensor, "M I"], upward: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The images and capsules to attack in one direction, and the length to reach: that of the furthest threshold.

    A pair is attacked for a threshold if the capsule is useful there, and lies on the side to be pushed off.
    """
    until = torch.full_like(extreme, -torch.inf if upward else torch.inf)
    for seen in views:
        here = seen.useful & ((extreme <= seen.tau) if upward else (extreme > seen.tau))
        further = until.clamp_min(seen.tau) if upward else until.clamp_max(seen.tau)
        until = torch.where(here, further, until)
    m, i = until.isfinite().nonzero(as_tuple=True)
    return m, i, until[m, i]
