import dataclasses
import json

import pytest
import torch
from independent import scores as loops

import gammacaps
from gammacaps.attacks import fgsm, pgd
from gammacaps.data import load_set
from gammacaps.data.dataset import DataSet
from gammacaps.errors import InputError
from gammacaps.evaluation import run, surrogate
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.evaluate import balanced, balanced_places, evaluate
from gammacaps.evaluation.interval import wilson
from gammacaps.evaluation.table import table
from gammacaps.models import to_config
from gammacaps.models.folder import write_config, write_weights

CONFIG = EvaluateConfig(
    attacks=("paper",),
    eps=(0.0, 0.05),
    attack_steps=3,
    attack_step=0.02,
    batch=32,
    limit=60,
    device="cpu",
    checks=False,
)


@pytest.fixture(scope="module")
def trained():
    """A small network with its weights moved by a few steps, so that it is right more often than chance."""
    torch.manual_seed(0)
    model = gammacaps.create("small", filters=8, primary_types=2, hidden=(6,), decoder=())
    images, labels = gammacaps.load_data("fashion-mini", "train")
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    from gammacaps.training.losses import margin_loss

    for step in range(40):
        optimizer.zero_grad()
        margin_loss(model(images[step * 48 : step * 48 + 48]), labels[step * 48 : step * 48 + 48]).backward()
        optimizer.step()
    return model.eval()


def test_figures_are_what_a_second_reckoning_gives(trained):
    data = load_set("fashion-mini")
    results = evaluate(trained, data, CONFIG)
    images, labels = balanced(data, 60)
    with torch.no_grad():
        parse = trained.parse(images)
    predicted = parse.scores.argmax(1)
    correct = predicted == labels
    assert results["clean"]["correct"] == int(correct.sum()) > 12
    assert results["clean"]["interval"] == pytest.approx(loops.wilson(int(correct.sum()), 60))
    assert sum(map(sum, results["confusion"])) == 60
    assert results["confusion"][3][5] == int(((labels == 3) & (predicted == 5)).sum())
    # T: each routed layer's and their mean, over all and over each class; D of the hidden layer.
    per_layer = [loops.t_score(c.numpy()) for c in parse.couplings]
    assert list(results["T"]["layers"].values()) == pytest.approx(per_layer, abs=1e-5)
    assert results["T"]["mean"] == pytest.approx(sum(per_layer) / 2, abs=1e-5)
    of_zero = loops.t_score(parse.couplings[0][labels == 0].numpy())
    assert results["T"]["by_class"][0]["layers"]["hidden 1"] == pytest.approx(of_zero, abs=1e-5)
    hidden = parse.activations[1].double().numpy()
    assert results["D"]["mean"] == pytest.approx(loops.d_score(hidden), abs=1e-5)
    assert results["D"]["by_class"][4]["mean"] == pytest.approx(loops.d_score(hidden[labels == 4]), abs=1e-5)
    # An attack of radius 0 changes nothing; a larger one keeps only images that were right before and after.
    by = {(row["attack"], row["eps"]): row for row in results["attacks"]}
    assert by["fgsm", 0.0]["correct"] == by["pgd", 0.0]["correct"] == int(correct.sum())
    # In the same batches and from the same starts, so that every sum is in the same order.
    places, kept = balanced_places(data, 60), {"fgsm": 0, "pgd": 0}
    for index in correct.nonzero().squeeze(1).split(32):
        x, y, generator = images[index], labels[index], torch.Generator().manual_seed(int(places[index[0]]))
        moved = {"fgsm": fgsm(trained, x, y, eps=0.05)}
        moved["pgd"] = pgd(trained, x, y, eps=0.05, step=0.02, steps=3, until_broken=True, generator=generator)
        for name, attacked in moved.items():
            with torch.no_grad():
                kept[name] += int((trained(attacked).argmax(1) == y).sum())
    assert by["fgsm", 0.05]["correct"] == kept["fgsm"] < int(correct.sum())
    assert by["pgd", 0.05]["correct"] == kept["pgd"] < int(correct.sum())
    assert json.loads(json.dumps(results)) == results
    assert "PGD-3 eps 0.05" in table(results)


def test_results_do_not_depend_on_the_batch(trained):
    data = load_set("fashion-mini")
    small, large = (evaluate(trained, data, EvaluateConfig(eps=(), batch=b, limit=50, device="cpu")) for b in (7, 100))
    with torch.no_grad():
        best, second = trained(balanced(data, 50)[0]).topk(2).values.T
    near = int((best - second < 1e-4).sum())  # so near to another class rounding may decide
    moved = torch.tensor(small["confusion"]) - torch.tensor(large["confusion"])
    assert moved.abs().sum() <= 2 * near < 10
    assert small["T"]["mean"] == pytest.approx(large["T"]["mean"], abs=1e-5)
    assert small["D"]["mean"] == pytest.approx(large["D"]["mean"], abs=1e-5)


@pytest.mark.parametrize(("preset", "few"), [("cnn", {"filters": (4, 4)}), ("small", {"filters": 4, "hidden": (3,)})])
def test_clean_images_pass_the_network_once(preset, few):
    model = gammacaps.create(preset, **few)
    passed = []
    first = model.encoder if preset == "small" else model.layers[0]
    first.register_forward_pre_hook(lambda module, given: passed.append(len(given[0])))
    results = evaluate(model, load_set("fashion-mini"), EvaluateConfig(eps=(), batch=16, limit=40, device="cpu"))
    assert passed == [16, 16, 8]
    assert sum(row[k] for k, row in enumerate(results["confusion"])) == results["clean"]["correct"]


