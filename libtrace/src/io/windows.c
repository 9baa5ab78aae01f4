/* SPDX-License-Identifier: MIT */
#include <ttdtrace/io.h>

#include <errno.h>
#include <io.h>
#include <limits.h>

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include "base/memory.h"
#include "base/fail.h"

struct file {
    HANDLE handle;
    int descriptor;
    int own;
    struct ttd_allocator allocator;
};

static int windows_last_error(void)
{
    switch (GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
        return ENOENT;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS:
        return EEXIST;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
        return EACCES;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL:
        return ENOSPC;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
        return ENOMEM;
    default:
        return EIO;
    }
}

static int windows_read_at(void *context, uint64_t offset, void *data, size_t size, size_t *got)
{
    const struct file *f = context;
    *got = 0;
    while (*got < size) {
        uint64_t position = offset + *got;
        /* The offset goes with each call: the file pointer is not shared between threads. */
        OVERLAPPED overlapped = {0};
        overlapped.Offset = (DWORD)position;
        overlapped.OffsetHigh = (DWORD)(position >> 32);
        size_t remaining = size - *got;
        DWORD n = 0;
        if (!ReadFile(f->handle, (char *)data + *got,
                      remaining < INT_MAX ? (DWORD)remaining : INT_MAX, &n, &overlapped))
            /* A read behind the end is an error here; to callers it is no bytes. */
            return GetLastError() == ERROR_HANDLE_EOF ? 0 : windows_last_error();
        if (n == 0)
            break;
        *got += n;
    }
    return 0;
}

static int windows_size(void *context, uint64_t *size)
{
    const struct file *f = context;
    LARGE_INTEGER length;
    if (!GetFileSizeEx(f->handle, &length))
        return windows_last_error();
    *size = (uint64_t)length.QuadPart;
    return 0;
}

static int windows_write(void *context, const void *data, size_t size)
{
    const struct file *f = context;
    const char *bytes = data;
    while (size > 0) {
        DWORD n = 0;
        if (!WriteFile(f->handle, bytes, size < INT_MAX ? (DWORD)size : INT_MAX, &n, NULL))
            return windows_last_error();
        /* No error, but no progress either: going on might never end. */
        if (n == 0)
            return EIO;
        bytes += n;
        size -= n;
    }
    return 0;
}

static int windows_close(void *context)
{
    struct file *f = context;
    struct ttd_allocator allocator = f->allocator;
    int result = 0;
    /* Closing a descriptor closes its handle; closing the handle would leave a dead descriptor. */
    if (f->own && f->descriptor >= 0)
        result = _close(f->descriptor) != 0 ? errno : 0;
    else if (f->own)
        result = CloseHandle(f->handle) ? 0 : windows_last_error();
    ttd_release(&allocator, f);
    return result;
}

static void windows_close_input(void *context)
{
    (void)windows_close(context);
}

/** Arguments of CreateFileW(). */
struct open_mode {
    DWORD access, share, disposition;
};

/** Opens a file whose name is in UTF-8. */
static enum ttd_status windows_open_path(const char *path, struct open_mode mode,
                                         const struct ttd_allocator *allocator,
                                         struct file **result, struct ttd_error *error)
{
    int length = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, NULL, 0);
    if (length <= 0)
        return ttd_fail(error, TTD_ERROR_ARGUMENT, "file name", TTD_NOWHERE, TTD_NOWHERE);
    wchar_t *wide = ttd_allocate_zeroed(allocator, (size_t)length * sizeof *wide);
    struct file *f = ttd_allocate_zeroed(allocator, sizeof *f);
    if (!wide || !f) {
        ttd_release(allocator, wide);
        ttd_release(allocator, f);
        return ttd_fail(error, TTD_ERROR_NO_MEMORY, "memory", TTD_NOWHERE, TTD_NOWHERE);
    }
    MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, length);
    HANDLE handle = CreateFileW(wide, mode.access, mode.share, NULL, mode.disposition,
                                FILE_ATTRIBUTE_NORMAL, NULL);
    int reason = handle == INVALID_HANDLE_VALUE ? windows_last_error() : 0;
    ttd_release(allocator, wide);
    if (reason) {
        ttd_release(allocator, f);
        return ttd_fail_system(error, reason, "open", TTD_NOWHERE);
    }
    *f = (struct file){handle, -1, 1, *allocator};
    *result = f;
    return TTD_OK;
}

