"""Algorithm 2: what the generated inputs must be, the plain steps, and the kernels against them."""

import dataclasses

import numpy as np
import pytest
import torch
from former_small import CONVOLUTION
from square import square_detector

import gammacaps
from gammacaps.errors import InputError
from gammacaps.explain import activate, activate_all
from gammacaps.explain.activate import activations_of, descended, gradient_at
from gammacaps.explain.gpu_steps import FastSteps, fast_steps
from gammacaps.explain.search import start_images, step_sizes
from gammacaps.ops import length
from gammacaps.ops.kernels.capsules import activation_gradient
from gammacaps.ops.kernels.images import descend

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
FEW = {"starts": 6, "steps": 12, "step": 0.05, "best": 3}  # enough to see an effect
PAPER = {**FEW, "search": "paper"}


def small_network(**changes):
    """Small enough for the interpreter; its weights large enough that capsules depend on the image."""
    convolution = {**CONVOLUTION, "filters": 32, "kernel": 5, "stride": 1, "primary_kernel": 3}
    shape = {**convolution, "image_shape": (1, 9, 9), "decoder": ()}
    capsules = {"primary_types": 2, "primary_size": 4, "hidden": (3,), "hidden_size": 4, "class_size": 4, "classes": 3}
    model = gammacaps.create("small", **{**shape, **capsules, **changes}).to(DEVICE)
    with torch.no_grad():
        for layer in model.routed:
            layer.weight *= 6
    return model


def matrix_network():
    return gammacaps.create("matrix", image_shape=(1, 14, 14), classes=3, filters=8, types=(3, 3)).to(DEVICE)


def reached_by_noise(model, layer, capsule):
    """The largest activation among random starts."""
    noise = torch.rand(50, *model.config.image_shape, device=DEVICE)
    with torch.no_grad():
        return model.parse(noise).activations[model.layers.index(layer)][:, capsule].max().item()


def same(one, other):
    """Bit for bit."""
    pairs = zip(dataclasses.astuple(one), dataclasses.astuple(other), strict=True)
    return all(torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in pairs)


@pytest.mark.parametrize("search", ["improved", "paper"])
@pytest.mark.parametrize("layer", ["primary", "hidden 1", "class"])
def test_the_generated_image_activates_its_capsule(layer, search):
    model = small_network()
    found = activate(model, layer, 1, search=search, **{**FEW, "steps": 12 if search == "paper" else 60})
    assert found.activation > reached_by_noise(model, layer, 1)
    assert (found.activations > reached_by_noise(model, layer, 1)).all()
    assert 0 <= found.best.min() < found.best.max() <= 1
    assert found.best.shape == (3, 1, 9, 9)
    assert all(parameter.requires_grad for parameter in model.parameters())


@pytest.mark.slow
def test_the_picture_of_a_capsule_known_to_detect_a_bright_square_is_that_square():
    options = {"starts": 8, "steps": 150}
    paper = activate(square_detector().to(DEVICE), "hidden 1", 0, search="paper", **options)
    square = torch.zeros(1, 4, 4)
    square[:, :2, :2] = 1
    assert paper.image.cpu().equal(square)  # the price on pixels leaves the rest dark
    assert paper.spread == 0
    found = activate(square_detector().to(DEVICE), "hidden 1", 0, **options)
    assert found.image.cpu()[:, :2, :2].min() > 0.9 > found.image.cpu()[:, 3, 3]  # smoothed, its edges reach far here
    free = activate(square_detector().to(DEVICE), "hidden 1", 0, search="paper", penalty=0, **options)
    assert free.image.cpu()[:, :2, :2].min() == 1
    assert free.spread > 0.1  # what the capsule does not look at stays noise
    assert found._repr_png_().startswith(b"\x89PNG")


def test_what_is_told_of_an_image_is_so():
    model = small_network()
    found = activate(model, "hidden 1", 2, seed=5, **PAPER)
    torch.testing.assert_close(found.image, found.best.mean(0))
    with torch.no_grad():
        parse = model.parse(torch.cat((found.image[None], found.best)))
    lengths = parse.activations[1][:, 2]
    torch.testing.assert_close(torch.tensor(found.activation, device=DEVICE), lengths[0])
    torch.testing.assert_close(found.activations, lengths[1:])
    torch.testing.assert_close(found.scores, parse.scores[0])
    loss = (lengths[1:] - 1) ** 2 + 1e-5 * found.best.sum((1, 2, 3))
    assert (loss.diff() >= 0).all()
    assert found.spread == pytest.approx(found.best.cpu().numpy().std(0).mean(), rel=1e-5)
    assert found.seed == 5


