"""The attacks that an audit makes on each pair of an image and a capsule, one after the other."""

from dataclasses import dataclass
from typing import Literal

from gammacaps.attacks.capsules import CapsuleLoss
from gammacaps.auditing.config import AuditConfig

Start = Literal["random", "another random", "the image itself", "the class attack's end"]

MORE_STEPS = 4  # times those of the usual attack, in a strong audit
# So near to 1 float32 can't tell a length from its neighbours, and its gradient is lost in rounding.
FLAT = 0.999


@dataclass(frozen=True)
class Try:
    """One attack: where it starts in the ball, how many steps it takes, and along the gradient of what."""

    start: Start
    steps: int
    loss: CapsuleLoss = "length"


def tries_of(config: AuditConfig) -> list[Try]:
    """The usual attack, and in a strong audit more after it: what any of them finds, counts."""
    usual, more = Try("random", config.attack_steps), MORE_STEPS * config.attack_steps
    if not config.strong:
        return [usual]
    starts: tuple[Start, ...] = ("random", "another random", "the image itself", "the class attack's end")
    return [usual, *(Try(start, more) for start in starts), Try("random", more, "log-odds")]
