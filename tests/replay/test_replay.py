"""Replayed passes against the network's own: the same scores and gradients, whatever changes in between.

On a CPU a recording calls the work itself and writes to the same memory, so that what is shared, stale or overwritten
shows as on a GPU; the tests marked so need a GPU.
"""

import gc
import threading
import warnings
import weakref

import pytest
import torch
from torch import nn

import gammacaps
from gammacaps.attacks import ascent, fgsm, pgd, replayed
from gammacaps.attacks.fast import FastAttack
from gammacaps.replay import kept_recordings
from gammacaps.replay.answers import _Replay
from gammacaps.replay.kept_recordings import KEPT, Room, room_for, room_of
from gammacaps.replay.model_state import fingerprint, why_not_recorded
from gammacaps.replay.recorded_pass import SIZES, RecordedPass, size_for
from gammacaps.replay.recording import CannotRecord
from gammacaps.replay.trial import why_other_answers

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
on_gpu = pytest.mark.skipif(DEVICE.type != "cuda", reason="there is no CUDA device here")


@pytest.fixture(autouse=True)
def _afresh(monkeypatch):
    monkeypatch.setattr(kept_recordings, "_said", set())
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    torch.manual_seed(0)


class Small(nn.Module):
    """A classifier of a user's own."""

    def __init__(self, *more: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), *more, nn.Flatten(), nn.Linear(8 * 36, 5))
        self.times = 1.0
        self.eval().to(DEVICE)

    def forward(self, images):
        return self.times * self.layers(images)


def some(count=5):
    return torch.rand(count, 1, 8, 8, device=DEVICE), torch.arange(count, device=DEVICE) % 5


def both(model, images, grad, room=None):
    """Scores and gradient by replaying, and by the network itself."""
    room = room or Room(DEVICE)
    recorded = RecordedPass(model, images, size_for(len(images)), room, gradient=True)
    scores, turn = recorded.scores(images)
    leaf = images.clone().requires_grad_()
    own = model(leaf)
    return (scores, recorded.gradient(images, grad, turn)), (own.detach(), *torch.autograd.grad(own, leaf, grad))


@pytest.mark.parametrize("count", [1, 5, 16, 17])
def test_scores_and_gradients_are_the_network_s_own(count):
    model, (images, _) = Small(), some(count)
    ours, own = both(model, images, torch.randn(count, 5, device=DEVICE))
    for mine, right in zip(ours, own, strict=True):
        torch.testing.assert_close(mine, right, rtol=1e-4, atol=1e-5)
    assert all(weight.requires_grad and weight.grad is None for weight in model.parameters())


def test_passes_may_be_mixed_and_gradients_come_in_any_order():
    """Attack libraries compute the scores of several batches, and only then their gradients, some of them twice."""
    model, room = Small(), Room(DEVICE)
    recorded = RecordedPass(model, some()[0], 16, room, gradient=True)
    other = RecordedPass(model, some()[0], 32, room, gradient=True)
    leaves = [some(count)[0].requires_grad_() for count in (5, 7, 20)]
    scores = [_Replay.apply(leaf, recorded if len(leaf) < 16 else other) for leaf in leaves]
    for leaf, given in [*zip(leaves, scores, strict=True)][::-1]:
        again = leaf.detach().clone().requires_grad_()
        right = torch.autograd.grad(model(again).square().sum(), again)[0]
        for _ in range(2):
            (gradient,) = torch.autograd.grad(given.square().sum(), leaf, retain_graph=True)
            torch.testing.assert_close(gradient, right, rtol=1e-4, atol=1e-5)


def test_weights_that_change_are_seen_and_those_that_move_make_new_recordings():
    model, (images, _) = Small(), some()
    room = room_for(model, DEVICE)
    recorded = RecordedPass(model, images, 16, room, gradient=False)
    before = recorded.scores(images)[0]
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2)
        model.layers[0].weight.data.add_(0.1)
    after = recorded.scores(images)[0]
    assert not torch.allclose(before, after)
    torch.testing.assert_close(after, model(images).detach(), rtol=1e-4, atol=1e-5)
    assert room_for(model, DEVICE) is room
    with torch.no_grad():
        model.layers[0].weight = nn.Parameter(model.layers[0].weight.clone())
    assert room_for(model, DEVICE) is not room


