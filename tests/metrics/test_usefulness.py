"""rho and gamma: the closed forms against trying every class set, image by image."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import scores as loops

from gammacaps.errors import InputError
from gammacaps.metrics import chance_level, robust_usefulness, usefulness, worst_case


def drawn(seed, M, I, N):
    """Activities that know something of the labels, and subsets and supersets of them."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, N, M)
    active = random.random((M, I)) < random.random((N, I))[labels]
    surely, possibly = active & (random.random((M, I)) < 0.8), active | (random.random((M, I)) < 0.3)
    return [torch.from_numpy(a) for a in (active, surely, possibly, labels)]


def gamma_by_trying(surely, possibly, labels, e):
    """Definition 3.2 as it stands: the capsule may be active or not, as far as it can be made so."""
    N, total = len(e), 0
    for s, p, label in zip(surely, possibly, labels, strict=True):
        y = [N - 1 if n == label else -1 for n in range(N)]
        correlation = sum(a * b for a, b in zip(y, e, strict=True))
        total += min(correlation * f for f in {bool(s), bool(p)})
    return total / len(labels)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**16), st.integers(1, 25), st.integers(2, 6))
@pytest.mark.slow
def test_rho_is_the_best_of_all_class_sets(seed, M, N):
    active, _, _, labels = drawn(seed, M, 3, N)
    rho, sets = usefulness(active, labels, N)
    for i in range(3):
        assert rho[i].item() == pytest.approx(loops.rho(active[:, i].numpy(), labels.numpy(), N), abs=1e-12)
    # Its set has it, by the formula under attack without an attack.
    torch.testing.assert_close(worst_case(active, active, labels, sets).mean(0), rho, atol=1e-12, rtol=0)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**16), st.integers(1, 20), st.integers(2, 5))
def test_gamma_is_the_mean_of_the_worst_and_its_best_set_is_found(seed, M, N):
    _, surely, possibly, labels = drawn(seed, M, 2, N)
    by_set = {e: torch.tensor([e, e], dtype=torch.bool) for e in itertools.product((0, 1), repeat=N)}
    best, sets = robust_usefulness(surely, possibly, labels, N)
    for i in range(2):
        tried = {e: gamma_by_trying(surely[:, i], possibly[:, i], labels.tolist(), e) for e in by_set}
        for e, every in by_set.items():
            assert worst_case(surely, possibly, labels, every).mean(0)[i].item() == pytest.approx(tried[e], abs=1e-12)
        real = {e: value for e, value in tried.items() if 0 < sum(e) < N}
        assert best[i].item() == pytest.approx(max(real.values()), abs=1e-12)
        assert real[tuple(sets[i].int().tolist())] == pytest.approx(best[i].item(), abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**16))
def test_an_attack_never_helps(seed):
    active, surely, possibly, labels = drawn(seed, 40, 5, 4)
    rho, sets = usefulness(active, labels, 4)
    gamma = worst_case(surely, possibly, labels, sets).mean(0)
    best = robust_usefulness(surely, possibly, labels, 4).value
    assert (gamma <= rho + 1e-12).all()
    assert (best <= rho + 1e-12).all()
    assert ((gamma <= best + 1e-12) | (rho == 0)).all()


def test_values_worked_out_by_hand():
    labels = torch.arange(4).repeat_interleave(5)  # 20 images, 4 classes
    capsules = torch.stack((labels == 2, labels < 2, labels >= 0, labels < 0), dim=1)
    rho, sets = usefulness(capsules, labels, 4)
    # One class: 4 * 1/4 - 1/4; two classes: 2 (4 * 1/4 - 1/2); always, and never: 0, for no class.
    assert rho.tolist() == [0.75, 1.0, 0.0, 0.0]
    assert sets.int().tolist() == [[0, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    # All can be switched: nothing is left, and every other image counts against the set.
    gamma = worst_case(capsules & False, capsules | True, labels, sets).mean(0)
    assert gamma.tolist() == [-0.75, -1.0, 0.0, 0.0]


def test_luck_stays_under_the_chance_level():
    random = torch.Generator().manual_seed(3)
    labels = torch.arange(10).repeat(20)
    lucky = torch.rand(200, 200, generator=random) < 0.3
    knowing = (labels == 4).unsqueeze(1)
    beaten = usefulness(lucky, labels, 10).value > chance_level(lucky, labels, 10)
    assert 0.01 < beaten.double().mean() < 0.1  # 5% of those that know nothing
    assert usefulness(knowing, labels, 10).value > chance_level(knowing, labels, 10)
    assert torch.equal(chance_level(knowing, labels, 10, seed=1), chance_level(knowing, labels, 10, seed=1))


@pytest.mark.parametrize(
    ("active", "labels", "words"),
    [
        (torch.ones(2, 1).bool(), torch.tensor([0, 1, 1]), "not 3 labels for 2 images"),
        (torch.ones(0, 1).bool(), torch.tensor([], dtype=torch.int64), "at least 1"),
        (torch.ones(2, 1).bool(), torch.tensor([0, 3]), "labels from 0 to 2 of at least 2 classes"),
    ],
)
def test_what_can_t_be_measured_gets_one_sentence(active, labels, words):
    with pytest.raises(InputError, match=words):
        usefulness(active, labels, 3)
    with pytest.raises(InputError, match=words):
        worst_case(active, active, labels, torch.ones(1, 3).bool())
