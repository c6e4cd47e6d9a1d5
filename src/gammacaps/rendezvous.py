"""Where the processes of a launch find one another, also when torchrun starts them again.

torchrun keeps one store of names and values over its restarts, and the addresses of dead processes stay in it: new
processes that read them fail to connect, or wait for the dead. Its count of restarts could tell the attempts apart, but
each machine counts for itself. So the first process names the attempt, and tells the name to whoever asks it now.
"""

import time
import uuid

# torch has these, but does not tell type checkers.
from torch.distributed import PrefixStore, Store, rendezvous  # type: ignore[attr-defined]


def fresh_store() -> Store:
    """torchrun's store, under a prefix that only the processes of this attempt know."""
    store, rank, count = next(rendezvous("env://"))
    return PrefixStore(agreed_name(store, rank, count), store)


def agreed_name(store: Store, rank: int, count: int) -> str:
    """A name that no attempt before has had, the same in all processes, whatever these have left in the store."""
    if rank > 0:
        asked = uuid.uuid4().hex
        store.set(f"asked by {rank}", asked)
        name: str = store.get(f"answer to {asked}").decode()  # waits for it
        store.set(f"{name} heard by {rank}", "yes")
        return name
    name = uuid.uuid4().hex
    missing = set(range(1, count))
    while missing:
        for other in sorted(missing):
            if store.check([f"asked by {other}"]):  # perhaps an old question: the answer then has no reader
                store.set(f"answer to {store.get(f'asked by {other}').decode()}", name)
            if store.check([f"{name} heard by {other}"]):
                missing.discard(other)
        time.sleep(0.01)
    return name
