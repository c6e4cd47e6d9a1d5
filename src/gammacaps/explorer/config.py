"""What the explorer is told. Free of torch, so that help is instant."""

from dataclasses import dataclass

from gammacaps.errors import InputError
from gammacaps.options import check_whole


@dataclass(frozen=True)
class ExploreConfig:
    """Where to serve the page, and on which images."""

    host: str = "127.0.0.1"
    """Address to listen at: this machine alone by default; 0.0.0.0 lets the whole network in."""
    port: int | None = None
    """Port to listen at; without it 8717, or any free one if that is taken."""
    browser: bool = True
    """Open the page in a browser where there is a screen."""
    static: str | None = None
    """Folder to write the page into instead of serving it: the network then runs in the browser."""
    data: str | None = None
    """Data set to pick images from; without it the one that the network was measured or trained on."""
    data_dir: str | None = None
    """Folder that holds the named data sets."""
    trust: bool = False
    """Import the Dataset that the run itself names, which runs its code: for runs of people you trust."""
    device: str = "cpu"
    """cpu, auto, cuda, cuda:1 and so on."""

    def __post_init__(self) -> None:
        check_whole("port", self.port, least=0, most=65535)
        if not self.host:
            raise InputError("The host must not be empty: use 127.0.0.1 for this machine alone.")