def test_the_starts_with_the_smallest_loss_are_averaged():
    model = small_network()
    everything = activate(model, "class", 0, **{**PAPER, "best": 6})
    some = activate(model, "class", 0, **PAPER)
    assert torch.equal(some.best, everything.best[:3])
    assert some.activations.min() >= everything.activations[3:].max()  # no penalty: the loss is the length's


def test_a_seed_names_the_image_and_another_gives_another():
    model = small_network()
    first = activate(model, "class", 0, seed=1, **FEW)
    assert same(first, activate(model, 2, 0, seed=1, **FEW))  # the layer by its index
    assert same(first, activate(model, -1, 0, seed=1, **FEW))
    assert not torch.equal(first.image, activate(model, "class", 0, seed=2, **FEW).image)
    starts = [start_images(0, *place, 2, (1, 9, 9)) for place in ((1, 0), (0, 1), (1, 1))]
    assert not torch.equal(starts[0], starts[1])
    assert not torch.equal(starts[0], starts[2])
    assert torch.equal(starts[0], start_images(0, 1, 0, 5, (1, 9, 9))[:2])  # more starts, but the same first


@pytest.mark.parametrize("make", [small_network, matrix_network])
@pytest.mark.parametrize("batch", [None, 4, 13])  # the default, several batches a capsule, two capsules a batch
@pytest.mark.slow
def test_all_capsules_together_are_each_alone(make, batch):
    if DEVICE == "cuda" and make is matrix_network:
        pytest.skip("a GPU rounds products of matrices by how many images there are")
    model = make()
    options = {**FEW, "steps": 4, "batch": batch}
    together = activate_all(model, "hidden 1", [0, 1, 2], **options)
    alone = [activate(model, "hidden 1", j, **options) for j in range(3)]
    if make is small_network:
        assert all(same(*pair) for pair in zip(together, alone, strict=True))
    else:  # EM's sums are rounded by where in a batch an image stands
        for one, other in zip(together, alone, strict=True):
            torch.testing.assert_close(one.image, other.image, rtol=0, atol=1e-4)


def test_all_capsules_of_a_layer_are_the_default_and_their_order_is_kept():
    model = small_network()
    options = {**FEW, "steps": 2}
    together = activate_all(model, "class", **options)
    assert len(together) == 3
    backwards = activate_all(model, "class", [2, 0], **options)
    assert same(backwards[0], together[2])
    assert same(backwards[1], together[0])
    assert activate_all(model, "class", [], **options) == []


def test_it_is_told_after_each_batch_how_many_have_theirs():
    told = []
    activate_all(small_network(), "class", **{**FEW, "steps": 1}, on_progress=lambda *how_far: told.append(how_far))
    assert told[-1] == (3, 3)
    assert [done for done, _ in told] == sorted({done for done, _ in told})


@pytest.mark.slow
def test_matrix_capsules_are_activated():
    model = matrix_network()
    noise = reached_by_noise(model, "class", 1)
    found = activate(model, "class", 1, penalty=0, **{**FEW, "steps": 30})  # untrained, its gradients are tiny
    assert (found.activations > noise).all()
    assert len(found.scores) == 3


def test_a_penalty_darkens_the_image():
    model = small_network()
    none, some, large = (activate(model, "hidden 1", 0, penalty=p, **PAPER).image.sum() for p in (0.0, 1e-3, 10.0))
    assert large < some < none
    assert activate(model, "hidden 1", 0, penalty=10.0, **{**PAPER, "steps": 21}).image.max() == 0  # 21 x 0.05 > 1


def test_the_penalties_unless_told():
    model = small_network()
    for search, layer, penalty in (("paper", "class", 0.0), ("paper", "hidden 1", 1e-5), ("improved", "class", 1e-4)):
        options = {**FEW, "search": search}
        assert same(activate(model, layer, 0, **options), activate(model, layer, 0, penalty=penalty, **options))


