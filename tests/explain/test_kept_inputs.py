"""Generated inputs that a run's folder keeps: given again instead of made again, and only where they are the same."""

import dataclasses

import pytest
import torch

import gammacaps
from gammacaps.errors import InputError
from gammacaps.explain import activate_all, kept_inputs
from gammacaps.explain.kept_inputs import inputs_of, numbers_kept
from gammacaps.runs.inputs import INPUTS, read_inputs, write_inputs
from gammacaps.runs.run import Run

FEW = {"starts": 3, "steps": 4, "penalty": 1e-5, "search": "improved", "noise": 0.05, "seed": 0}


@pytest.fixture
def run(tmp_path):
    torch.manual_seed(0)
    gammacaps.save(gammacaps.create("small", decoder=()), tmp_path / "run")
    return Run(tmp_path / "run")


@pytest.fixture
def model(run):
    return run.model()


@pytest.fixture
def makings(monkeypatch):
    """How often inputs are made from here on."""
    calls = []

    def counted(*given, **options):
        calls.append(given[1])
        return activate_all(*given, **options)

    monkeypatch.setattr(kept_inputs, "activate_all", counted)
    return calls


def same(one, other):
    pairs = zip(dataclasses.astuple(one), dataclasses.astuple(other), strict=True)
    return all(torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in pairs)


def test_they_are_what_activate_gives_in_steps_of_a_pixel_s_levels(run, model):
    kept = inputs_of(run, model, "class", [2, 5], **FEW)
    for one, made in zip(kept, activate_all(model, "class", [2, 5], **FEW), strict=True):
        assert (one.image - made.image).abs().max() <= 0.5 / 255 + 1e-6
        assert (one.best - made.best).abs().max() <= 0.5 / 255 + 1e-6
        assert same(*(dataclasses.replace(each, image=made.image, best=made.best) for each in (one, made)))


def test_the_second_time_none_is_made(run, model, makings):
    first = inputs_of(run, model, "class", range(10), **FEW)
    second = inputs_of(run, model, "class", [7, 1], **FEW)
    assert makings == ["class"]
    assert all(same(first[j], one) for j, one in zip((7, 1), second, strict=True))


@pytest.mark.parametrize("changed", [{"steps": 5}, {"noise": 0.1}, {"seed": 1}, {"search": "paper"}])
def test_other_options_make_them_anew_and_leave_other_layers(run, model, makings, changed):
    for layer, options in (("hidden 1", FEW), ("class", FEW), ("class", FEW | changed)):
        inputs_of(run, model, layer, [0], **options)
    assert makings == ["hidden 1", "class", "class"]
    assert run.inputs()["class"].made.items() >= (FEW | changed).items()
    assert run.inputs()["hidden 1"].made.items() >= FEW.items()


@pytest.mark.parametrize(
    ("capsules", "changed"), [([0, 1], {"steps": 3}), ([0, 1], {"starts": 2}), ([0], {"steps": 9})]
)
def test_a_trial_leaves_what_was_searched_harder_or_for_more_capsules(run, model, capsules, changed):
    inputs_of(run, model, "class", [0, 1], **FEW)
    before = (run.folder / INPUTS).read_bytes()
    inputs_of(run, model, "class", capsules, **FEW | changed)
    assert (run.folder / INPUTS).read_bytes() == before


def test_other_weights_or_a_capsule_that_is_not_there_make_them_anew(run, model, makings):
    inputs_of(run, model, "class", [0, 1], **FEW)
    inputs_of(run, model, "class", [0, 2], **FEW)
    with torch.no_grad():
        model.routed[0].weight += 0.01
    inputs_of(run, model, "class", [0, 2], **FEW)
    assert makings == ["class"] * 3


def test_nothing_is_written_where_that_is_not_asked_for(run, model):
    inputs_of(run, model, "class", [0], keep=False, **FEW)
    assert not (run.folder / INPUTS).exists()


def test_the_numbers_of_kept_ones_hold_for_all_layers_or_are_not_told(run, model):
    how = {name: value for name, value in FEW.items() if name not in ("starts", "steps")}
    asked = {"hidden 1": how, "class": how}
    assert numbers_kept(run, model, asked) is None
    for layer, count in zip(model.layers[1:], model.counts()[1:], strict=True):
        inputs_of(run, model, layer, range(count), **FEW)
    assert numbers_kept(run, model, asked) == (3, 4)
    assert numbers_kept(run, model, asked | {"class": how | {"noise": 0.2}}) is None
    inputs_of(run, model, "class", range(10), **FEW | {"steps": 5})
    assert numbers_kept(run, model, asked) is None


def test_a_broken_file_is_one_sentence(run, model):
    inputs_of(run, model, "class", [0], **FEW)
    whole = (run.folder / INPUTS).read_bytes()
    (run.folder / INPUTS).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"inputs.safetensors holds no inputs that this version knows"):
        inputs_of(run, model, "class", [0], **FEW)


def test_inputs_of_another_shape_are_refused(run, model):
    inputs_of(run, model, "class", [0], **FEW)
    kept = read_inputs(run.folder)["class"]
    cut = dataclasses.replace(kept, tensors={**kept.tensors, "image": kept.tensors["image"][..., :5]})
    write_inputs(run.folder, {"class": cut})
    with pytest.raises(InputError, match="does not hold inputs of this network"):
        inputs_of(run, model, "class", [0], **FEW)
