"""The kernels for many upper capsules against the reference in float64: on a GPU, or in Triton's interpreter."""

import os

import pytest
import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

from gammacaps.ops import rule_named, squash
from gammacaps.ops.routing.kernels import many
from gammacaps.ops.routing.rules import route_by_formula, votes_of

pytestmark = pytest.mark.slow  # in Triton's interpreter

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

# (B, I, J, d, D), each with the reason that it is there.
SIZES = [
    (3, 3, 19, 2, 17),  # J not a multiple of the 16 parents of a tile for this D, D past a power of two, B and I odd
    (1, 1, 5, 1, 3),  # one sample, one lower capsule, one entry; J smaller than a tile, D not a power of two
    (9, 2, 2, 3, 4),  # more samples than a tile of links holds, and not a multiple of it; the fewest parents
    (2, 2, 9, 17, 64),  # so many lower entries that votes and gradients take them in steps; the largest D
]


@pytest.fixture(autouse=True)
def _poisoned(monkeypatch):
    """Fresh memory holds NaN, so that an element nobody wrote shows; few programs, since the interpreter is slow."""
    empty, empty_like = torch.empty, torch.empty_like
    monkeypatch.setattr(torch, "empty", lambda *a, **k: empty(*a, **k).fill_(float("nan")))
    monkeypatch.setattr(torch, "empty_like", lambda *a, **k: empty_like(*a, **k).fill_(float("nan")))
    monkeypatch.setattr(many, "PROGRAMS", 1)


def inputs(size):
    """Poses, weights and a bias in float64, as float32 can hold them; votes are longer and shorter than capsules."""
    B, I, J, d, D = size
    poses, weight, bias = torch.randn(B, I, d) * 0.6, torch.randn(I, J, d, D), torch.randn(J, D) * 0.1
    weight *= torch.linspace(0.3, 2.5, J)[:, None, None] / D**0.5
    return [t.to(DEVICE, torch.float64) for t in (poses, weight, bias)]


def by_reference(tensors, grads, rule, iterations, dtype):
    """v, c, and the gradients at poses, weight and bias, through autograd in the given dtype."""
    tensors = [t.detach().to(dtype).requires_grad_() for t in tensors]
    plain = route_by_formula(rule_named(rule), *tensors, iterations)
    pairs = [(out, grad.to(dtype)) for out, grad in zip(plain, grads, strict=True) if grad is not None]
    total = sum((out * grad).sum() for out, grad in pairs)
    gradients = torch.autograd.grad(total, tensors, allow_unused=True)
    gradients = [torch.zeros_like(t) if g is None else g for g, t in zip(gradients, tensors, strict=True)]
    return [t.detach().double() for t in (*plain, *gradients)]


def by_kernels(tensors, grads, rule, iterations, dtype=torch.float32):
    """The same through the kernels."""
    poses, weight, bias = (t.to(dtype) for t in tensors)
    v, c, sums = many.forward(poses, weight, bias.float(), rule, iterations, True)
    grad_v, grad_c = (None if g is None else g.float() for g in grads)
    gradients = many.backward(grad_v, grad_c, poses, weight, sums, rule, iterations, True, True)
    assert all(t.dtype == torch.float32 for t in (v, c, sums, *gradients))
    torch.testing.assert_close(squash(sums[-1]), v)
    return [t.double() for t in (v, c, *gradients)]


def check(tensors, grads, rule, iterations):
    """Each result's error is at most twice that of plain float32 PyTorch."""
    exact = by_reference(tensors, grads, rule, iterations, torch.float64)
    plain = by_reference(tensors, grads, rule, iterations, torch.float32)
    ours = by_kernels(tensors, grads, rule, iterations)
    for name, mine, other, true in zip(("v", "c", "poses", "weight", "bias"), ours, plain, exact, strict=True):
        assert mine.shape == true.shape, name
        # A few roundings, since over the dozen numbers of a small result plain PyTorch's own error is luck (over many
        # seeds ours is the smaller one), and one of numbers of size 1, for results that are nothing but rounding.
        floor = 4 * 2**-23 * true.norm() + 2**-23
        error, allowed = (mine - true).norm().item(), 2 * (other - true).norm().item() + floor.item()
        assert error <= allowed, f"{name}: {error:.2e} > {allowed:.2e}"


def random_grads(size, v=True, c=True):
    B, I, J, _, D = size
    grads = torch.randn(B, J, D).to(DEVICE, torch.float64), torch.randn(B, I, J).to(DEVICE, torch.float64)
    return [g if wanted else None for g, wanted in zip(grads, (v, c), strict=True)]


# RBA shares all that depends on a size with SDA, and has one to show it.
@pytest.mark.parametrize(("size", "rule"), [(size, "sda") for size in SIZES] + [(SIZES[0], "rba")])
def test_results_and_gradients_are_the_reference_s_at_odd_sizes(size, rule):
    check(inputs(size), random_grads(size), rule, 2)


@pytest.mark.parametrize("iterations", [1, 3, 4])
@pytest.mark.parametrize("rule", ["sda", "rba"])
def test_results_and_gradients_are_the_reference_s_for_any_number_of_iterations(iterations, rule):
    size = (2, 2, 7, 3, 5)
    check(inputs(size), random_grads(size), rule, iterations)


def test_some_votes_are_longer_and_some_shorter_than_their_capsules():
    for size in (SIZES[0], SIZES[3]):
        poses, weight, _ = inputs(size)
        longer = votes_of(poses, weight).norm(dim=-1) > poses.norm(dim=-1, keepdim=True)
        assert longer.any()
        assert not longer.all()


