/* SPDX-License-Identifier: MIT */
/* The entry of a program on Windows: it converts the arguments, and calls main(). */
#include "common/windows/posix.h"

#include "common/windows/posix_wide.h"

/* Lets a console understand UTF-8 and the sequences for colours. */
static void entry_prepare_console(void)
{
    SetConsoleOutputCP(CP_UTF8);
    for (int descriptor = STDOUT_FILENO; descriptor <= STDERR_FILENO; descriptor++) {
        HANDLE handle = (HANDLE)_get_osfhandle(descriptor);
        DWORD mode;
        if (GetConsoleMode(handle, &mode))
            SetConsoleMode(handle,
                           mode | ENABLE_PROCESSED_OUTPUT | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
    }
}

/* The exit status without memory: main()'s own. */
enum { ENTRY_NO_MEMORY = 5 };

/* The system calls it. */
int wmain(int count, wchar_t **wide);

int wmain(int count, wchar_t **wide)
{
    char **arguments = calloc((size_t)count + 1, sizeof *arguments);
    for (int i = 0; arguments && i < count; i++) {
        arguments[i] = windows_utf8(wide[i]);
        if (!arguments[i])
            return ENTRY_NO_MEMORY;
    }
    for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; descriptor++)
        _setmode(descriptor, O_BINARY);
    entry_prepare_console();
    return arguments ? posix_main(count, arguments) : ENTRY_NO_MEMORY;
}