enum ttd_status ttd_input_file(const char *path, const struct ttd_allocator *allocator,
                               struct ttd_input *input, struct ttd_error *error)
{
    if (!path || !input || !ttd_allocator_is_valid(allocator))
        return ttd_fail(error, TTD_ERROR_ARGUMENT, "argument", TTD_NOWHERE, TTD_NOWHERE);
    struct ttd_allocator table = ttd_allocator_or_default(allocator);
    struct file *f;
    enum ttd_status status = windows_open_path(
        path,
        /* The file may be replaced meanwhile, as on other systems. */
        (struct open_mode){GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                           OPEN_EXISTING},
        &table, &f, error);
    if (status == TTD_OK)
        *input = (struct ttd_input){f, windows_read_at, windows_size, windows_close_input};
    return status;
}

enum ttd_status ttd_output_file(const char *path, const struct ttd_allocator *allocator,
                                struct ttd_output *output, struct ttd_error *error)
{
    if (!path || !output || !ttd_allocator_is_valid(allocator))
        return ttd_fail(error, TTD_ERROR_ARGUMENT, "argument", TTD_NOWHERE, TTD_NOWHERE);
    struct ttd_allocator table = ttd_allocator_or_default(allocator);
    struct file *f;
    enum ttd_status status = windows_open_path(
        path, (struct open_mode){GENERIC_WRITE, FILE_SHARE_READ, CREATE_NEW}, &table, &f, error);
    if (status == TTD_OK)
        *output = (struct ttd_output){f, windows_write, windows_close};
    return status;
}

static struct file *windows_new_file(int descriptor, int own, const struct ttd_allocator *allocator)
{
    struct file *f = ttd_allocate_zeroed(allocator, sizeof *f);
    if (f)
        *f = (struct file){(HANDLE)_get_osfhandle(descriptor), descriptor, own, *allocator};
    return f;
}

enum ttd_status ttd_input_descriptor(int descriptor, int own, const struct ttd_allocator *allocator,
                                     struct ttd_input *input, struct ttd_error *error)
{
    if (descriptor < 0 || !input || !ttd_allocator_is_valid(allocator))
        return ttd_fail(error, TTD_ERROR_ARGUMENT, "argument", TTD_NOWHERE, TTD_NOWHERE);
    if (GetFileType((HANDLE)_get_osfhandle(descriptor)) != FILE_TYPE_DISK)
        return ttd_fail_system(error, ESPIPE, "open", TTD_NOWHERE);
    struct ttd_allocator table = ttd_allocator_or_default(allocator);
    struct file *f = windows_new_file(descriptor, own, &table);
    if (!f)
        return ttd_fail(error, TTD_ERROR_NO_MEMORY, "memory", TTD_NOWHERE, TTD_NOWHERE);
    *input = (struct ttd_input){f, windows_read_at, windows_size, windows_close_input};
    return TTD_OK;
}

enum ttd_status ttd_output_descriptor(int descriptor, int own,
                                      const struct ttd_allocator *allocator,
                                      struct ttd_output *output)
{
    if (descriptor < 0 || !output || !ttd_allocator_is_valid(allocator))
        return TTD_ERROR_ARGUMENT;
    struct ttd_allocator table = ttd_allocator_or_default(allocator);
    struct file *f = windows_new_file(descriptor, own, &table);
    if (!f)
        return TTD_ERROR_NO_MEMORY;
    *output = (struct ttd_output){f, windows_write, windows_close};
    return TTD_OK;
}