@pytest.mark.parametrize(
    "change",
    [
        lambda model: setattr(model, "times", 2.0),
        lambda model: model.train(),
        lambda model: model.double(),
        lambda model: model.layers.append(nn.Softmax(1)),
    ],
    ids=["a number", "the mode", "the type", "a layer"],
)
def test_a_network_that_changed_has_another_fingerprint(change):
    model = Small()
    before = fingerprint(model)
    assert fingerprint(model) == before
    change(model)
    assert fingerprint(model) != before


def test_what_must_not_be_recorded_is_known():
    assert why_not_recorded(Small()) is None
    assert why_not_recorded(Small(nn.Dropout(0.5), nn.BatchNorm2d(8))) is None
    assert "Dropout is in training mode" in why_not_recorded(Small(nn.Dropout(0.5)).train())
    assert why_not_recorded(Small(nn.Dropout(0.0)).train()) is None
    assert "BatchNorm2d is in training mode" in why_not_recorded(Small(nn.BatchNorm2d(8)).train())
    hooked = Small()
    hooked.layers[0].register_forward_hook(lambda *_: None)
    assert "hooks of its Conv2d" in why_not_recorded(hooked)


class Random(Small):
    def forward(self, images):
        return super().forward(images) + torch.randn(len(images), 5, device=images.device)


class Counting(Small):
    def __init__(self):
        super().__init__()
        self.register_buffer("passes", torch.zeros(1, device=DEVICE))

    def forward(self, images):
        self.passes += 1
        return super().forward(images)


class Together(Small):
    def forward(self, images):
        scores = super().forward(images)
        return scores - scores.mean(0)


class Fixed(Small):
    def forward(self, images):
        return super().forward(images).view(13, 5)


class NoScores(Small):
    def forward(self, images):
        return super().forward(images).argmax(1)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Random, "other scores for the same images each time"),
        (Counting, "changes its buffers"),
        (Together, "how many images there are"),
        (Fixed, "RuntimeError"),
        (NoScores, "does not give scores"),
    ],
)
def test_networks_that_replaying_would_get_wrong_are_found_out_and_left_as_they_were(kind, words):
    model, (images, _) = kind(), some(13)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    random = torch.random.get_rng_state(), torch.cuda.get_rng_state() if DEVICE.type == "cuda" else torch.zeros(1)
    assert words in why_other_answers(model, images, Room(DEVICE))
    assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())
    assert torch.equal(torch.random.get_rng_state(), random[0])
    assert DEVICE.type != "cuda" or torch.equal(torch.cuda.get_rng_state(), random[1])


def test_a_network_that_answers_alike_is_replayed():
    for model in (Small(), Small(nn.BatchNorm2d(8), nn.Dropout(0.5)), gammacaps.create("cnn", image_shape=(1, 8, 8))):
        assert why_other_answers(model.to(DEVICE).eval(), some(13)[0], Room(DEVICE)) is None


def test_few_recordings_are_kept_and_a_model_is_not_kept_alive():
    model = Small()
    room = room_for(model, DEVICE)
    for key in range(KEPT + 5):
        room.get(key, lambda key=key: key)
    assert list(room.kept) == list(range(5, KEPT + 5))
    room.get("pass", lambda: RecordedPass(model, some()[0], 16, room, gradient=True))
    alive = weakref.ref(model)
    del model
    gc.collect()
    assert alive() is None


def test_batches_are_filled_up_to_few_sizes():
    assert {size_for(count) for count in range(1, 1025)} == set(SIZES)
    assert size_for(1025) == 2048
    assert all(size_for(count) >= count for count in (1, 16, 17, 999, 5000))


def test_on_a_cpu_the_model_itself_answers():
    model, images = Small().cpu(), torch.rand(3, 1, 8, 8)
    assert room_of(model, images) is None
    assert torch.equal(replayed(model)(images), model(images))
    assert replayed(replayed(model)).model is model


def test_an_attack_whose_steps_can_t_be_recorded_goes_on_plainly(monkeypatch):
    def broken(*_):
        raise CannotRecord("no memory")

    model, (images, labels) = Small(), some()
    plain = pgd(lambda x: model(x), images, labels, eps=0.1, steps=2, random_start=False)
    fast = FastAttack(model, (64, 1, 8, 8), torch.float32, "margin", False)
    monkeypatch.setattr(fast, "run", broken)
    monkeypatch.setattr(ascent, "fast_attack", lambda *_: fast)
    with pytest.warns(UserWarning, match="can't be recorded: no memory"):
        assert torch.equal(pgd(model, images, labels, eps=0.1, steps=2, random_start=False), plain)


