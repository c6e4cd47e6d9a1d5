"""Damaged files of a run: each is read as what it is, and can then be shown, or is one sentence."""

import functools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from fuzz.mutations import answer as watched
from fuzz.mutations import both_ways, cases, of_bytes, of_json

from gammacaps.auditing.table import table as audit_table
from gammacaps.data import load_set
from gammacaps.environment import describe_machine
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.prediction_store import PredictionStore
from gammacaps.evaluation.specs import sweep_specs
from gammacaps.evaluation.table import table
from gammacaps.models import create, to_config
from gammacaps.paper.facts import read_facts
from gammacaps.paper.record import FACTS, read_record
from gammacaps.reporting.accuracies import earlier
from gammacaps.reporting.config import ReportConfig
from gammacaps.reporting.headline import headline, title
from gammacaps.reporting.sections.audit import shown_audit
from gammacaps.reporting.sections.checks import checks
from gammacaps.reporting.sections.hidden import kind_of
from gammacaps.reporting.sections.network import facts, lead
from gammacaps.reporting.sections.rerun import commands, versions
from gammacaps.reporting.sections.scores import scores
from gammacaps.reporting.sections.strength import curve
from gammacaps.reporting.study import Study
from gammacaps.runs.metrics import METRICS, forget_metrics_after, read_metrics
from gammacaps.runs.run import AUDIT, RESULTS, Run
from gammacaps.runs.train_config import TrainConfig
from gammacaps.runs.warnings import WARNINGS, TrainingWarning, add_warning, forget_warnings_after, read_warnings
from gammacaps.start.config import StartConfig
from gammacaps.start.output import FORMAT, STATE, State, read_state, write_state
from gammacaps.start.plan import Plan
from gammacaps.training import loop
from gammacaps.training.checkpoint import CHECKPOINT, put_back, read_checkpoint, step_of
from gammacaps.training.learner import Learner
from gammacaps.training.train import train

answer = functools.partial(watched, memory=None)  # the files are small, and none unpacks to more than it is
TINY = ("filters=4", "primary_types=2", "hidden=[3]", "decoder=[]")
TEST = load_set("fashion-mini")
MACHINE = describe_machine("cpu")
NETWORK = create("small", filters=4, primary_types=2, hidden=(3,), decoder=())
MINI = Path(loop.__file__).parents[1] / "models" / "weights" / "fashion-mini"
RECORDS = Path(__file__).parents[2] / "docs" / "reproduction"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("trained") / "run"
    train(TrainConfig(model=TINY, batch=8, steps=3, robust=False, device="cpu", log_every=1), run)
    for name in (RESULTS, AUDIT):
        shutil.copy(MINI / name, run / name)
    return run


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))


def page(run: Run, results: dict[str, Any] | None = None, audit: dict[str, Any] | None = None) -> Study:
    """What a report knows of a run when it comes to words; nothing is generated for it."""
    known = {
        "run": run.folder,
        "about": run.config,
        "results": results,
        "audit": audit,
        "last": run.last_metrics(),
        "config": ReportConfig(),
        "machine": MACHINE,
        "model": NETWORK,
        "test": TEST,
        "made": (1, 1),
        "capsules": {},
        "totals": {},
    }
    study = object.__new__(Study)
    for name, value in known.items():
        object.__setattr__(study, name, value)
    return study


@pytest.mark.slow
def test_config(run: Path) -> None:
    values, found = json.loads((run / "config.json").read_text()), []
    shipped = json.loads((MINI / "config.json").read_text())

    def read() -> bool:
        one = Run(run)
        shown = page(one)
        title(shown), lead(shown), facts(shown), commands(shown), versions(shown)
        assert one.radius is None or 0 < one.radius <= 1
        assert one.steps == 3
        one.data_name()
        return one.model().config.classes == 10

    for chance in cases("config.json"):
        damaged = chance.choice((values, values, {**shipped, "model": values["model"]}))
        (run / "config.json").write_bytes(of_json(damaged, chance))
        found.append(bool(answer(read)))
    both_ways(found)


