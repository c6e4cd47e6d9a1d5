"""The kernels for small layers against the reference in float64: on a GPU, or in Triton's interpreter."""

import os

import pytest
import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

from gammacaps.ops import rule_named
from gammacaps.ops.routing.kernels import whole
from gammacaps.ops.routing.rules import route_by_formula, votes_of

pytestmark = pytest.mark.slow  # in Triton's interpreter

ROUNDING = 2**-23
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

# (B, I, J, d, D), each with the reason that it is there; the fewer numbers a sample has, the more samples.
SIZES = [
    (2, 32, 10, 8, 16),  # the layer these kernels are for: J filled up, two lanes share a vote
    (8, 1, 2, 1, 3),  # one lower capsule, one entry, the fewest parents; D less than four
    (2, 33, 5, 3, 4),  # I just past a power of two, so that half of the senders are not there; d filled up
    (2, 7, 3, 2, 12),  # D filled up by a whole group of four; four lanes share a vote
    (2, 4, 40, 5, 6),  # more parents than a warp has lanes, and groups of four that D ends in the middle of
    (1, 2, 33, 4, 64),  # the longest votes: a thread holds all entries of a few
]


@pytest.fixture(autouse=True)
def _poisoned(monkeypatch):
    """Fresh memory holds NaN, so that an element nobody wrote shows."""
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *a, **k: empty(*a, **k).fill_(float("nan")))


def inputs(size):
    """Poses, weights and a bias in float64, as float32 can hold them; votes are longer and shorter than capsules."""
    B, I, J, d, D = size
    poses, weight, bias = torch.randn(B, I, d) * 0.6, torch.randn(I, J, d, D), torch.randn(J, D) * 0.1
    weight *= torch.linspace(0.3, 2.5, J)[:, None, None] / D**0.5
    return [t.to(DEVICE, torch.float64) for t in (poses, weight, bias)]


def random_grads(size, v=True, c=True):
    B, I, J, _, D = size
    grads = torch.randn(B, J, D).to(DEVICE, torch.float64), torch.randn(B, I, J).to(DEVICE, torch.float64)
    return [g if wanted else None for g, wanted in zip(grads, (v, c), strict=True)]


def by_reference(tensors, grads, rule, iterations, dtype):
    """v, c, and the gradient at the poses, through autograd in the given dtype."""
    poses, weight, bias = (None if t is None else t.detach().to(dtype) for t in tensors)
    poses.requires_grad_()
    plain = route_by_formula(rule_named(rule), poses, weight, bias, iterations)
    total = sum((out * grad.to(dtype)).sum() for out, grad in zip(plain, grads, strict=True) if grad is not None)
    # The couplings of one iteration do not depend on the poses.
    gradient = torch.autograd.grad(total, poses)[0] if total.requires_grad else torch.zeros_like(poses)
    return [t.detach().double() for t in (*plain, gradient)]


def by_kernels(tensors, grads, rule, iterations, dtype=torch.float32):
    """The same through the kernels."""
    poses, weight, bias = (None if t is None else t.to(dtype) for t in tensors)
    grad_v, grad_c = (None if g is None else g.float() for g in grads)
    v, c = whole.forward(poses, weight, bias, rule, iterations, True)
    gradient = whole.backward(grad_v, grad_c, poses, weight, bias, rule, iterations)
    assert all(t.dtype == torch.float32 for t in (v, c, gradient))
    return [t.double() for t in (v, c, gradient)]


def moved(tensors, grads, rule, iterations, exact):
    """How far the exact results move when the inputs do by one rounding: the largest of four tries."""
    tries = []
    for _ in range(4):
        near = [None if t is None else t * (1 + ROUNDING * torch.randn_like(t)) for t in tensors]
        results = by_reference(near, grads, rule, iterations, torch.float64)
        tries.append([(other - true).norm().item() for other, true in zip(results, exact, strict=True)])
    return [max(distances) for distances in zip(*tries, strict=True)]


def check(tensors, grads, rule, iterations):
    """Each result's error is at most twice that of plain float32 PyTorch."""
    exact = by_reference(tensors, grads, rule, iterations, torch.float64)
    plain = by_reference(tensors, grads, rule, iterations, torch.float32)
    ours = by_kernels(tensors, grads, rule, iterations)
    far = moved(tensors, grads, rule, iterations, exact)
    for name, mine, other, true, most in zip(("v", "c", "poses"), ours, plain, exact, far, strict=True):
        assert mine.shape == true.shape, name
        # Over a dozen numbers plain PyTorch's own error is luck, and may be next to nothing. So a result may also be a
        # few roundings off, or as far as rounded inputs would move it (votes near their parent magnify that), and one
        # rounding of numbers of size 1, where it is nothing but rounding.
        floor = 4 * ROUNDING * true.norm().item() + ROUNDING + most
        error, allowed = (mine - true).norm().item(), 2 * (other - true).norm().item() + floor
        assert error <= allowed, f"{name}: {error:.2e} > {allowed:.2e}"


