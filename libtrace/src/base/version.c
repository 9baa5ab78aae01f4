/* SPDX-License-Identifier: MIT */
#include <ttdtrace/version.h>

const char *ttd_version(void)
{
    return TTD_VERSION_STRING;
}
