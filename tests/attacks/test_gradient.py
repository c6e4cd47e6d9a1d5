import numpy as np
import pytest
import torch
from independent import attacks as exact
from torch import nn

import gammacaps
from gammacaps.attacks import LOSSES, fgsm, pgd
from gammacaps.attacks.balls import BALLS, L2Ball, LinfBall
from gammacaps.attacks.gradient import climbed
from gammacaps.attacks.losses import dlr, margin
from gammacaps.errors import InputError


class Linear(nn.Module):
    """Scores that are linear in the pixels, whose worst case is known in closed form."""

    def __init__(self, classes=3, shape=(1, 4, 5)):
        super().__init__()
        self.layer = nn.Linear(int(np.prod(shape)), classes)

    def forward(self, images):
        return self.layer(images.flatten(1))


def batch(count=6, shape=(1, 4, 5), classes=3):
    images = torch.rand(count, *shape)
    images[0] = 0  # at the box's corner
    images[1] = 1
    return images, torch.randint(classes, (count,))


@pytest.mark.parametrize(
    ("norm", "eps"), [*((norm, eps) for norm in BALLS for eps in (0.0, 0.07, 0.3, 1.0)), ("l2", 2.5), ("l2", 100)]
)
@pytest.mark.parametrize("random_start", [True, False])
def test_results_are_inside_the_ball_and_the_box_exactly(norm, eps, random_start):
    model, (images, labels) = Linear(), batch(32)
    for steps, size in ((1, 10.0), (7, 0.05)):
        attacked = climbed(model, images, labels, eps=eps, step=size, steps=steps, random_start=random_start, norm=norm)
        assert attacked.min() >= 0
        assert attacked.max() <= 1
        offset = (attacked - images).flatten(1)
        size = offset.abs().amax(1) if norm == "linf" else offset.norm(dim=1)
        assert (size <= torch.tensor(eps)).all()


def test_projections_are_the_exact_ones():
    images, points = torch.rand(20, 1, 3, 4).double(), torch.randn(20, 1, 3, 4).double() * 2
    for eps in (0.1, 0.6, 1.5):
        linf, l2 = LinfBall(images, eps).project(points), L2Ball(images, eps).project(points)
        for i in range(20):
            point, image = points[i].flatten().numpy(), images[i].flatten().numpy()
            np.testing.assert_allclose(linf[i].flatten(), exact.project_linf(point, image, eps), atol=1e-12)
            np.testing.assert_allclose(l2[i].flatten(), exact.project_l2(point, image, eps), atol=1e-7)


def test_pgd_finds_the_worst_case_of_a_linear_network():
    model, (images, labels) = Linear(classes=2).double(), batch(classes=2)
    images = images.double()
    attacked = pgd(model, images, labels, eps=0.2, step=0.05, steps=20)
    weight, bias = model.layer.weight.detach().numpy(), model.layer.bias.detach().numpy()
    for i in range(len(images)):
        worst, _ = exact.linear_worst_case(images[i].flatten().numpy(), weight, bias, int(labels[i]), 0.2)
        found = margin(model(attacked[i : i + 1]), labels[i : i + 1]).item()
        # The closed form gives the true class's margin; the attack's loss is its negative.
        assert found == pytest.approx(-worst, abs=1e-9)


@pytest.mark.slow
def test_fgsm_is_one_signed_step():
    model, (images, labels) = Linear(), batch()
    points = images.clone().requires_grad_()
    margin(model(points), labels).sum().backward()
    expected = (images + 0.1 * points.grad.sign()).clamp(0, 1)
    torch.testing.assert_close(fgsm(model, images, labels, eps=0.1), expected)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("norm", BALLS)
def test_every_loss_is_raised_on_a_capsule_network(loss, norm):
    model, images, labels = gammacaps.create("small"), torch.rand(6, 1, 28, 28), torch.arange(6)
    eps, step = (0.1, 0.02) if norm == "linf" else (2.0, 0.4)
    attacked = pgd(model, images, labels, eps=eps, step=step, steps=8, loss=loss, norm=norm)
    with torch.no_grad():
        assert LOSSES[loss](model(attacked), labels).mean() > LOSSES[loss](model(images), labels).mean()


