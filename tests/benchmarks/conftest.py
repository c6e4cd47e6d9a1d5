"""The benchmarks are a package at the root of the repository, which is not installed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
