"""A checkpoint is what was written, or one sentence: never another network in place of a good one."""

import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from gammacaps.errors import InputError
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.checkpoint import CHECKPOINT, step_of
from gammacaps.training.train import resume, train

TINY = ("filters=4", "primary_types=2", "hidden=[3]", "decoder=[]")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    run = tmp_path_factory.mktemp("trained") / "run"
    train(TrainConfig(model=TINY, batch=8, steps=2, robust=False, device="cpu", log_every=1), run)
    return {path.name: path.read_bytes() for path in run.iterdir()}


@pytest.fixture
def run(tmp_path, trained):
    for name, content in trained.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def rewrite(run, change, *, old=True):
    """Changes a checkpoint's tensors and state, as an older version would have written it, without a hash."""
    path = run / CHECKPOINT
    tensors = load_file(path)
    with safe_open(path, "pt") as file:
        state = json.loads(file.metadata()["state"])
    if old:
        state.pop("sha256")
    changed = change(tensors, state)
    save_file(tensors, path, {"state": changed if isinstance(changed, str) else json.dumps(state)})


def set_to(name, value):
    def change(tensors, state):
        key = next(key for key in sorted(tensors) if key.startswith(name))
        tensors[key] = torch.full_like(tensors[key], value)

    return change


def drop(name):
    def change(tensors, state):
        del tensors[next(key for key in sorted(tensors) if key.startswith(name))]

    return change


def shorten(name):
    def change(tensors, state):
        key = next(key for key in sorted(tensors) if key.startswith(name))
        tensors[key] = torch.zeros(7)

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (set_to("average.", float("nan")), "is not finite"),
        (set_to("adam.exp_avg.", float("inf")), "is not finite"),
        (set_to("adam.exp_avg_sq.", -1.0), "Adam's state of"),
        (drop("adam.exp_avg."), "Adam's state of"),
        (drop("adam.step."), "Adam's state of"),
        (shorten("adam.exp_avg_sq."), "Adam's state of"),
        (shorten("average."), "does not fit its config.json"),
        (drop("average."), "does not fit its config.json"),
        (drop("model."), "lacks the weights"),
        (lambda t, s: t.update({"adam.exp_avg.nobody": torch.zeros(1)}), "does not fit its config.json"),
        (lambda t, s: t.update({"spare.part": torch.zeros(1)}), "nothing that a checkpoint has"),
        (lambda t, s: '{"step": Infinity, "seconds": 1}', "step must be a whole number"),
        (lambda t, s: '{"step": 2.5, "seconds": 1}', "step must be a whole number"),
        (lambda t, s: '{"step": -1, "seconds": 1}', "it stands at step -1"),
        (lambda t, s: '{"step": 1, "seconds": 1, "best_step": 1}', "only half of what its best weights are"),
        (lambda t, s: s.update(best_step=1, best_right=0.5), "does not fit its config.json"),
        (lambda t, s: t.update({"best.nobody": torch.zeros(1)}), "does not fit its config.json"),
        (lambda t, s: '{"step": 1, "seconds": NaN}', "seconds must be a number"),
        (lambda t, s: '{"step": 1}', "seconds is missing"),
        (lambda t, s: "[" * 100_000, "no table"),
        (lambda t, s: "nothing", "Expecting value"),
    ],
)
def test_what_can_t_be_a_training_s_state_is_one_sentence(run, change, words):
    rewrite(run, change)
    before = (run / "model.safetensors").read_bytes()
    with pytest.raises(InputError, match=words) as told:
        resume(run, steps=4)
    assert str(run / CHECKPOINT) in str(told.value)
    assert (run / "model.safetensors").read_bytes() == before
    assert step_of(run) in (0, 2)


def test_a_change_of_one_number_is_noticed(run):
    def change(tensors, state):
        tensors["model.routed.0.weight"].view(-1)[0] += 1e-6

    rewrite(run, change, old=False)
    with pytest.raises(InputError, match="its content is not what was written"):
        resume(run, steps=4)


def test_a_changed_step_is_noticed(run):
    rewrite(run, lambda tensors, state: state.update(step=1), old=False)
    with pytest.raises(InputError, match="its content is not what was written"):
        resume(run, steps=4)


def test_an_older_checkpoint_without_a_hash_goes_on_to_the_same_weights(run, trained, tmp_path_factory):
    resume(run, steps=3)
    other = tmp_path_factory.mktemp("older")
    for name, content in trained.items():
        (other / name).write_bytes(content)
    rewrite(other, lambda tensors, state: None)
    resume(other, steps=3)
    assert (other / "model.safetensors").read_bytes() == (run / "model.safetensors").read_bytes()
