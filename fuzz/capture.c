/* SPDX-License-Identifier: MIT */
#include "capture.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target.h"

/* Provided by the sanitizers, if linked: sets the descriptor for reports. */
/* NOLINTNEXTLINE(clang-diagnostic-reserved-identifier) */
__attribute__((weak)) void __sanitizer_set_report_fd(void *descriptor);

static char directory[64];

/* By descriptor: the capturing file, and a copy of the original. */
static int captured[3];
static int original[3];

static void remove_directory(void)
{
    rmdir(directory);
}

const char *capture_directory(void)
{
    static const char *const directories[] = {"/dev/shm", "/tmp"};
    static bool is_created;
    for (unsigned i = 0; i < 2 && !is_created; i++) {
        snprintf(directory, sizeof directory, "%s/fuzz.XXXXXX", directories[i]);
        is_created = mkdtemp(directory) && atexit(remove_directory) == 0;
    }
    target_require(is_created, "a directory");
    return directory;
}

static void prepare(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/captured", capture_directory());
    for (int i = STDOUT_FILENO; i <= STDERR_FILENO; i++) {
        captured[i] = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        original[i] = fcntl(i, F_DUPFD_CLOEXEC, 3);
        target_require(captured[i] >= 0 && original[i] >= 0, "descriptors");
        unlink(path);
    }
    if (__sanitizer_set_report_fd)
        __sanitizer_set_report_fd((void *)(intptr_t)original[STDERR_FILENO]);
}

static void redirect(const int files[3])
{
    fflush(stdout);
    dup2(files[STDOUT_FILENO], STDOUT_FILENO);
    dup2(files[STDERR_FILENO], STDERR_FILENO);
}

void capture_begin(void)
{
    if (!captured[STDERR_FILENO])
        prepare();
    redirect(captured);
}

void capture_end(void)
{
    redirect(original);
}

char *capture_take(int descriptor, size_t *size)
{
    struct stat status;
    int file = captured[descriptor];
    target_require(fstat(file, &status) == 0, "output");
    *size = (size_t)status.st_size;
    char *data = malloc(*size + 1);
    target_require(data && pread(file, data, *size, 0) == (ssize_t)*size, "output");
    data[*size] = '\0';
    target_require(ftruncate(file, 0) == 0 && lseek(file, 0, SEEK_SET) == 0, "output");
    return data;
}
