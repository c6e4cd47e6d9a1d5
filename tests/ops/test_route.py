import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import routing

from gammacaps.errors import InputError
from gammacaps.ops import length, route, rule_named, squash
from gammacaps.ops.routing.rules import route_by_formula

# (B, I, J, d, D), each with the reason that it is there.
SIZES = [
    (1, 1, 2, 1, 1),  # the least of everything
    (2, 7, 3, 5, 4),  # nothing a power of two, d > D
    (3, 5, 10, 3, 7),  # more parents than children, D > d
    (5, 13, 2, 4, 9),  # two parents, where the scale's log(J - 1) is 0
]
# Of these a gradient is checked entry by entry, of the others along random directions.
WHOLE = (2, 3, 3, 2, 4)
RULES = [("sda", "capsule"), ("sda", "batch"), ("rba", "capsule")]


def inputs(size, *, zeros=True, dtype=torch.float64):
    """Poses (some of them zero), weights (some of them zero) and a bias."""
    B, I, J, d, D = size
    poses = torch.randn(B, I, d, dtype=torch.float64) * 0.6
    weight = torch.randn(I, J, d, D, dtype=torch.float64) * 0.5
    bias = torch.randn(J, D, dtype=torch.float64) * 0.1
    if zeros:
        poses[0, I // 2] = 0
        weight[I - 1, 0] = 0
    return poses.to(dtype), weight.to(dtype), bias.to(dtype)


def by_loops(poses, weight, bias, rule, iterations, scale_over):
    poses, weight = poses.double().numpy(), weight.double().numpy()
    bias = None if bias is None else bias.double().numpy()
    if rule == "sda":
        return routing.sda(poses, weight, bias, iterations, scale_over)
    return routing.rba(poses, weight, bias, iterations)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("rule", "scale_over"), RULES)
@pytest.mark.parametrize("iterations", [1, 2, 3, 5])
@pytest.mark.parametrize("with_bias", [True, False])
def test_route_is_the_paper_s_loops(size, rule, scale_over, iterations, with_bias):
    poses, weight, bias = inputs(size)
    bias = bias if with_bias else None
    routed = route(poses, weight, bias, rule=rule, iterations=iterations, scale_over=scale_over)
    v, c = by_loops(poses, weight, bias, rule, iterations, scale_over)
    torch.testing.assert_close(routed.poses, torch.from_numpy(v), rtol=0, atol=1e-10)
    torch.testing.assert_close(routed.couplings, torch.from_numpy(c), rtol=0, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("size", [*SIZES, WHOLE])
@pytest.mark.parametrize(("rule", "scale_over"), RULES)
def test_gradients_of_poses_and_couplings_pass_gradcheck(size, rule, scale_over):
    tensors = tuple(t.requires_grad_() for t in inputs(size, zeros=False))

    def run(poses, weight, bias):
        return tuple(route(poses, weight, bias, rule=rule, scale_over=scale_over))

    assert torch.autograd.gradcheck(run, tensors, eps=1e-7, atol=1e-5, fast_mode=size != WHOLE)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("rule", "scale_over"), RULES)
