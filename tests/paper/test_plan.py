"""The plan: every part's runs exist, are alike where they are compared, and can be chosen."""

import re
from dataclasses import replace
from typing import get_args

import pytest
from made_up import record

from gammacaps.data.scaled import SPAN
from gammacaps.errors import InputError
from gammacaps.paper.config import PaperPart, ReproduceConfig
from gammacaps.paper.cost import cost_of, cost_table, dealt
from gammacaps.paper.plan import DATA, JUDGED, PARTS, _planned, chosen, limited, plan, same_training
from gammacaps.paper.recipes import RECIPES, best_recipe
from gammacaps.paper.record import path_of, write_record
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
    scaled = {name for name, run in runs.items() if run.data == "smallnorb-scaled" and run.config.robust}
    assert {run.config.eps for name, run in runs.items() if name not in pale | scaled} == {0.3}
    assert {(runs[name].config.eps, runs[name].config.attack_step) for name in pale} == {(0.03, 0.006)}
    assert all({0.03, 0.1, 0.3, 0.5} == set(dict(runs[f"smallnorb-{rule}-robust-0"].worst)) for rule in ("sda", "cnn"))
    assert {run.config.steps for run in runs.values() if run.config.robust and not run.held_back} == {15_000}
    assert {run.config.steps for run in plan(ReproduceConfig(steps=2000)).values()} == {2000}
    config = runs["mnist-sda-robust-0"].config
    assert (config.attack_step, config.attack_steps, config.eps_ramp) == (0.04, 10, 0.1)
    assert runs["fashion-mnist-sda-long-1"].moments == (5000, 15000)
    assert runs["fashion-mnist-sda-long-0"].config.eps_ramp == 0.1
    assert plan(ReproduceConfig(steps=5000))["fashion-mnist-sda-long-0"].moments == (1666, 5000)
    assert not runs["mnist-rba-standard-0"].config.robust
    assert runs["mnist-rba-standard-0"].config.routing == "rba"


def test_both_seeds_of_what_is_trained_under_attack_have_the_worst_case_on_1_000_images():
    attacked = [run for run in plan(WHOLE).values() if run.kind in ("robust", "entropy", "gamma", "deep")]
    for run in attacked:
        assert dict(run.worst)[run.config.eps] == 1000
        other = run.name[:-1] + str(1 - run.config.seed)
        assert other in plan(WHOLE)
    assert {run.rule for run in attacked} == {"sda", "rba", "cnn", "em"}


def test_clean_trainings_end_by_held_back_training_images():
    for run in plan(WHOLE).values():
        assert (run.plateau is not None) == (run.kind == "standard")
        assert (run.config.validate > 0) == (run.kind == "standard" or run.held_back)
    plateau = plan(WHOLE)["mnist-sda-standard-0"].plateau
    assert not plateau.reached(14_999, 0)
    assert not plateau.reached(16_000, 11_500)
    assert plateau.reached(16_000, 11_000)
    assert plan(ReproduceConfig(steps=7))["mnist-sda-standard-0"].plateau is None


def test_em_has_gritzman_s_2_iterations_too():
    runs = plan(WHOLE)
    assert runs["mnist-em2-standard-0"].config.model == ("iterations=2",)
    other = replace(runs["mnist-em2-standard-0"].config, model=())
    assert same_training(other, runs["mnist-em-standard-0"].config)


def test_scaled_smallnorb_has_the_paper_s_radii_in_deviations():
    run = plan(WHOLE)["smallnorb-scaled-sda-robust-0"]
    assert (run.config.eps * SPAN, run.config.attack_step * SPAN) == pytest.approx((0.3, 0.04))
    assert [eps * SPAN for eps in run.radii] == pytest.approx([0.1, 0.3, 0.5])
    assert f"input_scale={SPAN}" in run.config.model
    assert plan(WHOLE)["smallnorb-scaled-em-standard-0"].config.model == (f"input_scale={SPAN}",)


def trial(recipe, right, kept):
    """A trial of a recipe, with so many of each class right, and under attack."""
    name = f"fashion-mnist-sda-recipe-{recipe}-0"
    made = record(name, pgd=(0.9, kept, 0.0))
    rows = [[0] * 10 for _ in range(10)]
    for label, share in enumerate(right):
        rows[label][label], rows[label][(label + 1) % 10] = share, 100 - share
    made.figures["results"]["confusion"] = rows
    return made


