# SPDX-License-Identifier: MIT
"""The library, and its failures as exceptions: one class for each status."""

from .declarations import LIBRARY, TTD_NOWHERE, ffi

try:
    lib = ffi.dlopen(LIBRARY)
except OSError as error:
    raise ImportError(f"{LIBRARY} is not found: install libttdheap, or name its folder in "
                      f"LD_LIBRARY_PATH ({error})") from None


class Error(Exception):
    """A question or an opening failed. The heap stays usable.

    path: name of the trace. reason: why, such as "payload checksum". offset: of the chunk or field
    at fault in the file, or None. chunk: its number, or None. system_error: an errno, or 0.
    """

    def __init__(self, text, path=None, reason=None, offset=None, chunk=None, system_error=0):
        super().__init__(text)
        self.path = path
        self.reason = text if reason is None else reason
        self.offset = offset
        self.chunk = chunk
        self.system_error = system_error

    def __str__(self):
        return self.args[0]

    def __reduce__(self):
        return type(self), (self.args[0], self.path, self.reason, self.offset, self.chunk,
                            self.system_error)


class NotFoundError(Error, LookupError):
    """No mark has the text of a position."""


class NotATraceError(Error):
    """The file does not begin as a trace does."""


class CorruptError(Error):
    """A checksum, an identity or a value in the file is wrong."""


class TruncatedError(Error):
    """The file ends inside a chunk."""


class UnsupportedError(Error):
    """The trace needs a newer version of the library."""


class LimitError(Error):
    """The question takes more steps than `steps_max` of open() permits."""


class OutOfMemoryError(Error, MemoryError):
    """Memory is exhausted."""


class InputError(Error, OSError):
    """The file cannot be read; `errno` has the system's reason."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.errno = self.system_error
        self.filename = self.path
        self.strerror = self.reason


class ArgumentError(Error, ValueError):
    """An argument is invalid."""


class MisuseError(Error):
    """The trace lacks what the question needs, or a question was asked while another was."""


class CancelledError(Error):
    """The function `progress` has ended the question."""


class ClosedError(Error, ValueError):
    """The heap is closed."""


# By status. A status of a newer library is an Error.
CLASSES = {
    "TTD_END": NotFoundError,
    "TTD_ERROR_NOT_A_TRACE": NotATraceError,
    "TTD_ERROR_CORRUPT": CorruptError,
    "TTD_ERROR_TRUNCATED": TruncatedError,
    "TTD_ERROR_UNSUPPORTED": UnsupportedError,
    "TTD_ERROR_LIMIT": LimitError,
    "TTD_ERROR_NO_MEMORY": OutOfMemoryError,
    "TTD_ERROR_IO": InputError,
    "TTD_ERROR_ARGUMENT": ArgumentError,
    "TTD_ERROR_MISUSE": MisuseError,
    "TTD_ERROR_CANCELLED": CancelledError,
}
NAMES = {value: name for name, value in ffi.typeof("enum ttd_status").relements.items()}


def failure(path, status, error):
    """Returns the exception for a status that is not TTD_OK, and a struct ttdheap_error."""
    detail = error.detail
    text = ffi.string(error.text).decode(errors="backslashreplace")
    if not text:
        text = ffi.string(lib.ttd_status_text(status)).decode()
    reason = ffi.string(detail.what).decode(errors="backslashreplace") if detail.what else text
    places = [None if place == TTD_NOWHERE else place for place in (detail.offset, detail.chunk)]
    return CLASSES.get(NAMES.get(status), Error)(text, path, reason, *places, detail.system_error)
