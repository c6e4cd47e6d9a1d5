"""Another network for the same task, for attacks that work on such a one and are tried on the real one."""

import sys
from pathlib import Path
from typing import Any

from gammacaps.distributed.processes import ALONE
from gammacaps.errors import InputError
from gammacaps.files import folders_above, new_folder
from gammacaps.models import Model, load
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.train import train


def surrogate_network(folder: Path, options: dict[str, Any], quiet: bool) -> Model:
    """A small CNN for the same task, which attacks such as "transfer" use; trained at its first use and kept whole."""
    if not folder.exists():
        if not quiet:
            print("Training a small CNN, whose attacked images are tried on the network ...", file=sys.stderr)
        small: dict[str, Any] = {"preset": "cnn", "model": ("filters=[16, 32]", "width=256"), "robust": False}
        training = TrainConfig(steps=250, batch=64, lr=1e-3, **small, **options)
        try:
            # Not the run's folder, which may be gone by now.
            with folders_above(folder, levels=1), new_folder(folder) as temporary:
                train(training, temporary / "cnn", processes=ALONE, warn=False)
                for file in (temporary / "cnn").iterdir():
                    file.rename(temporary / file.name)
                (temporary / "cnn").rmdir()
        except InputError:
            if not folder.exists():  # else another process has made the same one in the meantime
                raise
    return load(folder)