# RBA shares all that depends on a size with SDA, and has two to show it.
@pytest.mark.parametrize(("size", "rule"), [(size, "sda") for size in SIZES] + [(size, "rba") for size in SIZES[::3]])
def test_results_and_gradients_are_the_reference_s_at_odd_sizes(size, rule):
    assert whole.fits(*size[1:])
    check(inputs(size), random_grads(size), rule, 3)


@pytest.mark.parametrize("iterations", [1, 4])  # 3 is above, 2 below
@pytest.mark.parametrize("rule", ["sda", "rba"])
def test_results_and_gradients_are_the_reference_s_for_any_number_of_iterations(iterations, rule):
    size = (4, 5, 7, 3, 5)
    check(inputs(size), random_grads(size), rule, iterations)


def test_some_votes_are_longer_and_some_shorter_than_their_capsules():
    for size in SIZES[0], SIZES[2]:
        poses, weight, _ = inputs(size)
        longer = votes_of(poses, weight).norm(dim=-1) > poses.norm(dim=-1, keepdim=True)
        assert longer.any()
        assert not longer.all()


@pytest.mark.parametrize("rule", ["sda", "rba"])
@pytest.mark.parametrize(("v", "c"), [(True, False), (False, True)])
def test_either_output_may_have_no_gradient(v, c, rule):
    size = (4, 3, 5, 2, 3)
    check(inputs(size), random_grads(size, v, c), rule, 2)


def test_couplings_of_one_iteration_do_not_depend_on_the_poses():
    size = (1, 3, 5, 2, 3)
    assert not by_kernels(inputs(size), random_grads(size, v=False), "sda", 1)[2].any()


def test_there_may_be_no_bias():
    size = (4, 3, 5, 2, 3)
    poses, weight, _ = inputs(size)
    check((poses, weight, None), random_grads(size), "sda", 2)


def test_tensors_may_have_any_strides():
    size = (1, 3, 5, 2, 4)
    poses, weight, bias = inputs(size)
    grads = random_grads(size)
    plain = by_kernels((poses, weight, bias), grads, "sda", 2)
    others = [
        weight.transpose(1, 2).contiguous().transpose(1, 2),  # as `RoutedCapsules` stores it
        weight.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0),  # the other way round
        torch.cat([weight, weight], dim=3)[..., :4],  # with gaps
    ]
    for other in others:
        assert other.stride() != weight.stride()
        ours = by_kernels((turned(poses), other, turned(bias)), [turned(g) for g in grads], "sda", 2)
        assert all(torch.equal(mine, same) for mine, same in zip(ours, plain, strict=True))


def turned(tensor):
    """The same numbers, the last axis outermost in memory."""
    return tensor.movedim(-1, 0).contiguous().movedim(0, -1)


@pytest.mark.parametrize("rule", ["sda", "rba"])
def test_zero_capsules_and_zero_votes(rule):
    size = (2, 3, 6, 2, 3)
    poses, weight, bias = inputs(size)
    poses[0, 1], poses[1], weight[2, 0] = 0, 0, 0
    check((poses, weight, bias), random_grads(size), rule, 2)
    for nothing in ((poses[:1] * 0, weight, bias * 0), (poses[:1], weight * 0, None)):
        assert all(torch.isfinite(t).all() for t in by_kernels(nothing, random_grads((1, *size[1:])), rule, 2))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_inputs_are_read_as_they_are_and_summed_in_float32(dtype):
    size = (1, 3, 5, 2, 4)
    tensors, grads = [t.to(dtype).double() for t in inputs(size)], random_grads(size)
    wide = by_kernels(tensors, grads, "sda", 2)
    half = by_kernels(tensors, grads, "sda", 2, dtype)
    assert all(torch.equal(mine, other) for mine, other in zip(half, wide, strict=True))


def test_couplings_come_back_only_if_asked_for():
    poses, weight, bias = (t.float() for t in inputs((2, 3, 5, 2, 3)))
    v, c = whole.forward(poses, weight, bias, "sda", 3, False)
    assert c is None
    assert torch.equal(v, whole.forward(poses, weight, bias, "sda", 3, True)[0])


def test_tiles_hold_all_votes_and_large_layers_do_not_fit():
    for _, I, J, _, D in SIZES:
        G, R, Jp, Q, W, warps = whole.tile_of(I, J, D)
        assert G * R >= I
        assert Jp >= J
        assert Q * W >= D
        assert G * R * Jp * Q * W <= 64 * 32 * warps  # entries in a thread, where the votes fill all threads
    assert whole.fits(64, 10, 8, 16)
    assert not whole.fits(65, 10, 8, 16)
    assert not whole.fits(32, 10, whole.MOST_ROWS + 1, 16)
