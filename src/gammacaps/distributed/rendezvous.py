"""Where the processes of a launch find one another, also when torchrun starts them again.

torchrun keeps one store of names and values over its restarts, and the addresses of dead processes stay in it: new
processes that read them fail to connect, or wait for the dead. Its count of restarts could tell the attempts apart, but
each machine counts for itself. So the first process names the attempt, and tells the name to whoever asks it now.
"""

import datetime
import time
import uuid

# torch has these, but does not tell type checkers.
from torch.distributed import (  # type: ignore[attr-defined]
    DistStoreError,
    PrefixStore,
    Store,
    rendezvous,
)

from gammacaps.errors import InputError

PATIENCE = 600.0  # seconds between the first process and the last; torchrun starts all once all machines are there


def fresh_store() -> Store:
    """torchrun's store, under a prefix that only the processes of this attempt know."""
    store, rank, count = next(rendezvous("env://"))
    return PrefixStore(agreed_name(store, rank, count), store)


def agreed_name(store: Store, rank: int, count: int, patience: float = PATIENCE) -> str:
    """A name that no attempt before has had, the same in all processes, whatever these have left in the store.

    A process that never comes, such as one that could not read its options, is waited for `patience` seconds.
    """
    if rank > 0:
        asked = uuid.uuid4().hex
        store.set(f"asked by {rank}", asked)
        try:
            store.wait([f"answer to {asked}"], datetime.timedelta(seconds=patience))
        except DistStoreError:
            raise _missed({0}, count, patience) from None
        name: str = store.get(f"answer to {asked}").decode()
        store.set(f"{name} heard by {rank}", "yes")
        return name
    name = uuid.uuid4().hex
    missing, deadline = set(range(1, count)), time.monotonic() + patience
    while missing:
        if time.monotonic() > deadline:
            raise _missed(missing, count, patience)
        for other in sorted(missing):
            if store.check([f"asked by {other}"]):  # perhaps an old question: the answer then has no reader
                store.set(f"answer to {store.get(f'asked by {other}').decode()}", name)
            if store.check([f"{name} heard by {other}"]):
                missing.discard(other)
        time.sleep(0.01)
    return name


def _missed(ranks: set[int], count: int, patience: float) -> InputError:
    them = ", ".join(map(str, sorted(ranks)))
    return InputError(
        f"Of {count} processes these did not come within {patience:g} seconds: {them}; see what torchrun printed on "
        "their machines, and start all again."
    )