@pytest.mark.slow
def test_weights(run: Path) -> None:
    content, found = (run / "model.safetensors").read_bytes(), []
    header = 8 + int.from_bytes(content[:8], "little")
    for chance in cases("model.safetensors"):
        (run / "model.safetensors").write_bytes(of_bytes(content, chance, among=header))
        model = answer(lambda: Run(run).model())
        assert model is None or all(torch.isfinite(p).all() for p in model.parameters())
        found.append(model is not None)
    both_ways(found)


@pytest.mark.slow
def test_metrics(run: Path) -> None:
    content = (run / METRICS).read_bytes()
    first = json.loads(content.splitlines()[0])
    for chance in cases("metrics.jsonl"):
        damaged = of_bytes(content, chance) if chance.random() < 0.5 else of_json(first, chance) + b"\n" + content
        (run / METRICS).write_bytes(damaged)
        rows = answer(lambda: read_metrics(run))
        assert rows is not None  # what is broken is left out
        assert all(isinstance(row["step"], int) for row in rows)
        one = Run(run)
        assert answer(lambda: (one.steps, lead(page(one)))) is not None  # noqa: B023  called at once
        answer(lambda: forget_metrics_after(run, 2))
        assert all(row["step"] <= 2 for row in read_metrics(run))


@pytest.mark.slow
def test_results(run: Path) -> None:
    values, found = json.loads((run / RESULTS).read_text()), []

    def read() -> bool:
        one = Run(run)
        results = one.results()
        assert results is not None
        table(results)
        shown = page(one, results)
        scores(shown, results), checks(results), curve(shown, results), headline(shown), commands(shown)
        earlier(shown, results)
        return True

    for chance in cases("results.json"):
        (run / RESULTS).write_bytes(of_json(values, chance))
        found.append(bool(answer(read)))
    both_ways(found)


@pytest.mark.slow
def test_audit(run: Path) -> None:
    values, found = json.loads((run / AUDIT).read_text()), []

    def read() -> bool:
        one = Run(run)
        audit = one.audit()
        assert audit is not None
        audit_table(audit)
        shown = page(one, audit=audit)
        shown_audit(audit, earlier(shown, audit))
        kind_of(audit, "hidden 1", 3)
        commands(shown)
        return True

    for chance in cases("audit.json"):
        (run / AUDIT).write_bytes(of_json(values, chance))
        found.append(bool(answer(read)))
    both_ways(found)


@pytest.mark.slow
def test_checkpoint(run: Path) -> None:
    """Also by a learner that it is put back into: the state is the very one that was written, or it is refused."""
    content, found = (run / CHECKPOINT).read_bytes(), []
    header = 8 + int.from_bytes(content[:8], "little")
    model = Run(run).model()
    whole = read_checkpoint(run)
    assert whole is not None

    def read() -> bool:
        stored = read_checkpoint(run)
        assert stored is not None
        average = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        put_back(stored, Learner(model, torch.optim.Adam(model.parameters()), average))
        assert (stored.header.step, stored.header.seconds) == (whole.header.step, whole.header.seconds)
        assert all(
            torch.equal(tensor, whole.parts[part][name])
            for part, tensors in stored.parts.items()
            for name, tensor in tensors.items()
        )
        return True

    for chance in cases("checkpoint"):
        (run / CHECKPOINT).write_bytes(of_bytes(content, chance, among=header))
        found.append(bool(answer(read)))
        assert isinstance(answer(lambda: step_of(run)), int)
    assert not all(found)


@pytest.mark.slow
def test_kept_evaluations(tmp_path: Path) -> None:
    """What was measured before is what was written, or it is refused."""
    spec = sweep_specs(EvaluateConfig(sweep=(0.1,)))[0]
    places, predicted, found = torch.arange(20), torch.arange(20) % 10, []
    store = PredictionStore(tmp_path, weights="w", data="d")
    store.add(spec, places, predicted, 0.0, 1.5)
    (path,) = tmp_path.iterdir()
    values = json.loads(path.read_text())

    def read() -> bool:
        kept = PredictionStore(tmp_path, weights="w", data="d").predicted(spec, places)
        assert torch.equal(kept, predicted) or (kept == -1).all()  # the latter where it is of other weights
        return True

    for chance in cases("kept"):
        if chance.random() < 0.2:
            path.write_text(json.dumps(values, indent=chance.choice((None, 1, 4)), sort_keys=True))  # the same content
        else:
            path.write_bytes(of_json(values, chance))
        found.append(bool(answer(read)))
    both_ways(found)


