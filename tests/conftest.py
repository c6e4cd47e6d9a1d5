"""What all tests share: a fixed seed, and the real data sets where they lie beside."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings

# Where there is no GPU, Triton's interpreter runs the kernels; it must be chosen before they are imported.
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

# Commands are printed as the shell could type them: in tests by their bare name, as where .venv is activated.
os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))

# Tests side by side have a core each, unless told: threads that wait for one another would take many times as long.
if "PYTEST_XDIST_WORKER" in os.environ and "OMP_NUM_THREADS" not in os.environ:
    os.environ["OMP_NUM_THREADS"] = "1"  # for the processes that tests start
    torch.set_num_threads(1)

# The same examples on each run and machine.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.load_profile("steady")

REAL_DATA = Path(__file__).parents[2] / "shared" / "data"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """As many threads as in the processes that a test starts."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with the three real data sets."""
    if not REAL_DATA.is_dir():
        pytest.skip(f"the real data sets are not at {REAL_DATA}")
    return REAL_DATA
