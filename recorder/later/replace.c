/* SPDX-License-Identifier: MIT */
#include "later/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The temporary file; NULL if there is none. Read by the handler of signals. */
static char *volatile unfinished;

static void replace_on_signal(int number)
{
    char *path = unfinished;
    if (path != NULL)
        unlink(path);
    (void)signal(number, SIG_DFL);
    raise(number);
}

static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction action;
        if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            (void)signal(numbers[i], replace_on_signal);
    }
}

static int make_temporary(struct replacement *replacement)
{
    if (asprintf(&replacement->temporary, "%s.XXXXXX", replacement->destination.path) < 0) {
        replacement->temporary = NULL;
        return ENOMEM;
    }
    replacement->descriptor = mkostemp(replacement->temporary, O_CLOEXEC);
    if (replacement->descriptor < 0)
        return errno;
    unfinished = replacement->temporary;
    catch_signals();
    return 0;
}

int replacement_begin(struct replacement *replacement, const char *path)
{
    *replacement = (struct replacement){.descriptor = -1};
    int reason = output_path_resolve(path, &replacement->destination);
    if (reason != 0)
        return reason;
    if (replacement->destination.path == NULL) {
        replacement->descriptor = replacement->destination.descriptor;
        return 0;
    }
    reason = make_temporary(replacement);
    if (reason != 0) {
        free(replacement->temporary);
        output_path_free(&replacement->destination);
    }
    return reason;
}

static void release(struct replacement *replacement)
{
    unfinished = NULL;
    close(replacement->descriptor);
    free(replacement->temporary);
    output_path_free(&replacement->destination);
}

int replacement_publish(struct replacement *replacement)
{
    const char *path = replacement->destination.path;
    struct stat old;
    int reason = 0;
    if (path == NULL) {
        release(replacement);
        return 0;
    }
    /* The owner of a file keeps it when root replaces it. */
    if (stat(path, &old) == 0 && old.st_uid != geteuid())
        reason = fchown(replacement->descriptor, old.st_uid, old.st_gid) != 0 ? errno : 0;
    if (reason == 0 && fsync(replacement->descriptor) != 0)
        reason = errno;
    if (reason == 0 && rename(replacement->temporary, path) != 0)
        reason = errno;
    if (reason != 0)
        unlink(replacement->temporary);
    release(replacement);
    return reason;
}

void replacement_discard(struct replacement *replacement)
{
    if (replacement->temporary != NULL)
        unlink(replacement->temporary);
    release(replacement);
}
