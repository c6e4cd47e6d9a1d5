"""What the paper says, held against the runs' figures: each claim held, did not hold, or can't be told yet.

A claim is one object of its module (`claim.py` says what is in it) and stands in that module's `CLAIMS`.
"""

from gammacaps.paper.claims import attacked, inside, structure
from gammacaps.paper.claims.claim import Claim, Verdict
from gammacaps.paper.readings import Records

CLAIMS: tuple[Claim, ...] = (*structure.CLAIMS, *attacked.CLAIMS, *inside.CLAIMS)  # in the paper's order


def judge_claims(records: Records) -> dict[Claim, Verdict]:
    """All that the page opens with."""
    return {claim: claim.judged(records) for claim in CLAIMS}