@pytest.mark.parametrize(("v", "c"), [(True, False), (False, True)])
def test_either_output_may_have_no_gradient(v, c):
    size = (2, 2, 5, 2, 3)
    check(inputs(size), random_grads(size, v, c), "sda", 2)


def test_runs_of_lower_capsules_and_partial_sums_add_up(monkeypatch):
    size = (2, 4, 6, 2, 3)
    monkeypatch.setattr(many, "WORKSPACE", 3 * 4 * 2 * 6 * 2)  # three capsules for two numbers a link: runs of 3 and 1
    monkeypatch.setattr(many, "PROGRAMS", 2)  # each cut into two partial sums, of 2 and 1
    check(inputs(size), random_grads(size), "sda", 2)


def test_weight_and_coupling_gradient_may_have_any_strides_and_the_weight_s_are_kept():
    size = (2, 2, 5, 2, 4)
    poses, weight, bias = inputs(size)
    grads = random_grads(size)
    plain = by_kernels((poses, weight, bias), grads, "sda", 2)
    grads[1] = grads[1].permute(2, 1, 0).contiguous().permute(2, 1, 0)
    for axes in ((0, 2, 1, 3), (3, 2, 1, 0)):  # as `RoutedCapsules` stores it, and the other way round
        back = [axes.index(n) for n in range(4)]
        turned = weight.permute(axes).contiguous().permute(back)
        assert turned.stride() != weight.stride()
        ours = by_kernels((poses, turned, bias), grads, "sda", 2)
        assert ours[3].stride() == turned.stride()
        for mine, other in zip(ours, plain, strict=True):
            torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-6)  # compiled, sums may be in another order
    # A slice has gaps; its gradient need not have them.
    wide = torch.cat([weight, weight], dim=3)[..., :4]
    torch.testing.assert_close(by_kernels((poses, wide, bias), grads, "sda", 2)[3], plain[3], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rule", ["sda", "rba"])
def test_zero_capsules_and_zero_votes(rule):
    size = (2, 3, 6, 2, 3)
    poses, weight, bias = inputs(size)
    poses[0, 1], poses[1], weight[2, 0] = 0, 0, 0
    check((poses, weight, bias), random_grads(size), rule, 2)
    nothing = by_kernels((poses * 0, weight, bias * 0), random_grads(size), rule, 2)
    assert all(torch.isfinite(t).all() for t in nothing)


@pytest.mark.parametrize("noise", [1e-3, 0.0])
def test_votes_that_equal_their_parent(noise):
    # All votes for parent 0 are the vector that routing itself ends at, so that their distance from it is only noise.
    poses = torch.zeros(1, 10, 4, dtype=torch.float64, device=DEVICE)
    poses[..., 0] = 0.9
    weight = torch.randn(10, 3, 4, 4).to(DEVICE, torch.float64)
    weight[:, 0] *= noise
    weight[:, 0, 0, 1] += 0.6784  # s = 10/3 0.9 w, and squash(s) = 0.9 w here
    tensors, grads = (poses, weight, torch.zeros(3, 4, device=DEVICE)), random_grads((1, 10, 3, 4, 4))
    exact = by_reference(tensors, grads, "sda", 2, torch.float64)
    for mine, true in zip(by_kernels(tensors, grads, "sda", 2), exact, strict=True):
        # As for the plain backend: under 100 eps of distance the gradient along it is left out.
        assert (mine - true).norm() < 0.02 * true.norm() + 1e-4


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_inputs_are_read_as_they_are_and_summed_in_float32(dtype):
    size = (2, 2, 5, 2, 3)
    tensors, grads = [t.to(dtype).double() for t in inputs(size)], random_grads(size)
    wide = by_kernels(tensors, grads, "sda", 2)
    half = by_kernels(tensors, grads, "sda", 2, dtype)
    for mine, other in zip(half, wide, strict=True):
        assert torch.equal(mine, other)


def test_only_what_is_wanted_comes_back():
    poses, weight, _ = (t.float() for t in inputs((2, 2, 4, 2, 3)))
    v, c, sums = many.forward(poses, weight, None, "sda", 2, False)
    assert c is None
    assert torch.equal(v, many.forward(poses, weight, None, "sda", 2, True)[0])
    wanted = many.backward(v, None, poses, weight, sums, "sda", 2, True, True)
    for want_poses, want_weight in ((True, False), (False, True), (False, False)):
        got = many.backward(v, None, poses, weight, sums, "sda", 2, want_poses, want_weight)
        for mine, other, want in zip(got, wanted, (want_poses, want_weight, True), strict=True):
            assert torch.equal(mine, other) if want else mine is None


def test_the_workspace_stays_small(monkeypatch):
    size = B, I, J, _, D = 2, 6, 8, 2, 4
    monkeypatch.setattr(many, "WORKSPACE", 4 * B * J * 4)
    largest = 0

    def watched(make):
        def made(*a, **k):
            nonlocal largest
            tensor = make(*a, **k)
            largest = max(largest, tensor.numel())
            return tensor

        return made

    for name in ("empty", "zeros", "empty_like", "zeros_like"):
        monkeypatch.setattr(torch, name, watched(getattr(torch, name)))
    poses, weight, _ = (t.float() for t in inputs(size))
    _, _, sums = many.forward(poses, weight, None, "sda", 2, False)
    many.backward(sums[0], None, poses, weight, sums, "sda", 2, True, False)
    # Two sums s, the poses of 16 samples, or the numbers of four capsules' links: never all votes.
    assert largest <= max(2 * B * J * D, I * 2 * 16, 4 * B * J) < B * I * J * D