def test_the_best_are_five_or_all_of_fewer_starts_unless_told():
    model = small_network()
    assert len(activate(model, "class", 2, starts=2, steps=1).best) == 2
    assert len(activate(model, "class", 2, starts=6, steps=1).best) == 5


def test_the_paper_s_search_is_algorithm_2():
    """Written out from the paper's page, for one capsule; equal to the last bit."""
    model = small_network()
    x = torch.from_numpy(np.random.default_rng((3, 1, 2)).random((6, 1, 9, 9), dtype=np.float32)).to(DEVICE)
    for _ in range(12):
        x.requires_grad_()
        v = model.parse(x, couplings=False).activations[1][:, 2]
        (gradient,) = torch.autograd.grad(((v - 1) ** 2).sum(), x)
        x = (x.detach() - 0.05 * (gradient + 1e-5).sign()).clamp(0, 1)
    with torch.no_grad():
        J = (model.parse(x).activations[1][:, 2] - 1) ** 2 + 1e-5 * x.sum((1, 2, 3))
    found = activate(model, "hidden 1", 2, seed=3, **PAPER)
    if DEVICE == "cpu":  # kernels round in their own way
        assert torch.equal(found.best, x[J.argsort()[:3]])
        assert torch.equal(found.image, found.best.mean(0))


def test_a_model_in_double_precision_and_one_under_no_grad():
    with torch.no_grad():
        found = activate(small_network().double(), "class", 0, **{**FEW, "steps": 2})
    assert found.image.dtype == torch.float64


# 3 capsules of 4; more capsules than a program takes, of a size that is no power of two.
@pytest.mark.parametrize(("n", "D"), [(3, 4), (150, 5)])
def test_the_kernel_has_the_gradient_of_the_loss(n, D):
    v = torch.randn(4, n, D, device=DEVICE) * torch.tensor([0.1, 1.0, 3.0, 0.0], device=DEVICE).view(4, 1, 1)
    chosen = torch.tensor([0, n - 1, 1, 2], device=DEVICE)
    leaf = v.clone().requires_grad_()
    loss = (length(leaf).gather(1, chosen[:, None]) - 1).square().sum()
    torch.testing.assert_close(activation_gradient(v, chosen), torch.autograd.grad(loss, leaf)[0])


def test_a_step_of_the_kernel_goes_against_the_sign_and_stays_in_the_image():
    x = torch.tensor([[0.5, 0.5, 0.5, 0.005, 0.995, 0.5, 0.5]], device=DEVICE)
    grad = torch.tensor([[2.0, -2.0, 0.0, 1.0, -1.0, -0.05, torch.nan]], device=DEVICE)
    for penalty, expected in ((0.0, [0.49, 0.51, 0.5, 0, 1, 0.51, 0.5]), (0.1, [0.49, 0.51, 0.49, 0, 1, 0.49, 0.5])):
        moved = x.clone()
        descend(moved, grad, *(torch.tensor([value], device=DEVICE) for value in (0.01, penalty)))
        torch.testing.assert_close(moved, torch.tensor([expected], device=DEVICE))


def moved_both_ways(layer, sizes, **changes):
    """Images, and what fast and plain steps make of them, each image with a capsule of its own."""
    model = small_network(**changes).requires_grad_(False)
    images = torch.rand(2, *model.config.image_shape, device=DEVICE)
    chosen = torch.tensor([2, 0], device=DEVICE)
    fast = FastSteps(model, layer, 2, 1e-5, torch.float32)
    moved, plain = fast.run(images, chosen, sizes), descended(model, layer, images, chosen, sizes, 1e-5)
    assert (moved != images).float().mean() > 0.5
    # A gradient next to 0 may have another sign.
    assert (moved != plain).float().mean() < 0.02
    return fast, images, chosen, moved


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer", "changes"),
    [
        (0, {}),
        (2, {"routing": "rba", "hidden": (3, 4)}),  # a layer in the middle
        (2, {"image_shape": (3, 9, 9)}),  # colour
    ],
    ids=str,
)
def test_a_fast_step_is_a_plain_one(layer, changes):
    moved_both_ways(layer, [0.03], **changes)


@pytest.mark.slow
def test_fast_steps_leave_nothing_behind_and_know_no_neighbours():
    sizes = [0.03, 0.01]
    fast, images, chosen, moved = moved_both_ways(1, sizes)
    assert torch.equal(moved.flip(0), fast.run(images.flip(0), chosen.flip(0), sizes))