def test_a_user_s_own_loss_and_targets():
    model, (images, labels) = Linear(), batch(20)
    brighter = pgd(model, images, labels, eps=0.1, loss=lambda scores, labels: scores[:, 2])
    assert (model(brighter)[:, 2] >= model(images)[:, 2]).all()
    targets = (labels + 1) % 3
    taken = pgd(model, images, labels, eps=1.0, step=0.1, targets=targets)
    assert (model(taken).argmax(1) == targets).float().mean() > 0.8
    stopped = pgd(model, images, labels, eps=1.0, step=0.1, targets=targets, until_broken=True)
    assert (model(stopped).argmax(1) == targets).float().mean() > 0.8


def test_restarts_keep_the_worst_of_each_image():
    model, images, labels = gammacaps.create("small"), torch.rand(8, 1, 28, 28), torch.arange(8)
    generator = torch.Generator().manual_seed(3)
    single = [pgd(model, images, labels, eps=0.05, steps=2, generator=generator) for _ in range(4)]
    often = pgd(model, images, labels, eps=0.05, steps=2, restarts=4, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        values = torch.stack([margin(model(points), labels) for points in single])  # 4 B
        torch.testing.assert_close(margin(model(often), labels), values.amax(0))
    assert len(values.argmax(0).unique()) > 1  # more than one restart was the best for some image


def test_stopping_at_the_first_break_breaks_as_many_and_saves_passes():
    model, (images, _) = Linear(), batch(64)
    labels = model(images).argmax(1)
    passes = []
    handle = model.register_forward_pre_hook(lambda _, inputs: passes.append(len(inputs[0])))
    seeded = {"eps": 0.05, "steps": 30, "step": 0.005}
    full = pgd(model, images, labels, **seeded, generator=torch.Generator().manual_seed(1))
    whole = sum(passes)
    passes.clear()
    stopped = pgd(model, images, labels, **seeded, until_broken=True, generator=torch.Generator().manual_seed(1))
    saved = sum(passes)
    handle.remove()
    broken = model(full).argmax(1) != labels
    assert 0 < broken.sum() < len(images)
    assert not (broken & (model(stopped).argmax(1) == labels)).any()
    assert saved < 0.8 * whole


def test_no_weight_gradient_is_computed_and_the_weights_are_thawed_after():
    model, images, labels = gammacaps.create("small"), torch.rand(2, 1, 28, 28), torch.arange(2)
    model.routed[0].bias.requires_grad_(False)  # a weight that was frozen before stays so
    seen = []
    model.register_forward_pre_hook(lambda m, _: seen.append(any(p.requires_grad for p in m.parameters())))
    pgd(model, images, labels, eps=0.1, steps=2)
    assert seen == [False, False]
    assert [n for n, p in model.named_parameters() if not p.requires_grad] == ["routed.0.bias"]
    assert all(p.grad is None for p in model.parameters())

    def fails(scores, labels):
        raise KeyError("from the user's loss")

    with pytest.raises(KeyError):
        pgd(model, images, labels, eps=0.1, loss=fails)
    assert model.routed[0].weight.requires_grad


def test_works_under_no_grad_and_is_seeded():
    model, (images, labels) = Linear(), batch()
    with torch.no_grad():
        first, again = (
            climbed(model, images, labels, eps=0.1, step=0.01, steps=3, generator=torch.Generator().manual_seed(5))
            for _ in range(2)
        )
        other = climbed(model, images, labels, eps=0.1, step=0.01, steps=3, generator=torch.Generator().manual_seed(6))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not first.requires_grad


def test_a_gradient_that_is_not_a_number_leaves_an_image():
    attacked = pgd(lambda x: (x * float("nan")).flatten(1)[:, :3], *batch(), eps=0.1, steps=2)
    assert ((attacked >= 0) & (attacked <= 1)).all()


def test_dlr_is_its_formula():
    scores, labels = torch.tensor([[3.0, 1.0, 2.0, 0.0]]), torch.tensor([0])
    assert dlr(scores, labels).item() == pytest.approx(-(3 - 2) / (3 - 1))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"loss": "margn"}, "no loss of an attack 'margn' .did you mean 'margin'"),
        ({"norm": "l3"}, "no norm 'l3'"),
        ({"images": torch.rand(6, 1, 4, 5) + 1}, "pixels must be finite and within"),
        ({"images": torch.full((6, 1, 4, 5), float("nan"))}, "pixels must be finite"),
        ({"labels": torch.zeros(5, dtype=torch.int64)}, "6 images need labels"),
        ({"labels": torch.zeros(6)}, "labels must be a tensor of whole numbers"),
        ({"labels": torch.full((6,), 3)}, "class numbers go from 0 to 2"),
        ({"targets": torch.full((6,), 9)}, "class numbers go from 0 to 2"),
        ({"targets": torch.tensor([1])}, "The targets: 6 images need labels"),
        ({"loss": "ce-log"}, "takes lengths, but a score is negative"),
    ],
)
def test_what_can_t_be_attacked_gets_one_sentence(change, words):
    images, labels = batch()
    model = Linear()
    nn.init.constant_(model.layer.bias, -10.0)
    arguments = {"images": images, "labels": labels, "eps": 0.1, **change}
    with pytest.raises(InputError, match=words):
        pgd(model, **arguments)
    with pytest.raises(InputError, match="needs 3 classes"):
        pgd(Linear(classes=2), images, labels.clamp_max(1), eps=0.1, loss="dlr")


