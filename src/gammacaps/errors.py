"""The one error that a user of gammacaps is meant to read."""


class InputError(ValueError):
    """Something that was given can't be used.

    Its text is one sentence that says what is wrong, where, and what to do. The command line prints it
    without a traceback and exits with status 2.
    """
