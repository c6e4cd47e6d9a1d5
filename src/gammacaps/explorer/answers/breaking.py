"""The weakest attack that changes the answer to an image."""

from typing import Any

from gammacaps.explorer import questions
from gammacaps.explorer.answers.attacked import attacked_image
from gammacaps.explorer.answers.images import judged, scores_of, with_off
from gammacaps.explorer.jobs.job import Tick
from gammacaps.explorer.networks import Network

STEP = 0.005  # radii are whole multiples of it
MOST = 100  # of them
TRIES = 8  # attacks that halving needs


def breaking(asked: questions.BreakQuestion, network: Network, tick: Tick) -> dict[str, Any]:
    """The smallest eps at which the attack was seen to succeed, by halving; null where it never does.

    It holds at one step below. A stronger attack may do with less.
    """
    image, model = questions.asked_image(asked, network), with_off(asked, network)
    before = judged(scores_of(model, image.unsqueeze(0))[0])["predicted"]
    passes = questions.live_attacks()[asked.attack].passes
    tried = 0

    def after(k: int) -> int:
        nonlocal tried
        start = tried * passes
        tried += 1
        attacked = attacked_image(
            asked, k * STEP, model, image, before, lambda done, of: tick(start + done, TRIES * passes)
        )
        return int(judged(scores_of(model, attacked.unsqueeze(0))[0])["predicted"])

    def broken(answer: int) -> bool:
        return answer != before if asked.target is None else answer == asked.target

    low, high, best = 0, MOST, after(MOST)
    found = {"attack": asked.attack, "most": MOST * STEP, "step": STEP}
    if not broken(best):
        return {**found, "eps": None, "predicted": [before, before]}
    while high - low > 1:
        middle = (low + high) // 2
        answer = after(middle)
        if broken(answer):
            high, best = middle, answer
        else:
            low = middle
    return {**found, "eps": round(high * STEP, 4), "predicted": [before, best]}