def test_an_attack_starts_where_it_is_told():
    model, (images, labels) = Linear(), batch(8)
    eps, share = 0.1, torch.rand(8, 1, 4, 5, generator=torch.Generator().manual_seed(3))
    drawn = pgd(model, images, labels, eps=eps, steps=3, generator=torch.Generator().manual_seed(3))
    told = pgd(model, images, labels, eps=eps, steps=3, start=images + (2 * share - 1) * eps)
    assert torch.equal(told, drawn)
    still = climbed(model, images, labels, eps=eps, step=0.0, steps=1, start=torch.ones_like(images))
    assert torch.equal(still, LinfBall(images, eps).high)  # brought into the ball
    with pytest.raises(InputError, match=r"start has the images' shape \(8, 1, 4, 5\), not \(4, 1, 4, 5\)"):
        pgd(model, images, labels, eps=eps, start=images[:4])


@pytest.mark.parametrize(("norm", "eps"), [("linf", 0.3), ("linf", 8 / 255), ("l2", 2.0)])
@pytest.mark.parametrize("steps", [2, 10, 40, 100])
def test_the_step_follows_radius_and_steps_unless_told(norm, eps, steps):
    model, images, labels = Linear(), *batch()
    moved = pgd(model, images, labels, eps=eps, norm=norm, steps=steps, random_start=False)
    step = eps / 10 if steps >= 25 else 2.5 * eps / steps
    assert moved.equal(pgd(model, images, labels, eps=eps, norm=norm, steps=steps, step=step, random_start=False))
    away = (moved - images).flatten(1)
    reached = away.abs().amax(1) if norm == "linf" else away.norm(dim=1)
    assert (reached > 0.99 * eps).any()


def test_steps_that_can_t_cross_the_ball_are_warned_of():
    model, images, labels = Linear(), *batch()
    with pytest.warns(UserWarning, match=r"40 steps of 0.01 reach 0.4, less than eps 2, .* give more steps"):
        pgd(model, images, labels, eps=2.0, norm="l2", step=0.01)
    pgd(model, images, labels, eps=0.4, step=0.01)  # a warning would be an error
