"""The table of routing rules, each as its formula in plain PyTorch, differentiated by autograd.

This file is for reading, for checking the faster backends, and for adding a rule. Shapes use the letters of the whole
project: B batch, I lower capsules, J upper capsules, d lower size, D upper size.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from gammacaps.errors import InputError, check_choice, check_name_is_free
from gammacaps.imports import PLUGINS
from gammacaps.ops.vectors import TINY, length, squash

# votes (B I J D), parents' poses (B J D), the logits before (B I J) -> the next logits (B I J)
Logits: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]
# votes (B I J D), poses of the lower capsules (B I d) -> votes (B I J D)
BoundVotes: TypeAlias = Callable[[Tensor, Tensor], Tensor]

# What computes a formula faster, by the names that a rule has for it.
WRITTEN_OUT, NATIVE, TRITON = "written-out gradient", "compiled code", "Triton kernels"


@dataclass(frozen=True)
class RoutingRule:
    """A rule by which lower capsules choose their parents, for `add_rule`. Two functions make one:

        def cosine(votes, parents, before):  # (B, I, J, D), (B, J, D), (B, I, J) -> (B, I, J)
            return before + torch.cosine_similarity(votes, parents.unsqueeze(1), dim=-1)

        add_rule(RoutingRule("cosine", title="agreement of directions", logits=cosine))

    All else is `route_by_formula`'s, and the gradient autograd's. Logits are zero in the first iteration.
    """

    name: str
    """As `route` and `gammacaps train --routing` take it."""
    title: str
    """What it is called in words."""
    logits: Logits
    """The logits of the next iteration, whose softmax over the parents the couplings are."""
    bound_votes: BoundVotes | None = None
    """Changes the votes before they are routed; None leaves them as they are."""
    batch_logits: Logits | None = None
    """The logits under scale_over="batch"; None where they are the same."""
    backends: frozenset[str] = frozenset()
    """For the rules of gammacaps alone: which faster backends have it too. A user's rule is computed by its formula."""


OURS = ("sda", "rba")
_rules: dict[str, RoutingRule] = {}


def add_rule(rule: RoutingRule) -> None:
    """Adds a rule to the table, from which `route`, every network and the command line then know it.

    A rule of one's own may be added again under its name, and is then replaced; those of gammacaps stay.
    """
    if not isinstance(rule, RoutingRule):
        raise InputError(f"A rule is a RoutingRule(...), not {rule!r}.")
    if not isinstance(rule.name, str) or not re.fullmatch(r"[a-z][a-z0-9_-]*", rule.name):
        raise InputError(
            f"A rule's name has lower-case letters, digits, - and _, and starts with a letter: not {rule.name!r}."
        )
    check_name_is_free("a rule", rule.name, OURS)
    if rule.backends:
        raise InputError(f"No faster backend has the rule '{rule.name}' of yours: leave its `backends` empty.")
    _rules[rule.name] = rule


def rule_named(name: str) -> RoutingRule:
    """The rule of this name; an error lists those that there are."""
    check_choice("rule", name, _rules, also=f", or import the module that adds it, or name it in {PLUGINS}")
    return _rules[name]


def rule_names() -> tuple[str, ...]:
    """The names of all rules, ours first."""
    return tuple(_rules)


def route_by_formula(
    rule: RoutingRule,
    poses: Float[Tensor, "B I d"],
    weight: Float[Tensor, "I J d D"],
    bias: Float[Tensor, "J D"] | None,
    iterations: int,
    scale_over: str = "capsule",
) -> tuple[Float[Tensor, "B J D"], Float[Tensor, "B I J"]]:
    """Poses and couplings by a rule's formula: Algorithm 1 for SDA, procedure 1 of Sabour et al. (2017) for RBA."""
    logits = rule.logits if scale_over == "capsule" or rule.batch_logits is None else rule.batch_logits
    votes = votes_of(poses, weight)  # B I J D
    if rule.bound_votes is not None:
        votes = _shaped("bound_votes", rule, rule.bound_votes(votes, poses), votes.shape)
    b = votes.new_zeros(votes.shape[:3])  # B I J
    for k in range(iterations):
        c = b.softmax(dim=-1)  # B I J
        s = torch.einsum("bij,bije->bje", c, votes)  # B J D
        v = squash(s if bias is None else s + bias)  # B J D
        if k < iterations - 1:
            b = _shaped("logits", rule, logits(votes, v, b), votes.shape[:3])
    return v, c