@on_gpu
@pytest.mark.parametrize("autocast", [False, True])
def test_the_module_answers_like_the_network_with_autocast_and_without(autocast):
    model, (images, _) = Small(), some(40)
    fast = replayed(model)
    with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
        leaf, again = images.clone().requires_grad_(), images.clone().requires_grad_()
        ours, own = fast(leaf), model(again)
    assert ours.dtype == own.dtype
    torch.testing.assert_close(ours, own, rtol=1e-2 if autocast else 1e-4, atol=1e-3)
    gradients = [torch.autograd.grad(s.float().square().sum(), x)[0] for s, x in ((ours, leaf), (own, again))]
    torch.testing.assert_close(*gradients, rtol=5e-2 if autocast else 1e-4, atol=5e-2 if autocast else 1e-4)
    with torch.no_grad():
        torch.testing.assert_close(fast(images), model(images), rtol=1e-4, atol=1e-5)


class Asking(Small):
    """Its way depends on a number that the host must wait for."""

    def forward(self, images):
        scores = super().forward(images)
        return scores * 2 if scores.mean().item() > 0 else scores


@on_gpu
@pytest.mark.parametrize("kind", [Asking, Random, Together])
def test_what_can_t_be_recorded_is_said_once_and_runs_plainly_to_the_same_result(kind):
    model, (images, labels) = kind(), some(20)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        attacked = []
        for attack in (model, lambda x: model(x)):
            torch.manual_seed(1)
            start = torch.Generator(DEVICE).manual_seed(2)
            attacked.append([pgd(attack, images, labels, eps=0.1, steps=3, generator=start) for _ in range(2)])
    assert all(torch.equal(*pair) for pair in zip(*attacked, strict=True))
    assert sum("not replayed" in str(warning.message) for warning in said) == 1
    # What was broken off has left nothing behind: another network is recorded.
    assert torch.isfinite(replayed(Small())(images)).all()
    assert room_of(Small(), images) is not None


@on_gpu
@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_attacks_on_a_network_of_one_s_own_are_the_plain_ones(norm):
    model, (images, labels) = Small(), some(20)
    own = {"margin": "margin", "own": lambda scores, labels: -scores.gather(1, labels[:, None]).squeeze(1)}
    for loss in own.values():
        eps = 0.1 if norm == "linf" else 1.0
        ours, plain = (fgsm(m, images, labels, eps=eps, loss=loss, norm=norm) for m in (model, lambda x: model(x)))
        assert ((ours - plain).abs() > 1e-4).float().mean() < 0.01


@on_gpu
def test_several_networks_and_threads_at_once():
    models, (images, _) = [Small() for _ in range(3)], some(30)
    right = [model(images).detach() for model in models]
    wrong: list[object] = []

    def ask(k: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            for n in range(40):
                model = (k + n) % 3
                ours = replayed(models[model])(images[: 5 + n % 20])
                if not torch.allclose(ours, right[model][: len(ours)], rtol=1e-3, atol=1e-4):
                    wrong.append((k, n))

    torch.cuda.synchronize()
    threads = [threading.Thread(target=ask, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@on_gpu
def test_a_moved_network_and_one_in_training_mode_are_right():
    model, (images, _) = Small(nn.Dropout(0.5)), some(20)
    fast = replayed(model)
    before = fast(images)
    model.cpu().to(DEVICE)
    torch.testing.assert_close(fast(images), before)
    model.train()
    with pytest.warns(UserWarning, match="training mode"):
        assert not torch.equal(fast(images), fast(images))
    torch.testing.assert_close(fast.eval()(images), before)


@on_gpu
def test_memory_stays_bounded_for_many_sizes_of_batch():
    model = gammacaps.create("cnn").to(DEVICE).eval()
    fast = replayed(model)
    largest = torch.rand(1000, 1, 28, 28, device=DEVICE)
    fast(largest.clone().requires_grad_()).sum().backward()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    for count in (900, 700, 500, 400, 300, 200, 100, 70, 40, 10):
        fast(largest[:count].clone().requires_grad_()).sum().backward()
    torch.cuda.empty_cache()
    # Images, scores and their gradients of each size, and what the allocator rounds up: not another pass.
    assert torch.cuda.memory_reserved() - before < 200 * 2**20