@pytest.mark.parametrize("iterations", [1, 2, 4])
def test_written_gradient_equals_autograd_s_with_zeros_among_the_inputs(size, rule, scale_over, iterations):
    tensors = tuple(t.requires_grad_() for t in inputs(size))
    routed = route(*tensors, rule=rule, scale_over=scale_over, iterations=iterations)
    plain = route_by_formula(rule_named(rule), *tensors, iterations, scale_over)
    weights = [torch.randn_like(p) for p in plain]
    ours = torch.autograd.grad(sum((a * w).sum() for a, w in zip(routed, weights, strict=True)), tensors)
    autograds = torch.autograd.grad(sum((a * w).sum() for a, w in zip(plain, weights, strict=True)), tensors)
    for mine, autograd in zip(ours, autograds, strict=True):
        torch.testing.assert_close(mine, autograd, rtol=1e-9, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("size", [*SIZES[1:], WHOLE])
@pytest.mark.parametrize(("rule", "scale_over"), RULES)
def test_gradients_pass_gradcheck_at_zero_vectors(size, rule, scale_over):
    # With weights that shorten, no vote of a capsule near zero is bounded, and routing is smooth at the zero pose.
    poses, weight, bias = inputs(size)
    weight = weight / (10 * weight.norm())
    assert (poses.norm(dim=-1) == 0).any()
    assert (weight.flatten(2).norm(dim=-1) == 0).any()
    tensors = (poses.requires_grad_(), weight.requires_grad_(), bias.requires_grad_())

    def run(*t):
        return tuple(route(*t, rule=rule, scale_over=scale_over))

    assert torch.autograd.gradcheck(run, tensors, eps=1e-7, atol=1e-5, fast_mode=size != WHOLE)
    (grad,) = torch.autograd.grad(run(*tensors)[0].sum(), poses)
    assert (grad[poses.norm(dim=-1) == 0].norm(dim=-1) > 0).all()  # a zero capsule can learn to be otherwise


@pytest.mark.parametrize("rule", ["sda", "rba"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("with_bias", [True, False])
def test_all_zero_inputs_give_finite_values_and_gradients(rule, dtype, with_bias):
    poses = torch.zeros(2, 5, 3, dtype=dtype, requires_grad=True)
    weight = torch.zeros(5, 4, 3, 2, dtype=dtype, requires_grad=True)
    bias = torch.zeros(4, 2, dtype=dtype, requires_grad=True) if with_bias else None
    routed = route(poses, weight, bias, rule=rule)
    assert torch.equal(routed.poses, torch.zeros_like(routed.poses))
    torch.testing.assert_close(routed.couplings, torch.full_like(routed.couplings, 0.25))
    (routed.poses.sum() + routed.couplings.square().sum()).backward()
    for tensor in (poses, weight, bias):
        if tensor is not None:
            assert torch.isfinite(tensor.grad).all()


@pytest.mark.parametrize("rule", ["sda", "rba"])
@pytest.mark.parametrize("exponent", [-45, -30, -20, -12, -8, 8])
def test_extreme_magnitudes_stay_finite_in_float32(rule, exponent):
    poses = (torch.randn(2, 6, 4) * 10.0**exponent).requires_grad_()
    weight = torch.randn(6, 3, 4, 5, requires_grad=True)
    routed = route(poses, weight, rule=rule)
    (routed.poses.sum() + routed.couplings.square().sum()).backward()
    for tensor in (routed.poses, routed.couplings, poses.grad, weight.grad):
        assert torch.isfinite(tensor).all()


def test_an_image_s_result_does_not_depend_on_its_batch_unless_the_scale_is_taken_over_the_batch():
    poses, weight, bias = inputs((6, 9, 4, 3, 5), zeros=False)
    for scale_over, same in (("capsule", True), ("batch", False)):
        together = route(poses, weight, bias, scale_over=scale_over)
        alone = route(poses[2:3], weight, bias, scale_over=scale_over)
        assert torch.allclose(together.poses[2:3], alone.poses, atol=1e-12) == same
        assert torch.allclose(together.couplings[2:3], alone.couplings, atol=1e-12) == same


@pytest.mark.parametrize("rule", ["sda", "rba"])
def test_half_precision_inputs_are_summed_in_float32(rule):
    poses, weight, bias = inputs((2, 600, 4, 8, 8), dtype=torch.bfloat16)
    exact, _ = by_loops(poses, weight, bias, rule, 3, "capsule")
    routed = route(poses, weight, bias, rule=rule)
    assert routed.poses.dtype == routed.couplings.dtype == torch.bfloat16
    # All that may be lost is the rounding of the result to bfloat16 (8 bits of mantissa).
    torch.testing.assert_close(routed.poses.double(), torch.from_numpy(exact), rtol=2**-8, atol=1e-5)


def test_autocast_does_not_lower_the_precision_of_routing():
    poses, weight, bias = inputs((2, 9, 4, 3, 5), dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        under = route(poses, weight, bias)
    assert torch.equal(under.poses, route(poses, weight, bias).poses)


def test_couplings_can_be_left_out():
    poses, weight, bias = inputs((2, 7, 3, 5, 4))
    routed = route(poses, weight, bias, couplings=False)
    assert routed.couplings is None
    assert torch.equal(routed.poses, route(poses, weight, bias).poses)


def test_no_tensor_of_all_products_is_ever_made():
    from torch.utils._python_dispatch import TorchDispatchMode

    B, I, J, d, D = 3, 11, 5, 7, 6
    largest = 0

    class Largest(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal largest
            out = func(*args, **(kwargs or {}))
            for tensor in out if isinstance(out, tuple | list) else (out,):
                if isinstance(tensor, torch.Tensor):
                    largest = max(largest, tensor.numel())
            return out

    tensors = [t.requires_grad_() for t in inputs((B, I, J, d, D))]
    with Largest():
        torch.autograd.grad(route(*tensors).poses.square().sum(), tensors)
    # B I J D votes, the weights themselves, or five factors for each coupling: far under B I J D d.
    assert largest <= max(B * I * J * D, I * J * d * D, B * I * J * 5) < B * I * J * D * d


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 4), st.integers(1, 9), st.integers(2, 9), st.integers(1, 6), st.integers(1, 6), st.integers(1, 4))
def test_properties_of_sda_at_any_size(B, I, J, d, D, iterations):
    poses = squash(torch.randn(B, I, d, dtype=torch.float64))
    weight = torch.randn(I, J, d, D, dtype=torch.float64)
    routed = route(poses, weight, iterations=iterations)
    torch.testing.assert_close(routed.couplings.sum(-1), torch.ones(B, I, dtype=torch.float64))
    assert (length(routed.poses) < 1).all()
    # Each upper capsule is a squashed sum of votes that are no longer than their capsules (line 3).
    assert (length(routed.poses) <= length(poses).sum(-1, keepdim=True) + 1e-12).all()
    # The order of the lower capsules does not matter, and that of the upper ones is only carried along.
    order = torch.randperm(I)
    torch.testing.assert_close(route(poses[:, order], weight[order], iterations=iterations).poses, routed.poses)
    order = torch.randperm(J)
    torch.testing.assert_close(route(poses, weight[:, order], iterations=iterations).poses, routed.poses[:, order])


def test_capsules_that_agree_on_a_parent_choose_it():
    # Votes of full length that agree on parent 0 (first half) or 1 (second half) and point anywhere for the others.
    J, D = 6, 4
    poses = torch.zeros(1, 8, 2)
    poses[..., 0] = 0.95
    weight = torch.randn(8, J, 2, D) * 5
    weight[:4, 0, 0], weight[4:, 1, 0] = torch.tensor([9.0, 0, 0, 0]), torch.tensor([0, 9.0, 0, 0])
    couplings = route(poses, weight).couplings[0]
    assert (couplings[:4].argmax(-1) == 0).all()
    assert (couplings[4:].argmax(-1) == 1).all()
    assert couplings.max(-1).values.min() > 0.5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"weight": torch.randn(7, 1, 5, 4)}, "at least 2 upper capsules"),
        ({"weight": torch.randn(6, 3, 5, 4)}, r"give poses of shape \(B, 6, 5\)"),
        ({"poses": torch.randn(7, 5)}, r"takes poses \(B, I, d\)"),
        ({"bias": torch.randn(4, 3)}, r"shape \(3, 4\) of the upper capsules"),
        ({"poses": torch.ones(2, 7, 5, dtype=torch.int64)}, "must be floating point"),
        ({"rule": "em"}, "no rule 'em': use one of sda, rba"),
        ({"scale_over": "all"}, "no scale_over 'all'"),
        ({"backend": "cuda"}, "no backend 'cuda'"),
        ({"backend": "triton"}, "need a CUDA device, and the tensors are on cpu"),
        ({"iterations": 0}, "at least 1 iteration"),
    ],
)
def test_what_can_t_be_routed_gets_one_sentence(change, words, monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    arguments = {"poses": torch.randn(2, 7, 5), "weight": torch.randn(7, 3, 5, 4), **change}
    with pytest.raises(InputError, match=words):
        route(**arguments)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["sda", "rba"])
