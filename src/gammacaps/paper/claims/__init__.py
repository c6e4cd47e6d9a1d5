"""What the paper says, held against the runs' figures: each claim held, did not hold, or can't be told yet."""

from collections.abc import Callable

from gammacaps.paper.claims.attacked import (
    above_cnn,
    exclusive,
    fgsm_weaker,
    more_robust,
    reaches_paper,
    strong_attacks,
)
from gammacaps.paper.claims.judge import Claim
from gammacaps.paper.claims.looks import careful, certain, concentrated, hidden_classes, shirt, sneakers
from gammacaps.paper.claims.structure import (
    em_less_accurate,
    follows_input,
    near_paper,
    rivals_do_not_follow,
    similar_accuracy,
    tree,
)
from gammacaps.paper.parts.cells import Found

EXCLUSIVE = "Robust by gamma-capsules alone"
CLAIMS: dict[str, Callable[[Found], Claim]] = {
    "T near the paper's": near_paper,
    "T of SDA above EM's": tree,
    "SDA's capsules follow the input": follows_input,
    "RBA's and EM's capsules do not follow it": rivals_do_not_follow,
    "RBA and SDA equally accurate": similar_accuracy,
    "EM less accurate": em_less_accurate,
    "More robust than rivals trained without attack": more_robust,
    "As robust as the paper's": reaches_paper,
    "FGSM weaker than PGD": fgsm_weaker,
    "20% under strong attacks": strong_attacks,
    "Above a CNN under strong attacks": above_cnn,
    EXCLUSIVE: exclusive,
    "Shirts learned late": shirt,
    "Sneaker for none of the above": sneakers,
    "SDA less certain than RBA": careful,
    "RBA certain of every class": certain,
    "Hidden capsules that can be named": hidden_classes,
    "Filters concentrated by attack": concentrated,
}


def claims(found: Found) -> dict[str, Claim]:
    """All that the page opens with, in the paper's order, by a title."""
    return {title: check(found) for title, check in CLAIMS.items()}
