import numpy as np
import pytest
import torch
from independent import em as loops

import gammacaps
from gammacaps.nn import MatrixCapsules, MatrixLayer
from gammacaps.ops.em import em_route, parents_of, receptive_fields


@pytest.mark.parametrize(("kernel", "stride"), [(3, 2), (3, 1), (2, 3)])
@pytest.mark.parametrize("iterations", [1, 2, 3])
def test_em_routing_is_the_loops(kernel, stride, iterations):
    height, width, types, J, B = 5, 6, 2, 3, 2
    children = receptive_fields(height, width, types, kernel, stride)
    assert np.array_equal(children.numpy(), loops.receptive_fields(height, width, kernel, stride, types))
    L, K = children.shape
    votes = torch.randn(B, L, K, J, 16, dtype=torch.float64)
    activations = torch.rand(B, height * width * types, dtype=torch.float64)
    activations[:, 3] = 0  # a child that is not there
    beta_v, beta_a = torch.randn(J, dtype=torch.float64), torch.randn(J, dtype=torch.float64) * 100
    routed = em_route(votes, activations, children, beta_v, beta_a, iterations=iterations)
    expected = loops.em_routing(
        votes.numpy(), activations.numpy(), children.numpy(), beta_v.numpy(), beta_a.numpy(), iterations
    )
    for mine, theirs in zip(routed, expected, strict=True):
        torch.testing.assert_close(mine, torch.from_numpy(np.asarray(theirs)), rtol=1e-9, atol=1e-10)


@pytest.mark.slow
def test_em_gradients_pass_gradcheck():
    children = receptive_fields(3, 3, 2, 2, 1)
    L, K = children.shape
    votes = torch.randn(1, L, K, 2, 4, dtype=torch.float64, requires_grad=True)
    activations = torch.rand(1, 18, dtype=torch.float64, requires_grad=True)
    beta_v = torch.randn(2, dtype=torch.float64, requires_grad=True)
    beta_a = torch.randn(2, dtype=torch.float64, requires_grad=True)

    def run(votes, activations, beta_v, beta_a):
        return tuple(em_route(votes, activations, children, beta_v, beta_a, iterations=2))

    assert torch.autograd.gradcheck(run, (votes, activations, beta_v, beta_a), atol=1e-5)


@pytest.mark.parametrize("kernel", [3, None])
def test_a_layer_of_matrix_capsules_is_the_loops(kernel):
    height, width, lower, types = 5, 4, 2, 3
    layer = MatrixCapsules((height, width), lower, types, kernel=kernel, stride=2).double()
    poses = torch.randn(2, height * width * lower, 16, dtype=torch.float64)
    activations = torch.rand(2, height * width * lower, dtype=torch.float64)
    out = layer(MatrixLayer(poses, activations), couplings=True)

    fields = layer.fields.numpy()
    weight = layer.weight.detach().numpy()
    if kernel is None:
        weight = np.tile(weight, (height * width, 1, 1, 1))
    votes = np.stack([loops.matrix_votes(p, weight, fields) for p in poses.numpy()])
    if kernel is None:
        votes = loops.coordinate_addition(votes, height, width, lower)
    v, a, R = loops.em_routing(
        votes, activations.numpy(), fields, layer.beta_v.detach().numpy(), layer.beta_a.detach().numpy(), 3
    )
    torch.testing.assert_close(out.poses, torch.from_numpy(v).flatten(1, 2), rtol=1e-8, atol=1e-9)
    torch.testing.assert_close(out.activations, torch.from_numpy(a).flatten(1), rtol=1e-8, atol=1e-9)
    for l, k, j in ((0, 0, 0), (0, 5, 2), (len(fields) - 1, 1, 1)):
        torch.testing.assert_close(out.couplings[:, fields[l, k], l * types + j], torch.from_numpy(R[:, l, k, j]))


def test_a_child_s_couplings_sum_to_1_over_all_its_parents():
    layer = MatrixCapsules((6, 6), 2, 4, kernel=3, stride=2)
    out = layer(MatrixLayer(torch.randn(3, 72, 16), torch.rand(3, 72)), couplings=True)
    reached = layer.parents > 0
    assert reached.sum() == 50  # 5 x 5 places of 2 types: stride 2 never reaches the last row and column
    torch.testing.assert_close(out.couplings.sum(-1)[:, reached], torch.ones(3, 50))
    assert (out.couplings[:, ~reached] == 0).all()
    assert torch.equal((out.couplings > 0).sum(-1).amax(0), layer.parents)
    assert torch.equal(parents_of(layer.fields, 72, 4), layer.parents)


def test_em_routing_stays_finite_for_identical_votes_and_absent_children():
    children = receptive_fields(4, 4, 1, 3, 1)
    votes = torch.ones(2, *children.shape, 3, 16, requires_grad=True)
    activations = torch.zeros(2, 16, requires_grad=True)
    routed = em_route(votes, activations, children, torch.zeros(3), torch.full((3,), -1000.0))
    sum(t.sum() for t in routed).backward()
    for tensor in (*routed, votes.grad, activations.grad):
        assert torch.isfinite(tensor).all()


@pytest.mark.slow
def test_gradients_are_the_same_each_time_with_several_threads():
    """A child stands in several windows, whose gradients are added up in one order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        gradients = set()
        for _ in range(12):
            torch.manual_seed(0)
            model = gammacaps.create("matrix", filters=8, primary_types=2, types=(3, 3))
            model(torch.rand(16, 1, 28, 28, generator=torch.Generator().manual_seed(1))).sum().backward()
            gradients.add(b"".join(p.grad.numpy().tobytes() for p in model.parameters()))
    finally:
        torch.set_num_threads(threads)
    assert len(gradients) == 1
