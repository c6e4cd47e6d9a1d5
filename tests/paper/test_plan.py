"""The plan: every part's runs exist, are alike where they are compared, and can be chosen."""

from dataclasses import replace
from typing import get_args

import pytest

from gammacaps.errors import InputError
from gammacaps.paper.config import PaperPart, ReproduceConfig
from gammacaps.paper.cost import cost_table, seconds
from gammacaps.paper.plan import DATA, JUDGED, PARTS, _planned, chosen, limited, plan, same_training
from gammacaps.runs.train_config import TrainConfig

WHOLE = ReproduceConfig()


def test_every_part_has_its_runs_and_every_run_its_part():
    runs = plan(WHOLE)
    needed = {name for names in PARTS.values() for name in names}
    assert needed == set(runs)
    assert all(name == run.name for name, run in runs.items())
    assert set(get_args(PaperPart)) == {*PARTS, "all"}


def test_no_two_runs_are_the_same_training():
    configs = [run.config for run in plan(WHOLE).values()]
    assert not any(same_training(a, b) for place, a in enumerate(configs) for b in configs[:place])


def test_the_paper_s_radius_lengths_and_moments():
    runs = plan(WHOLE)
    pale = {name for name, run in runs.items() if run.data == "smallnorb" and run.config.robust}
    assert {run.config.eps for name, run in runs.items() if name not in pale} == {0.3}
    assert {(runs[name].config.eps, runs[name].config.attack_step) for name in pale} == {(0.03, 0.006)}
    assert all({0.03, 0.1, 0.3, 0.5} == set(dict(runs[f"smallnorb-{rule}-robust-0"].worst)) for rule in ("sda", "cnn"))
    shorter = plan(ReproduceConfig(steps=2000))
    assert [shorter[name].config.steps for name in ("mnist-sda-robust-0", "mnist-em-robust-0")] == [2000, 300]
    ramps = {name: runs[name].config.eps_ramp for name in ("mnist-sda-robust-0", "fashion-mnist-sda-long-0")}
    assert ramps == {"mnist-sda-robust-0": 0.1, "fashion-mnist-sda-long-0": 0.1}
    assert {runs[f"fashion-mnist-{rule}-robust-0"].config.eps_ramp for rule in ("sda", "rba", "cnn")} == {0.5}
    config = runs["mnist-sda-robust-0"].config
    assert (config.attack_step, config.attack_steps, config.steps) == (0.04, 10, 4000)
    assert runs["fashion-mnist-sda-long-0"].moments == (5000, 15000)
    assert plan(ReproduceConfig(steps=5000))["fashion-mnist-sda-long-0"].moments == (1666, 5000)
    assert runs["mnist-sda-standard-0"].config.steps == 3000
    assert not runs["mnist-rba-standard-0"].config.robust
    assert runs["mnist-rba-standard-0"].config.routing == "rba"


@pytest.mark.parametrize("data", DATA)
def test_what_the_fair_table_compares_is_trained_alike(data):
    runs = plan(WHOLE)
    fields = ("eps", "attack_step", "attack_steps", "eps_ramp", "steps", "batch", "lr", "schedule", "ema")
    alike = [[getattr(runs[f"{data}-{rule}-robust-0"].config, f) for f in fields] for rule in ("sda", "rba", "cnn")]
    assert alike[0] == alike[1] == alike[2]
    first = [r for r in runs.values() if r.data == data and r.kind == "robust" and r.config.seed == 0]
    assert {r.rule for r in first} == {"sda", "rba", "cnn", "em"}
    assert all(r.config.eps in dict(r.worst) for r in first)


@pytest.mark.parametrize("data", JUDGED)
@pytest.mark.parametrize("rule", ["sda", "rba", "cnn"])
def test_the_runs_on_cross_entropy_differ_in_the_loss_alone(data, rule):
    runs = plan(WHOLE)
    margin, entropy = runs[f"{data}-{rule}-robust-0"].config, runs[f"{data}-{rule}-entropy-0"].config
    assert (margin.loss, margin.attack_loss) == ("own", "margin")
    assert (entropy.loss, entropy.attack_loss) == (("own", "ce") if rule == "cnn" else ("ce-log", "ce-log"))
    assert same_training(replace(entropy, loss=margin.loss, attack_loss=margin.attack_loss), margin)
    assert set(dict(runs[f"{data}-{rule}-entropy-0"].worst)) == {margin.eps}


def test_parts_runs_and_lengths_can_be_chosen():
    assert [run.name for run in chosen(WHOLE, ("confusion",))] == ["fashion-mnist-sda-long-0"]
    few = ReproduceConfig(runs=("mnist-cnn-robust-0", "mnist-sda-robust-0"), steps=7)
    assert [run.name for run in chosen(few, ("all",))] == ["mnist-sda-robust-0", "mnist-cnn-robust-0"]
    assert {run.config.steps for run in chosen(few, ("all",))} == {7}
    with pytest.raises(
        InputError, match=r"no run of the reproduction 'mnist-sda-robust' \(did you mean 'mnist-sda-rob"
    ):
        chosen(ReproduceConfig(runs=("mnist-sda-robust",)), ("all",))
    with pytest.raises(InputError, match="mnist-cnn-robust-0 is no run of table1, maps: leave that out"):
        chosen(few, ("table1", "maps"))
    with pytest.raises(InputError, match="steps must be at least 1, not 0"):
        ReproduceConfig(steps=0)


def test_the_quick_one_is_small_and_lies_elsewhere():
    quick = ReproduceConfig(quick=True)
    assert quick.results_folder != WHOLE.results_folder
    assert quick.work_folder != WHOLE.work_folder
    assert set(plan(quick)) == set(plan(WHOLE))
    assert all(run.config.steps <= 200 and run.config.preset != "paper" for run in plan(quick).values())
    assert limited(None, WHOLE) is None
    assert limited(1000, ReproduceConfig(evaluate_images=30)) == 30


def test_the_cost_is_told_before():
    runs = chosen(WHOLE, ("fair",))
    text = cost_table(runs, {"mnist-sda-robust-0"})
    assert "mnist-sda-robust-0" in text
    assert text.count("done") == 1
    assert f"{len(runs)} runs, " in text
    assert cost_table(runs, {run.name for run in runs}).endswith(f"{len(runs)} runs, all done.")
    paper = TrainConfig(preset="paper", steps=15000)
    assert 6 * 60 < seconds(paper) < 10 * 60  # measured: 30 ms a step
    assert seconds(TrainConfig(preset="paper", steps=15000, robust=False)) < seconds(paper) / 5


@pytest.mark.parametrize(("rule", "kind", "words"), [("sdaa", "robust", "rule"), ("sda", "robst", "kind of training")])
def test_an_unknown_rule_or_kind_is_no_other_one(rule, kind, words):
    with pytest.raises(InputError, match=f"There is no {words}"):
        _planned(ReproduceConfig(), "mnist", rule, kind, 0)
