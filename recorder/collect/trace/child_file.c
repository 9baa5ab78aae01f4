/* SPDX-License-Identifier: MIT */
#include "collect/trace/child_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect/trace/descriptors.h"

struct child_file {
    char *const *place;
    dev_t device;
    ino_t inode;
    int descriptor;           /* -1 if it is closed */
    struct ttd_output output; /* of the descriptor */
};

/* Takes the descriptor of the open file over. */
static int child_file_use(struct child_file *file, int descriptor)
{
    if (ttd_output_descriptor(descriptor, 1, NULL, &file->output) != TTD_OK) {
        close(descriptor);
        return ENOMEM;
    }
    file->descriptor = descriptor;
    return 0;
}

static int child_file_release(struct child_file *file)
{
    file->descriptor = -1;
    return file->output.close(file->output.context);
}

/* Opens the file again, and nothing that somebody has put in its place. */
static int child_file_reopen(struct child_file *file)
{
    struct stat status;
    int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    int descriptor = open(*file->place, flags);
    if (descriptor < 0)
        return errno;
    if (fstat(descriptor, &status) == 0 && status.st_dev == file->device &&
        status.st_ino == file->inode)
        return child_file_use(file, descriptor);
    close(descriptor);
    return ESTALE;
}

static int child_file_write(void *context, const void *data, size_t size)
{
    struct child_file *file = context;
    int reason = file->descriptor < 0 ? child_file_reopen(file) : 0;
    if (reason != 0)
        return reason;
    reason = file->output.write(file->output.context, data, size);
    if (descriptor_may_stay(file->descriptor, DESCRIPTORS_OF_FILES))
        return reason;
    int closing = child_file_release(file);
    return reason != 0 ? reason : closing;
}

static int child_file_close(void *context)
{
    struct child_file *file = context;
    int reason = file->descriptor >= 0 ? child_file_release(file) : 0;
    free(file);
    return reason;
}

static int child_file_make(const char *path, struct child_file *file)
{
    struct stat status;
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int descriptor = open(path, flags, S_IRUSR | S_IWUSR);
    if (descriptor < 0)
        return errno;
    int reason = fstat(descriptor, &status) != 0 ? errno : child_file_use(file, descriptor);
    file->device = status.st_dev;
    file->inode = status.st_ino;
    if (reason != 0)
        unlink(path);
    return reason;
}

enum ttd_status child_file_create(const char *path, char *const *place, struct ttd_output *output,
                                  struct ttd_error *error)
{
    struct child_file *file = calloc(1, sizeof *file);
    int reason = file != NULL ? child_file_make(path, file) : ENOMEM;
    if (reason != 0) {
        free(file);
        *error = (struct ttd_error){TTD_ERROR_IO, reason, TTD_NOWHERE, TTD_NOWHERE, "create"};
        return TTD_ERROR_IO;
    }
    file->place = place;
    *output = (struct ttd_output){file, child_file_write, child_file_close};
    return TTD_OK;
}
