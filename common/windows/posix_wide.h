/* SPDX-License-Identifier: MIT */
/** Shared by the files of this folder. */
#ifndef TTD_WINDOWS_POSIX_WIDE_H
#define TTD_WINDOWS_POSIX_WIDE_H

#include <limits.h>
#include <stdbool.h>
#include <wchar.h>

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

/** Characters of the longest name of a file, with its NUL. */
#define WIDE_MAX 4096

/** Converts a text in UTF-8; false if it is invalid or too long, and then sets errno. */
bool windows_wide(const char *text, wchar_t wide[WIDE_MAX]);

/** Returns a text in UTF-8, to be freed; NULL without memory. */
char *windows_utf8(const wchar_t *wide);

/** Sets errno by GetLastError(), and returns -1. */
int windows_fail(void);

#endif
