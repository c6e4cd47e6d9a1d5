import pytest
import torch

import gammacaps
from gammacaps.attacks import pgd, vote_surrogate
from gammacaps.errors import InputError

TINY = {"filters": 8, "primary_types": 2, "decoder": ()}


@pytest.mark.parametrize("routing", ["sda", "rba"])
def test_the_surrogate_s_capsules_are_the_mean_of_the_votes(routing):
    torch.manual_seed(0)
    model = gammacaps.create("small", hidden=(6,), routing=routing, **TINY).double().eval()
    images = torch.rand(3, 1, 28, 28, dtype=torch.float64)
    parse = vote_surrogate(model).parse(images)
    for couplings in parse.couplings:
        assert torch.allclose(couplings, torch.full_like(couplings, 1 / couplings.shape[2]))
    # The class layer by hand: votes, for SDA no longer than the capsule itself, their mean times I/J, bias, squash.
    lower, layer = parse.poses[1], model.routed[1]
    votes = torch.einsum("bid,ijde->bije", lower, layer.weight)
    if routing == "sda":
        longest = lower.norm(dim=-1)[:, :, None, None]
        votes = votes * (longest / votes.norm(dim=-1, keepdim=True)).clamp(max=1)
    s = votes.mean(1) * votes.shape[1] / votes.shape[2] + layer.bias
    square = s.square().sum(-1)
    assert torch.allclose(parse.scores, square / (1 + square), atol=1e-9)


def test_the_surrogate_shares_the_weights_and_leaves_the_network_alone():
    model = gammacaps.create("small", hidden=(6,), **TINY).eval()
    surrogate = vote_surrogate(model)
    assert surrogate.routed[0].weight is model.routed[0].weight
    assert (model.routed[0].iterations, surrogate.routed[0].iterations) == (3, 1)
    assert not surrogate.training


def test_an_attack_on_the_surrogate_breaks_the_real_network():
    torch.manual_seed(0)
    model = gammacaps.create("small", hidden=(6,), **TINY).eval()
    images = torch.rand(16, 1, 28, 28)
    with torch.no_grad():
        labels = model(images).argmax(1)
    attacked = pgd(vote_surrogate(model), images, labels, eps=0.3, step=0.05, steps=10)
    with torch.no_grad():
        broken = (model(attacked).argmax(1) != labels).float().mean()
        by_chance = (model((images + 0.3 * torch.randn_like(images).sign()).clamp(0, 1)).argmax(1) != labels).float()
    assert broken > by_chance.mean() + 0.3


def test_matrix_capsules_have_votes_too_and_a_cnn_has_not():
    matrix = gammacaps.create("matrix", filters=4, primary_types=2, types=(2, 2)).eval()
    assert vote_surrogate(matrix)(torch.rand(2, 1, 28, 28)).shape == (2, 10)
    with pytest.raises(InputError, match="A CNN has no votes"):
        vote_surrogate(gammacaps.create("cnn"))
