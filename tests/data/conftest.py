"""No test of this folder sees the machine's own data folders, its cache, or a network."""

from dataclasses import replace
from pathlib import Path

import pytest

from gammacaps.data.named_files import ENVIRONMENT
from gammacaps.data.named_sets import NAMED_SETS

SHARED = Path(__file__).parents[2].parent / "shared/data"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that stands for the user's cache."""
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for name, entry in NAMED_SETS.items():
        # Port 9 of this machine answers nobody.
        monkeypatch.setitem(NAMED_SETS, name, replace(entry, url="http://127.0.0.1:9/", folders=()))
    return cache


@pytest.fixture(scope="session")
def shared_data() -> Path:
    if not SHARED.is_dir():
        pytest.skip(f"the real data sets are not in {SHARED}")
    return SHARED
