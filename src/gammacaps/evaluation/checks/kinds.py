"""Kinds of attacks that the checks hold against one another, by what the table says of each."""

from collections.abc import Callable

from gammacaps.attacks.attack import Attack
from gammacaps.attacks.table import parts_of

AttackKind = Callable[[Attack], bool]


def one_step(attack: Attack) -> bool:
    return attack.climbs == "one step"


def many_steps(attack: Attack) -> bool:
    return attack.climbs == "many steps"


def white_box(attack: Attack) -> bool:
    """Whether it uses the gradient of the network itself."""
    return attack.sees == "gradients"


def black_box(attack: Attack) -> bool:
    """Whether it sees the network from outside alone, and is more than chance."""
    return attack.sees in ("scores", "another network")


def by_chance(attack: Attack) -> bool:
    return attack.sees == "chance"


def on_votes(attack: Attack) -> bool:
    return attack.sees == "votes"


def must_grow(attack: Attack) -> bool:
    """Whether an attack that breaks an image at one radius must break it at a larger one.

    Not FGSM, whose single step may overshoot, nor attacks on a surrogate, which climb another network, nor
    AutoAttack's parts after the first, which see only what others left.
    """
    later = attack.part_of is not None and parts_of(attack.part_of)[0] != attack.name
    return not later and not one_step(attack) and attack.sees not in ("votes", "another network", "nothing")
