"""For the tests of the explorer: the browser, two tiny runs, and a server that shows them."""

import pytest
from browser import browser  # noqa: F401  a fixture
from serving import make_run, serving

from gammacaps.audit.config import AuditConfig
from gammacaps.audit.run import audit_run
from gammacaps.explorer.config import ExploreConfig
from gammacaps.explorer.networks import load_networks


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Two tiny networks, the first one audited."""
    folder = tmp_path_factory.mktemp("runs")
    first, second = make_run(folder / "sda"), make_run(folder / "rba", routing="rba")
    audit_run(first, AuditConfig(limit=20, attack_steps=1, tau=0.1, taus=(0.1, 0.2), device="cpu"), quiet=True)
    return first, second


@pytest.fixture(scope="session")
def networks(runs):
    return load_networks([str(run) for run in runs], ExploreConfig())


@pytest.fixture(scope="module")
def port(networks):
    with serving(networks) as (port, _):
        yield port
