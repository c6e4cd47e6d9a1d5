"""The version, apart from the package's face, so that parts below it can tell it."""

__version__ = "0.1.0"