def _shaped(what: str, rule: RoutingRule, tensor: Tensor, shape: torch.Size) -> Tensor:
    if tensor.shape != shape:
        raise InputError(
            f"The {what} of the rule '{rule.name}' must have the shape {tuple(shape)}, not {tuple(tensor.shape)}: "
            "fix the rule."
        )
    return tensor


def votes_of(poses: Float[Tensor, "B I d"], weight: Float[Tensor, "I J d D"]) -> Float[Tensor, "B I J D"]:
    """u_hat_{j|i} = W_ij v_i: what lower capsule i predicts for upper capsule j."""
    return torch.einsum("bid,ijde->bije", poses, weight)


# ---- scaled distance agreement: the paper's own ----

# Section 4.1 sets c_ip = 0.9 whenever d_p = d_o / 2.
PARENT_COUPLING = 0.9
PARENT_DISTANCE = 0.5


def scale(parents: int) -> float:
    """The scale t times the mean distance d_o, for J parents: (log(c_ip (J-1)) - log(1-c_ip)) / (d_p - 1).

    Equation 7 with distances measured in units of d_o, so that b_ij = scale * d_ij / d_o. Negative.
    """
    agreement = math.log(PARENT_COUPLING * (parents - 1)) - math.log(1 - PARENT_COUPLING)
    return agreement / (PARENT_DISTANCE - 1)


def bound(votes: Float[Tensor, "B I J D"], poses: Float[Tensor, "B I d"]) -> Float[Tensor, "B I J D"]:
    """Shortens each vote to at most the length of the capsule that casts it (Algorithm 1, line 3)."""
    most, size = length(poses).unsqueeze(-1), length(votes)  # B I 1, B I J
    return votes * torch.where(size > most, most / size.clamp_min(TINY), 1).unsqueeze(-1)


def scaled_distances(votes: Tensor, parents: Tensor, before: Tensor) -> Tensor:
    """The distances between votes and parents over their mean, by the scale; replaced, not accumulated."""
    distance = length(votes - parents.unsqueeze(1))  # B I J
    usual = distance.mean(dim=-1, keepdim=True)
    return scale(distance.shape[-1]) * distance / usual.clamp_min(TINY)


def batch_scaled_distances(votes: Tensor, parents: Tensor, before: Tensor) -> Tensor:
    """The same over their mean in the whole batch, as in the reference code."""
    distance = length(votes - parents.unsqueeze(1))  # B I J
    usual = distance.mean()
    return scale(distance.shape[-1]) * distance / usual.clamp_min(TINY)


# ---- routing by agreement (Sabour, Frosst and Hinton, 2017) ----


def agreements(votes: Tensor, parents: Tensor, before: Tensor) -> Tensor:
    """The dot products of votes and parents, summed over the iterations."""
    return before + torch.einsum("bije,bje->bij", votes, parents)


_rules["sda"] = RoutingRule(
    "sda",
    title="scaled-distance agreement",
    logits=scaled_distances,
    bound_votes=bound,
    batch_logits=batch_scaled_distances,
    backends=frozenset({WRITTEN_OUT, NATIVE, TRITON}),
)
_rules["rba"] = RoutingRule(
    "rba",
    title="routing by agreement",
    logits=agreements,
    backends=frozenset({WRITTEN_OUT, NATIVE, TRITON}),
)
assert tuple(_rules) == OURS


def is_sda(name: str) -> bool:
    """The flag by which the faster backends tell the two rules that they have apart; any other is refused."""
    if name not in OURS:
        raise InputError(f"Only sda and rba have code of their own, not the rule '{name}': leave its `backends` empty.")
    return name == "sda"
