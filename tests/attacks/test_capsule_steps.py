"""The attack on capsules by replayed steps against the plain one."""

import pytest
import torch

import gammacaps
from gammacaps.attacks import capsule_steps
from gammacaps.attacks.capsules import push
from gammacaps.replay.kept_recordings import Room

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["small", "matrix"])
def test_replayed_steps_reach_what_the_plain_ones_reach(preset, monkeypatch):
    torch.manual_seed(0)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    if DEVICE.type == "cpu":  # not by kernels in Triton's interpreter, which takes minutes
        monkeypatch.setenv("GAMMACAPS_PLAIN", "1")
    tiny = {"primary_types": 2, "hidden": (5,)} if preset == "small" else {"primary_types": 2, "types": (2, 2)}
    model = gammacaps.create(preset, filters=8, **tiny).to(DEVICE).eval()
    images = torch.rand(20, 1, 28, 28, device=DEVICE)
    clean = model.parse(images, couplings=False).activations[1]
    capsules, upward = torch.arange(20, device=DEVICE) % clean.shape[1], torch.arange(20, device=DEVICE) % 2 == 0
    length = clean.gather(1, capsules[:, None]).squeeze(1).detach()
    # Some are there from the start, some after a while, some never.
    until = length * torch.linspace(0.9, 1.1, 20, device=DEVICE)
    given = (model, 1, images, capsules, upward, until, torch.zeros_like(images))
    how = {"eps": 0.05, "step": 0.5, "steps": 6}
    room = Room(DEVICE)
    monkeypatch.setattr(capsule_steps, "room_of", lambda *_: room)
    ours, passes = push(*given, **how)
    monkeypatch.setattr(capsule_steps, "room_of", lambda *_: None)
    plain, right = push(*given, **how)
    torch.testing.assert_close(ours, plain, rtol=1e-3, atol=1e-4)
    assert abs(passes - right) <= right // 20  # a row next to its goal may be there a step sooner or later
    assert right < 20 * 7
