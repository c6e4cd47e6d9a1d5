"""Modules of the user's own: a Dataset named by its import path, and plugins that add to our tables.

Only what the user names is imported: on the command line, in the environment, or with `--trust` in a run's folder.
"""

import contextlib
import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from gammacaps.errors import InputError

PLUGINS = "GAMMACAPS_PLUGINS"
PLUGIN_HINT = f", or import the module that adds it (on the command line, name it in {PLUGINS})"
IMPORT_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def load_plugins() -> None:
    """Imports the modules that the environment names, `GAMMACAPS_PLUGINS=my_rules,my_attacks`.

    Such a module adds to our tables when it is imported, by `gammacaps.ops.add_rule`, `gammacaps.attacks.add_attack`,
    `gammacaps.data.add_data_set` or `gammacaps.reporting.add_section`.
    """
    for name in filter(None, (part.strip() for part in os.environ.get(PLUGINS, "").split(","))):
        import_user_module(name, where=f"The plugin {name} (named by {PLUGINS})")


def is_import_path(name: str | Path) -> bool:
    """Whether `name` is written as `package.module:name`."""
    return isinstance(name, str) and IMPORT_PATH.fullmatch(name) is not None


def import_name(path: str) -> Any:
    """What `package.module:name` names; modules are looked for in the working folder too."""
    module, _, name = path.partition(":")
    try:
        return getattr(import_user_module(module, where=path), name)
    except AttributeError:
        raise InputError(f"The module {module} has no '{name}': correct the part after the colon.") from None


def import_user_module(module: str, *, where: str) -> ModuleType:
    """A module, looked for in the working folder too; what is wrong with it is told in one sentence about `where`."""
    try:
        with _working_folder_on_path():
            return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise InputError(
            f"{where} can't be imported ({error}): run where {module.partition('.')[0]} lies, or install it."
        ) from error
    except (Exception, SystemExit) as error:  # a user's module can raise anything
        raise InputError(f"{where} can't be imported ({error!r}): fix the module {module}.") from error


def module_of(path: str) -> Path | None:
    """The file of the module in `package.module:name`; None where there is none."""
    with _working_folder_on_path(), contextlib.suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(path.partition(":")[0])
        return Path(spec.origin) if spec is not None and spec.origin else None
    return None


def source_print(function: Any) -> str | None:
    """A fingerprint of the module in which a user's function stands, by which a change is noticed; None for ours."""
    if str(getattr(function, "__module__", "")).partition(".")[0] == "gammacaps":
        return None
    try:
        source = inspect.getsource(inspect.getmodule(function) or function)
    except (OSError, TypeError):  # not from a file, as in a notebook
        code = getattr(function, "__code__", None)
        source = repr(function) if code is None else f"{code.co_code.hex()}{code.co_consts}{code.co_names}"
    return hashlib.sha256(source.encode()).hexdigest()[:16]


@contextlib.contextmanager
def _working_folder_on_path() -> Iterator[None]:
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        yield
    finally:
        if added:
            sys.path.remove(here)
