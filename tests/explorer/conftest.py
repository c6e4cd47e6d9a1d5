"""For the tests of the explorer: the browser, two tiny runs, and a server that shows them."""

import dataclasses

import pytest
from browser import Watch, browser  # noqa: F401  a fixture
from paging import DESK
from serving import make_run, serving

from gammacaps.auditing.config import AuditConfig
from gammacaps.auditing.run import audit_run
from gammacaps.explorer import questions
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


@pytest.fixture(scope="session")
def named_networks(networks):
    """One whose hidden capsules have names: what they were trained for, as nobody has audited it."""
    shoes, clothes = (5, 7, 9), (0, 2, 3, 4, 6)
    about = dataclasses.replace(networks[0].about, class_sets={"hidden 1": (clothes, (1,), (8,), (3,), shoes, (2,))})
    return [dataclasses.replace(networks[0], audit=None, about=about)]


@pytest.fixture(scope="module")
def port(networks):
    with serving(networks) as (port, _):
        yield port


@pytest.fixture(scope="module")
def alone(networks):
    """The address of a page with one network."""
    with serving(networks[:1]) as (port, _):
        yield f"http://127.0.0.1:{port}/"


@pytest.fixture(scope="module")
def named(named_networks):
    """The address of a page with one network whose hidden capsules have names."""
    with serving(named_networks) as (port, _):
        yield f"http://127.0.0.1:{port}/"


@pytest.fixture(scope="module")
def both(port):
    """The address of a page with two."""
    return f"http://127.0.0.1:{port}/"


@pytest.fixture
def opened(browser, monkeypatch):  # noqa: F811  the fixture
    """Opens pages, on which inputs are generated in no time."""
    monkeypatch.setattr(questions, "STARTS", 2)
    monkeypatch.setattr(questions, "STEPS", 5)
    contexts = []

    def open_page(address, viewport=DESK, tree=True, **options):
        context = browser.new_context(viewport=viewport, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60000)
        watch = Watch(page)
        page.goto(address)
        page.wait_for_selector("html[data-ready]")
        if tree:
            page.wait_for_selector(".side:not(.under) .tree svg")
        return page, watch

    yield open_page
    for context in contexts:
        context.close()
