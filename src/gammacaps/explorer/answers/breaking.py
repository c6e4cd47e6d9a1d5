"""The weakest attack that changes the answer to an image."""

from typing import Any

from gammacaps.explorer import questions
from gammacaps.explorer.answers.attacked import attacked_image
from gammacaps.explorer.answers.images import judged, scores_of, with_off
from gammacaps.explorer.jobs.job import Tick
from gammacaps.explorer.networks import Network

STEP, MOST = 0.005, 0.5  # radii are whole multiples of the first, up to the second
TRIES = 9  # attacks that halving needs


def breaking(asked: questions.BreakQuestion, network: Network, tick: Tick) -> dict[str, Any]:
    """The smallest eps at which the attack was seen to succeed, by halving; null where it never does.

    It holds at `held`, the next smaller one. A stronger attack may do with less. The radius `asked.eps` is tried
    first, so that what is found agrees with an attack at it.
    """
    image, model = questions.asked_image(asked, network), with_off(asked, network)
    before = judged(scores_of(model, image.unsqueeze(0))[0])["predicted"]
    passes = questions.live_attacks()[asked.attack].passes
    radii = radii_with(asked.eps)
    tried, best = 0, before

    def breaks(k: int) -> bool:
        nonlocal tried, best
        start = tried * passes
        tried += 1
        attacked = attacked_image(
            asked, radii[k], model, image, before, lambda done, of: tick(start + done, TRIES * passes)
        )
        answer = int(judged(scores_of(model, attacked.unsqueeze(0))[0])["predicted"])
        broken = answer != before if asked.target is None else answer == asked.target
        best = answer if broken else best
        return broken

    low, high = 0, radii.index(min(asked.eps, MOST))
    if not breaks(high):
        low, high = high, len(radii) - 1
        if low == high or not breaks(high):
            return {"attack": asked.attack, "most": MOST, "eps": None, "held": MOST, "predicted": [before, before]}
    while high - low > 1:
        middle = (low + high) // 2
        if breaks(middle):
            high = middle
        else:
            low = middle
    found = {"eps": radii[high], "held": radii[low], "predicted": [before, best]}
    return {"attack": asked.attack, "most": MOST, **found}


def radii_with(eps: float) -> list[float]:
    """The radii that are tried, from 0 on, with this one among them."""
    own = min(eps, MOST)
    steps = (round(k * STEP, 4) for k in range(round(MOST / STEP) + 1))
    return sorted([own, *(one for one in steps if abs(one - own) > STEP / 1000)])
