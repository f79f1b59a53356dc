"""What can go wrong with the test bed.

    TestbedError
    ├── UnavailableError   this machine can have no control plane: the tests skip and say how to get one
    ├── NotUpError         nothing runs in the folder that was named
    └── ApiError           the API server said no (client.py)

Every module here raises these; the command and the fixtures turn them into words.
"""


class TestbedError(Exception):
    """Base of all errors raised here on purpose. `str(error)` is the whole message for a person."""

    __test__ = False  # pytest takes every class called Test… for a collection of tests


class UnavailableError(TestbedError):
    """Neither ready-made programs nor a cached build nor the means to build."""


class NotUpError(TestbedError):
    """There is no test bed in this folder."""
