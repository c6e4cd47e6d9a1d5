"""A network that was never trained, as a run."""

import gammacaps
from gammacaps.models import to_config
from gammacaps.models.folder import write_config, write_weights


def stored(folder, preset, **changes):
    """A network that was never trained, as a run."""
    model = gammacaps.create(preset, **changes)
    folder.mkdir()
    write_config(folder, {"model": to_config(model), "train": {}})
    write_weights(folder, model.state_dict())
    return folder