@pytest.mark.slow
def test_a_number_changed_in_a_kept_evaluation_is_noticed(tmp_path: Path) -> None:
    spec = sweep_specs(EvaluateConfig(sweep=(0.1,)))[0]
    PredictionStore(tmp_path, weights="w", data="d").add(spec, torch.arange(3), torch.tensor([1, 2, 3]), 0.0, 1.5)
    (path,) = tmp_path.iterdir()
    path.write_text(path.read_text().replace('"1": 2', '"1": 4'))
    assert answer(lambda: PredictionStore(tmp_path, weights="w", data="d").predicted(spec, torch.arange(3))) is None


@pytest.mark.slow
@pytest.mark.skipif(not RECORDS.is_dir(), reason="the reproduction's figures are not in this copy")
def test_records_of_the_reproduction(tmp_path: Path) -> None:
    source = min((path for path in RECORDS.glob("*.json") if path.name != FACTS), key=lambda path: path.stat().st_size)
    path, found = tmp_path / source.name, []
    values, arrays = json.loads(source.read_text()), source.with_suffix(".npz").read_bytes()

    def read() -> bool:
        record = read_record(path)
        record.line(), record.suite(0.3), record.accuracy("pgd", 0.1)
        return True

    for chance in cases("record"):
        whole = chance.random() < 0.5
        path.write_bytes(of_json(values, chance) if whole else source.read_bytes())
        path.with_suffix(".npz").write_bytes(arrays if whole else of_bytes(arrays, chance))
        found.append(bool(answer(read)))
    both_ways(found)


@pytest.mark.slow
@pytest.mark.skipif(not (RECORDS / FACTS).exists(), reason="the reproduction's figures are not in this copy")
def test_facts_of_the_reproduction(tmp_path: Path) -> None:
    values = json.loads((RECORDS / FACTS).read_text())
    for chance in cases("facts"):
        (tmp_path / FACTS).write_bytes(of_json(values, chance))
        answer(lambda: read_facts(tmp_path))


@pytest.mark.slow
def test_the_network_of_a_run_is_the_one_that_was_trained(run: Path) -> None:
    assert json.loads(json.dumps(to_config(Run(run).model()))) == Run(run).config.model


@pytest.mark.slow
def test_warnings(tmp_path: Path) -> None:
    add_warning(tmp_path, TrainingWarning(20, "chance", "stuck"))
    add_warning(tmp_path, TrainingWarning(40, "overlearned", "by heart"))
    whole, found = (tmp_path / WARNINGS).read_bytes(), []
    for chance in cases(WARNINGS):
        (tmp_path / WARNINGS).write_bytes(of_bytes(whole, chance))
        answer(lambda: forget_warnings_after(tmp_path, 30))
        kept = answer(lambda: read_warnings(tmp_path))
        assert kept is not None
        assert all(each.step <= 30 for each in kept)
        found.append(len(kept) == 1)
    both_ways(found)


@pytest.mark.slow
def test_the_state_of_a_start(tmp_path: Path) -> None:
    plan = Plan("small", 0.1, 400, 30.0, 90.0, ("a note",))
    write_state(tmp_path, State(FORMAT, "/pictures", "0123", StartConfig(), plan))
    values, found = json.loads((tmp_path / STATE).read_text()), []
    for chance in cases(STATE):
        (tmp_path / STATE).write_bytes(of_json(values, chance))
        state = answer(lambda: read_state(tmp_path))
        assert state is None or state.plan is None or (state.plan.steps >= 1 and 0 < state.plan.eps <= 1)
        found.append(state is not None)
    both_ways(found)