def test_a_recipe_is_taken_by_classes_learned_and_then_by_what_stands():
    best = [*[80] * 9, 11]
    trials = [trial("base", [*[90] * 9, 10], 0.9), trial("ramp", best, 0.5), trial("rate", best, 0.6)]
    assert best_recipe(trials) == "rate"
    assert best_recipe(trials[:1]) == "base"
    assert best_recipe([trial("ramp", best, 0.5), trial("entropy", best, 0.5)]) == "ramp"


def test_what_hangs_on_the_recipe_waits_for_it_and_then_has_it(tmp_path):
    options = ReproduceConfig(results=tmp_path)
    waiting = {name for name, run in plan(options).items() if run.needs}
    assert waiting == {n for n, run in plan(options).items() if run.data == "fashion-mnist" and run.worst}
    for recipe in RECIPES:
        made = trial(recipe, [80] * 10, 0.7 if recipe == "rate" else 0.5)
        write_record(path_of(tmp_path, made.name), made.figures, {})
    runs = plan(options)
    assert not any(run.needs for run in runs.values())
    assert {runs[f"fashion-mnist-{rule}-robust-1"].config.lr for rule in ("sda", "rba", "cnn")} == {1e-3}
    assert runs["mnist-sda-robust-0"].config.lr == 3e-3
    assert runs["fashion-mnist-sda-long-0"].config.lr == 3e-3  # the paper's own


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
    assert [run.name for run in chosen(WHOLE, ("confusion",))] == [f"fashion-mnist-sda-long-{seed}" for seed in (0, 1)]
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
    assert set(plan(quick)) < set(plan(WHOLE))
    assert len(plan(quick)) <= 34  # as many take 10 minutes
    assert all(chosen(quick, (part,)) for part in PARTS)
    assert all(run.config.steps <= 200 and run.config.preset != "paper" for run in plan(quick).values())
    assert limited(None, WHOLE) is None
    assert limited(1000, ReproduceConfig(evaluate_images=30)) == 30


def test_the_cost_is_told_before_run_by_run_and_in_sum():
    runs = chosen(WHOLE, ("fair",))
    text = cost_table(runs, {"mnist-sda-robust-0"})
    assert text.count("  done") == 1
    assert re.search(r"mnist-rba-robust-0 +15,000 +PGD-10 +2\.7 +\d+\.\d\n", text)
    assert re.search(r"mnist-em-robust-0 .* estimated", text)
    assert re.search(r"fashion-mnist-cnn-robust-0 .* after the recipes", text)
    left = [cost_of(run) for run in runs if run.name != "mnist-sda-robust-0"]
    minutes = [sum(getattr(cost, of) for cost in left) / 60 for of in ("training", "measuring")]
    assert f"{len(runs)} runs, {len(left)} left: {minutes[0]:.0f} minutes of training and {minutes[1]:.0f} of" in text
    assert cost_table(runs, {run.name for run in runs}).endswith(f"{len(runs)} runs, all done.")


@pytest.mark.parametrize(("preset", "steps", "ms"), [("paper", 40, 31.5), ("deep", 10, 10.5), ("cnn", 10, 4.7)])
def test_the_cost_is_what_was_measured(preset, steps, ms):
    """Milliseconds of a step of training in docs/engine.md."""
    config = TrainConfig(preset=preset, steps=1000, attack_steps=steps)
    run = replace(plan(WHOLE)["mnist-sda-robust-0"], config=config)
    assert cost_of(run).training == pytest.approx(ms, rel=0.03)
    assert cost_of(run).measured


def test_shares_are_all_of_the_work_each_once_and_cost_about_the_same():
    runs = chosen(WHOLE, ("all",))
    parts = [dealt(runs, place, 5) for place in range(1, 6)]
    assert sorted(run.name for part in parts for run in part) == sorted(run.name for run in runs)
    costs = [sum(cost_of(run).total for run in part) for part in parts]
    assert max(costs) < 1.1 * min(costs)
    assert dealt(runs, 1, 1) == runs
    assert ReproduceConfig(share="2/5").part_of_work() == (2, 5)
    for wrong in ("0/5", "6/5", "2", "a/b", "2/", "-1/5", "1/2/3"):
        with pytest.raises(InputError, match="share must be a part such as 2/5, the second of five, not"):
            ReproduceConfig(share=wrong)


@pytest.mark.parametrize(("rule", "kind", "words"), [("sdaa", "robust", "rule"), ("sda", "robst", "kind of training")])
def test_an_unknown_rule_or_kind_is_no_other_one(rule, kind, words):
    with pytest.raises(InputError, match=f"There is no {words}"):
        _planned(ReproduceConfig(), "mnist", rule, kind, 0, None)
