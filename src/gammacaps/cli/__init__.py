"""The command line. Torch is imported inside the verbs, so that help is instant."""

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from gammacaps._version import __version__
from gammacaps.cli.parse import options_of, overview, split_verb, wants_help
from gammacaps.cli.streams import flush_all, nowhere, open_streams, printed, show
from gammacaps.cli.verbs import TOGETHER, VERBS
from gammacaps.distributed.launch import launch
from gammacaps.errors import InputError
from gammacaps.imports import load_plugins
from gammacaps.memory import reuse_memory
from gammacaps.program import as_typed
from gammacaps.threads import sleep_while_waiting

# As torch says it, on a CPU and on a GPU.
OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a verb; what a user did wrong is one sentence and exit status 2, an interruption is 130."""
    sleep_while_waiting()
    open_streams()
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    here = launch()

    def stop(words: object, status: int) -> NoReturn:
        if here.place == 0:  # one sentence a machine
            with contextlib.suppress(OSError):
                print(f"gammacaps: {as_typed(str(words), VERBS)}", file=sys.stderr)
        sys.exit(status)

    try:
        # The first process speaks for all.
        with nowhere() as dropped, contextlib.redirect_stdout(dropped if here.rank > 0 else sys.stdout):
            run(arguments)
            with printed():
                pass
    except InputError as error:
        stop(error, 2)
    except BrokenPipeError:  # not of what a verb shows at its end, so that there was more to do
        stop("Stopped, since nobody reads what is printed any more.", 130)
    except KeyboardInterrupt as asked:
        stop(str(asked) or "Interrupted.", 130)
    except OSError as error:
        if error.filename is None:
            raise
        stop(f"{error.filename} can't be used ({error.strerror}): check the path, its rights and the disk.", 2)
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not any(words in str(error) for words in OUT_OF_MEMORY):
            raise
        stop("The memory is not enough for this: use fewer or smaller images, a smaller --batch or network.", 2)
    finally:
        flush_all()


def run(arguments: list[str]) -> None:
    """One verb, its options checked before torch is imported."""
    if not arguments or arguments[0] in ("-h", "--help"):
        show(overview(VERBS))
        return
    if arguments[0] == "--version":
        show(f"gammacaps {__version__}")
        return
    verb, rest = split_verb(arguments, VERBS)
    if launch().count > 1 and verb not in TOGETHER:
        raise InputError(f"gammacaps {verb} runs in one process: start it without torchrun.")
    if not wants_help(rest):
        load_plugins()
    kind, function = VERBS[verb]
    options = options_of(kind, verb, rest)
    try:
        Path.cwd()
    except OSError:
        raise InputError("The folder that gammacaps was started in is gone: change to another one.") from None
    reuse_memory()
    function(options)