def test_second_derivatives_are_right(rule):
    tensors = tuple(t.requires_grad_() for t in inputs((2, 3, 3, 2, 2), zeros=False))
    assert torch.autograd.gradgradcheck(lambda *t: tuple(route(*t, rule=rule)), tensors, atol=1e-4)


@pytest.mark.parametrize("noise", [1e-3, 1e-5, 1e-7, 1e-9, 0.0])
def test_the_float32_gradient_stays_true_where_votes_meet_their_parent(noise):
    # All votes for parent 0 are the vector that routing itself ends at, so that their distance from it is only noise.
    def run(dtype, route_):
        generator = torch.Generator().manual_seed(1)
        poses = torch.zeros(1, 10, 4, dtype=torch.float64)
        poses[..., 0] = 0.9
        weight = torch.randn(10, 3, 4, 4, generator=generator, dtype=torch.float64)
        weight[:, 0] = noise * torch.randn(10, 4, 4, generator=generator, dtype=torch.float64)
        weight[:, 0, 0, 1] += 0.6784  # s = 10/3 0.9 w, and squash(s) = 0.9 w here
        tensors = [t.to(dtype).requires_grad_() for t in (poses, weight)]
        v = route_(*tensors)
        return torch.autograd.grad((v * torch.arange(4.0)).sum(), tensors)[0].double()

    exact = run(torch.float64, lambda p, w: route_by_formula(rule_named("sda"), p, w, None, 2)[0])
    ours = run(torch.float32, lambda p, w: route(p, w, iterations=2).poses)
    assert (ours - exact).norm() < 0.02 * exact.norm() + 1e-4


def test_float32_gradients_are_as_good_as_autograd_s():
    poses, weight, bias = inputs((4, 60, 8, 6, 7))
    direction = torch.randn(4, 8, 7, dtype=torch.float64)

    def run(dtype, function):
        tensors = [t.to(dtype).requires_grad_() for t in (poses, weight, bias)]
        return [g.double() for g in torch.autograd.grad((function(*tensors) * direction.to(dtype)).sum(), tensors)]

    exact = run(torch.float64, lambda *t: route_by_formula(rule_named("sda"), *t, 3)[0])
    autograd = run(torch.float32, lambda *t: route_by_formula(rule_named("sda"), *t, 3)[0])
    ours = run(torch.float32, lambda *t: route(*t).poses)
    for mine, plain, true in zip(ours, autograd, exact, strict=True):
        assert (mine - true).norm() <= 2 * (plain - true).norm() + 1e-6 * true.norm()
