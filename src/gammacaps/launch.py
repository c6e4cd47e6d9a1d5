"""What torchrun says of this process in its environment. Free of torch, so that help is instant."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Launch:
    """This process among those that were started together; the defaults are a process on its own."""

    rank: int = 0
    count: int = 1
    place: int = 0  # among those on this machine
    beside: int = 1  # how many are on this machine
    name: str | None = None  # the same for all processes of a launch and when it starts them again
    restarts: int = 0


def launch() -> Launch:
    """The launch that this process belongs to."""
    told = os.environ
    if "TORCHELASTIC_RUN_ID" not in told:  # other launchers may set RANK for purposes of their own
        return Launch()
    name = told["TORCHELASTIC_RUN_ID"]
    return Launch(
        rank=int(told["RANK"]),
        count=int(told["WORLD_SIZE"]),
        place=int(told["LOCAL_RANK"]),
        beside=int(told["LOCAL_WORLD_SIZE"]),
        name=None if name == "none" else name,  # torchrun's word where nobody named the launch
        restarts=int(told["TORCHELASTIC_RESTART_COUNT"]),
    )
