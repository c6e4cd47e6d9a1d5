"""What the paper says, held against the runs' figures: each claim held, did not hold, or was not run yet."""

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

CLAIMS: tuple[Callable[[Found], Claim], ...] = (
    near_paper,
    tree,
    follows_input,
    rivals_do_not_follow,
    similar_accuracy,
    em_less_accurate,
    more_robust,
    reaches_paper,
    fgsm_weaker,
    strong_attacks,
    above_cnn,
    exclusive,
    shirt,
    sneakers,
    careful,
    certain,
    hidden_classes,
    concentrated,
)


def claims(found: Found) -> list[Claim]:
    """All that the page opens with, in the paper's order."""
    return [check(found) for check in CLAIMS]
