"""What torchrun says of this process in its environment. Free of torch, so that help is instant."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Launch:
    """This process among those that were started together; the defaults are a process on its own."""

    rank: int = 0
    count: int = 1
    place: int = 0  # among those on this machine
    beside: int = 1  # how many are on this machine
    name: str | None = None  # no other launch's, and the same when this one starts its processes again


def launch() -> Launch:
    """The launch that this process belongs to."""
    environment = os.environ
    if "TORCHELASTIC_RUN_ID" not in environment:  # other launchers may set RANK for purposes of their own
        return Launch()
    return Launch(
        rank=int(environment["RANK"]),
        count=int(environment["WORLD_SIZE"]),
        place=int(environment["LOCAL_RANK"]),
        beside=int(environment["LOCAL_WORLD_SIZE"]),
        name=_name(environment["TORCHELASTIC_RUN_ID"], environment.get("TORCHELASTIC_ERROR_FILE", "")),
    )


def _name(given: str, errors: str) -> str | None:
    """The name that the user gave to the launch, else that of the folder which torchrun makes for its logs.

    That folder is new for each launch, and each machine has one of its own: LOGS/FOLDER/attempt_0/0/error.json.
    """
    if given != "none":  # torchrun's word where nobody named the launch
        return given
    folders = Path(errors).parents
    return folders[2].name if len(folders) > 3 else None
