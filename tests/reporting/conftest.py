"""For the tests of pages: the browser, and a tiny run that has everything a page shows."""

import pytest
from browser import browser  # noqa: F401  a fixture

from gammacaps.auditing.config import AuditConfig
from gammacaps.auditing.run import audit_run
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.run import evaluate_run
from gammacaps.reporting.config import ReportConfig
from gammacaps.reporting.page import compose
from gammacaps.reporting.study import open_study
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.train import train

TINY = ("filters=8", "primary_types=2", "hidden=[6]", "decoder=[16]")


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """A tiny network that was trained for a few steps under attack, measured and audited."""
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    training = TrainConfig(model=TINY, batch=32, steps=3, eps=0.1, attack_steps=1, device="cpu", log_every=1)
    train(training, folder)
    evaluation = EvaluateConfig(
        attacks=("paper",), eps=(0.05, 0.1), limit=20, attack_steps=2, checks=False, device="cpu"
    )
    evaluate_run(folder, evaluation, quiet=True)
    # After so few steps no capsule is longer than the usual 0.5.
    audit_run(folder, AuditConfig(limit=20, attack_steps=1, tau=0.1, taus=(0.1, 0.2), device="cpu"), quiet=True)
    return folder


@pytest.fixture(scope="session")
def quick():
    """Options that make a page in no time."""
    return ReportConfig(starts=2, steps=2, trees=2, images=20, device="cpu")


@pytest.fixture(scope="session")
def study(run, quick):
    return open_study(run, quick)


@pytest.fixture(scope="session")
def page(study):
    return compose(study)


@pytest.fixture(scope="session")
def contents(page):
    """By the names of the sections."""
    return page.contents