@pytest.mark.slow
@pytest.mark.parametrize(("preset", "few"), [("cnn", {"filters": (4, 4)}), ("matrix", {"types": (3, 3)})])
def test_other_networks_and_class_counts(preset, few):
    images, labels = torch.rand(9, 1, 28, 28), torch.tensor([0, 1, 2] * 3)
    data = DataSet(images, labels, ("a", "b", "c"), "made", "here")
    model = gammacaps.create(preset, classes=3, **few)
    config = EvaluateConfig(attacks=("paper", "noise"), eps=(0.1,), attack_steps=2, device="cpu", checks=False)
    results = evaluate(model, data, config)
    assert (results["T"] is None) == (preset == "cnn")
    assert "FGSM eps 0.1" in table(results)


def test_a_class_without_images_has_no_score(trained):
    images, labels = gammacaps.load_data("fashion-mini")
    data = DataSet(images[labels < 5], labels[labels < 5], tuple("0123456789"), "half", "here")
    results = evaluate(trained, data, EvaluateConfig(eps=(), device="cpu"))
    assert results["T"]["by_class"][7]["mean"] is None
    assert results["D"]["by_class"][7]["mean"] is None


def test_a_limit_takes_each_class_in_its_turn():
    data = load_set("fashion-mini")
    _, labels = balanced(data, 25)
    counts = labels.bincount(minlength=10)
    assert counts.sum() == 25
    assert counts.max() - counts.min() == 1
    assert len(balanced(data, 10_000)[1]) == 500


def test_a_limit_takes_a_fair_sample_of_a_set_that_lists_alike_images_together():
    """Of two classes with five toys each, a hundred images a toy, toy by toy: as of smallNORB's test images."""
    toys = torch.arange(1000) // 200
    data = DataSet(toys.view(-1, 1, 1, 1) / 5, torch.arange(1000) % 2, ("a", "b"), "toys", "here")
    places = balanced_places(data, 100)
    assert data.labels[places].bincount().tolist() == [50, 50]
    counts = toys[places].bincount(minlength=5)  # 20 each by chance, give or take 3.8 (hypergeometric)
    assert counts.min() >= 20 - 3 * 3.8
    assert places.equal(places.sort().values)
    assert places.equal(balanced_places(data, 100))


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "fashion-mini"])
def test_sets_whose_order_is_mixed_are_taken_from_their_beginning(name):
    data = DataSet(torch.zeros(60, 1, 1, 1), torch.arange(60) % 3, ("a", "b", "c"), name, "here")
    assert balanced_places(data, 30).tolist() == list(range(30))


@pytest.mark.slow
def test_what_speaks_against_the_figures_is_in_the_table(trained):
    short = dataclasses.replace(CONFIG, eps=(0.2,), limit=10, checks=True)
    words = " ".join(table(evaluate(trained, load_set("fashion-mini"), short)).split())
    assert "FAIL steps-reach-eps: 3 steps of 0.02 reach 0.06, less than eps 0.2" in words
    assert "do not believe them" in words


@pytest.mark.parametrize(("correct", "count"), [(0, 10), (10, 10), (7, 10), (9240, 10_000)])
def test_intervals_are_wilson_s(correct, count):
    low, high = wilson(correct, count)
    assert [low, high] == pytest.approx(loops.wilson(correct, count), abs=1e-12)
    assert 0 <= low <= correct / count <= high <= 1


def test_data_that_does_not_fit_the_network_gets_one_sentence(trained):
    data = DataSet(torch.rand(4, 1, 20, 20), torch.tensor([0, 1, 0, 1]), ("a", "b"), "other", "here")
    with pytest.raises(InputError, match="evaluate it on data like its own"):
        evaluate(trained, data, CONFIG)
    with pytest.raises(InputError, match="eps must be 0 or more"):
        EvaluateConfig(eps=(-0.1,))
    with pytest.raises(InputError, match="limit must be at least 1"):
        EvaluateConfig(limit=0)


def test_the_network_of_transfer_can_be_the_first_thing_that_an_evaluation_keeps(tmp_path, monkeypatch):
    small = gammacaps.create("cnn", filters=(4, 4), width=8)
    monkeypatch.setattr(surrogate, "train", lambda config, folder, **_: gammacaps.save(small, folder))
    folder = tmp_path / run.FOLDER / "cnn"
    for _ in range(2):  # made, then found
        surrogate.surrogate_network(folder, {"data": "fashion-mini", "device": "cpu"}, quiet=True)
    assert [path.name for path in folder.parent.iterdir()] == ["cnn"]


def test_another_evaluation_may_make_the_network_of_transfer_first(tmp_path, monkeypatch):
    small, folder = gammacaps.create("cnn", filters=(4, 4), width=8), tmp_path / run.FOLDER / "cnn"

    def train(config, made, **_):
        gammacaps.save(small, made)
        gammacaps.save(small, folder)  # as another process, in the meantime

    monkeypatch.setattr(surrogate, "train", train)
    surrogate.surrogate_network(folder, {"data": "fashion-mini", "device": "cpu"}, quiet=True)
    assert [path.name for path in folder.parent.iterdir()] == ["cnn"]


def test_classes_of_other_names_are_told(trained, tmp_path, capsys):
    folder = tmp_path / "run"
    folder.mkdir()
    names = ["a", *load_set("fashion-mini").class_names[1:]]
    about = {"model": to_config(trained), "train": {"data": "fashion-mini"}}
    write_weights(folder, trained.state_dict())
    few = dataclasses.replace(CONFIG, limit=10)
    for class_names, told in ((names, True), (list(load_set("fashion-mini").class_names), False)):
        write_config(folder, {**about, "data": {"name": "letters", "class_names": class_names}})
        run.evaluate_run(folder, few, quiet=True)
        assert ("Note: the network was trained on a, Trouser" in capsys.readouterr().err) is told