@pytest.mark.skipif(DEVICE != "cuda", reason="there is no CUDA device here")
@pytest.mark.parametrize("layer", ["primary", "hidden 1", "class"])
def test_replayed_steps_are_the_plain_ones(layer):
    model = gammacaps.create("paper").to(DEVICE).requires_grad_(False)
    index = model.layers.index(layer)
    images = torch.rand(70, 1, 28, 28, device=DEVICE)
    chosen = torch.arange(70, device=DEVICE) % 10
    assert fast_steps(model, index, 70, 1e-5) is not None
    fast = FastSteps(model, index, 70, 1e-5, torch.float32)  # in bfloat16 more signs differ than may here
    sizes = step_sizes("improved", 5, 0.01)
    moved = fast.run(images, chosen, sizes)
    assert fast.recording.graph is not None
    plain = descended(model, index, images, chosen, sizes[:1], 1e-5)  # later steps start where rounding turned a sign
    assert (fast.run(images, chosen, sizes[:1]) != plain).float().mean() < 0.02
    assert torch.equal(moved, fast.run(images, chosen, sizes))
    before, after = (activations_of(model, index, x, chosen) for x in (images, moved))
    assert (after > before).float().mean() > 0.9


@pytest.mark.slow
def test_the_gradient_by_kernels_is_the_plain_one():
    model = small_network().requires_grad_(False)
    images, chosen = torch.rand(2, 1, 9, 9, device=DEVICE), torch.tensor([2, 0], device=DEVICE)
    gradient_of = FastSteps(model, 1, 2, 0.0, torch.float32).toward(chosen)
    for seen in (images, 1 - images):  # each time of the images that are given
        plain = gradient_at(model, 1, chosen, seen)
        torch.testing.assert_close(gradient_of(seen), plain, rtol=1e-3, atol=1e-3 * plain.abs().max().item())


def test_elsewhere_plain_steps_are_used(monkeypatch):
    if DEVICE == "cpu":
        assert fast_steps(small_network(), 1, 4, 0.0) is None
    assert fast_steps(matrix_network(), 1, 4, 0.0) is None
    monkeypatch.setenv("GAMMACAPS_PLAIN", "1")
    assert fast_steps(small_network(), 1, 4, 0.0) is None


@pytest.mark.parametrize(
    ("layer", "capsule", "options", "words"),
    [
        ("hiden 1", 0, {}, "no layer 'hiden 1' .did you mean 'hidden 1'.*primary, hidden 1, class, or its index from"),
        (3, 0, {}, "There is no layer '3': use one of primary, hidden 1, class, or its index from 0 to 2"),
        ("class", 3, {}, "There is no capsule 3 in layer 'class': its capsules are 0 to 2"),
        ("hidden 1", -1, {}, "There is no capsule -1"),
        ("class", 0, {"best": 7, "starts": 6}, "The best of 6 starts can be 1 to 6 of them, not 7"),
        ("class", 0, {"best": 0}, "not 0"),
        ("class", 0, {"steps": 0}, "at least 1 start, 1 step"),
        ("class", 0, {"starts": 0}, "at least 1 start, 1 step"),
        ("class", 0, {"batch": 0}, "a batch of 1"),
        ("class", 0, {"search": "papers"}, "no search 'papers' .did you mean 'paper'.*improved, paper"),
        ("class", 0, {"step": 0.0}, "The step must be above 0"),
        ("class", 0, {"penalty": -1.0}, "The penalty must be 0 or more"),
        ("class", 0, {"penalty": float("nan")}, "The penalty must be 0 or more"),
        ("class", 0, {"noise": -0.1}, "noise must be 0 or more"),
        ("class", 0, {"seed": -1}, "seed must be from 0 to 2147483647, not -1"),
    ],
)
def test_bad_input_is_named(layer, capsule, options, words):
    with pytest.raises(InputError, match=words):
        activate(small_network(), layer, capsule, **options)


def test_networks_without_capsules_of_their_own_are_refused():
    with pytest.raises(InputError, match="A CNN has no capsules"):
        activate(gammacaps.create("cnn"), "class", 0)
    with pytest.raises(InputError, match=r"scale_over='batch'.*use a network with scale_over='capsule'"):
        activate(small_network(scale_over="batch"), "class", 0)
