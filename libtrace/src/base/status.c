/* SPDX-License-Identifier: MIT */
#include "base/fail.h"

#include <stddef.h>
#include <ttdtrace/version.h>

const char *ttd_status_text(enum ttd_status status)
{
    switch (status) {
    case TTD_OK:
        return "ok";
    case TTD_END:
        return "end";
    case TTD_ERROR_NOT_A_TRACE:
        return "not a trace";
    case TTD_ERROR_CORRUPT:
        return "corrupt";
    case TTD_ERROR_TRUNCATED:
        return "truncated";
    case TTD_ERROR_UNSUPPORTED:
        return "unsupported";
    case TTD_ERROR_LIMIT:
        return "limit of the format reached";
    case TTD_ERROR_NO_MEMORY:
        return "out of memory";
    case TTD_ERROR_IO:
        return "input/output error";
    case TTD_ERROR_ARGUMENT:
        return "invalid argument";
    case TTD_ERROR_MISUSE:
        return "call not allowed in this state";
    case TTD_ERROR_CANCELLED:
        return "cancelled";
    }
    return "unknown status";
}

enum ttd_status ttd_fail(struct ttd_error *error, enum ttd_status status, const char *what,
                         uint64_t offset, uint64_t chunk)
{
    if (error)
        *error = (struct ttd_error){status, 0, offset, chunk, what};
    return status;
}

enum ttd_status ttd_fail_system(struct ttd_error *error, int system_error, const char *what,
                                uint64_t offset)
{
    if (error)
        *error = (struct ttd_error){TTD_ERROR_IO, system_error, offset, TTD_NOWHERE, what};
    return TTD_ERROR_IO;
}

const char *ttd_version(void)
{
    return TTD_VERSION_STRING;
}
