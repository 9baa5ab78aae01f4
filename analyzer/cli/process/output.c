/* SPDX-License-Identifier: MIT */
#include "cli/process/output.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/process/limits.h"
#include "cli/process/message.h"

/* Limit on columns, beyond any terminal's. */
#define WIDTH_MAX 10000

static bool output_wants_color(int descriptor)
{
    const char *no_color = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    return isatty(descriptor) && !(no_color && *no_color) &&
           !(terminal && strcmp(terminal, "dumb") == 0);
}

/* Whether the environment's locale is UTF-8. The program's own locale stays "C", so that
 * numbers have one form. */
static bool output_has_utf8(void)
{
    locale_t environment_locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (environment_locale == (locale_t)0)
        return false;
    bool result = strcmp(nl_langinfo_l(CODESET, environment_locale), "UTF-8") == 0;
    freelocale(environment_locale);
    return result;
}

/* Returns the columns of the terminal, or the value of COLUMNS; 0 if neither is known, or it is too
 * small. */
static size_t output_terminal_width(int descriptor)
{
    const char *columns = getenv("COLUMNS");
    long width = columns ? strtol(columns, NULL, 10) : 0;
    struct winsize size;
    if (width <= 0 || width > WIDTH_MAX)
        width = isatty(descriptor) && ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
    return width >= OUT_WIDTH_MIN ? (size_t)width : 0;
}

static void output_prepare(struct output_file *output, int descriptor)
{
    out_init(&output->text, descriptor, output_wants_color(descriptor));
    output->text.has_utf8 = output_has_utf8();
    output->text.width = output_terminal_width(descriptor);
}

/* Runs the pager in the child process, whose standard input is the pipe. */
static void output_run_pager(const char *pager)
{
    setenv("LESS", "FRSX", 0);
    setenv("LV", "-c", 0);
    limits_lift();
    execl("/bin/sh", "sh", "-c", pager, (char *)NULL);
    _exit(127);
}

/* Starts the pager; false if that fails, and then the output goes to the terminal. */
static bool output_start_pager(struct output_file *output)
{
    const char *pager = getenv("PAGER");
    int ends[2];
    if (!pager)
        pager = "less -R";
    if (!*pager || strcmp(pager, "cat") == 0 || pipe(ends) != 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[0], STDIN_FILENO);
        close(ends[0]);
        close(ends[1]);
        output_run_pager(pager);
    }
    close(ends[0]);
    if (child < 0) {
        close(ends[1]);
        return false;
    }
    /* When the user leaves the pager early, writing must fail instead of killing this process: it
     * has to wait for the pager. */
    signal(SIGPIPE, SIG_IGN);
    output->pager = child;
    output->text.descriptor = ends[1];
    return true;
}

static int output_fail(const char *path)
{
    message("%s: %s", path, strerror(errno));
    return STATUS_INTERNAL;
}

static int output_open_temporary(struct output_file *output)
{
    size_t size = strlen(output->destination.path) + sizeof ".XXXXXX";
    output->temporary = malloc(size);
    if (!output->temporary)
        return output_fail(output->path);
    snprintf(output->temporary, size, "%s.XXXXXX", output->destination.path);
    int descriptor = mkstemp(output->temporary);
    if (descriptor < 0) {
        int status = output_fail(output->path);
        free(output->temporary);
        output->temporary = NULL;
        return status;
    }
    output_prepare(output, descriptor);
    return STATUS_OK;
}

int output_spare(const char *path, const char *source)
{
    struct stat existing;
    struct stat trace;
    if (!path || strcmp(path, "-") == 0 || stat(path, &existing) != 0 ||
        stat(source, &trace) != 0 || existing.st_dev != trace.st_dev ||
        existing.st_ino != trace.st_ino)
        return STATUS_OK;
    message("%s: is the trace itself, and will not be overwritten", path);
    return STATUS_USAGE;
}

static int output_open_file(struct output_file *output, const char *source)
{
    int status = output_spare(output->path, source);
    if (status != STATUS_OK)
        return status;
    int reason = output_path_resolve(output->path, &output->destination);
    if (reason != 0) {
        errno = reason;
        return output_fail(output->path);
    }
    if (output->destination.path)
        status = output_open_temporary(output);
    else
        output_prepare(output, output->destination.descriptor);
    if (status != STATUS_OK)
        output_path_free(&output->destination);
    return status;
}

int output_open(struct output_file *output, const char *path, const char *source, bool pages)
{
    output->path = path && strcmp(path, "-") != 0 ? path : NULL;
    output->temporary = NULL;
    output->destination = (struct output_path){.path = NULL};
    output->pager = 0;
    if (output->path)
        return output_open_file(output, source);
    output_prepare(output, STDOUT_FILENO);
    if (pages && isatty(STDOUT_FILENO))
        output_start_pager(output);
    return STATUS_OK;
}

static int output_close_file(struct output_file *output, int status, bool keep)
{
    if (output->text.descriptor != STDOUT_FILENO && close(output->text.descriptor) != 0 &&
        !output->text.error)
        output->text.error = errno;
    if (output->temporary) {
        if (!keep || output->text.error)
            unlink(output->temporary);
        else if (rename(output->temporary, output->destination.path) != 0) {
            output->text.error = errno;
            unlink(output->temporary);
        }
        free(output->temporary);
        output->temporary = NULL;
    }
    output_path_free(&output->destination);
    if (!output->text.error)
        return status;
    /* A reader that closes the pipe early, such as head, is no failure. */
    if (output->text.error == EPIPE)
        return output->pager ? status : STATUS_INTERNAL;
    const char *name = output->path ? output->path : "standard output";
    if (output->text.is_full)
        return message_output(name);
    message("%s: %s", name, strerror(output->text.error));
    return STATUS_INTERNAL;
}

int output_close(struct output_file *output, int status, bool keep)
{
    out_flush(&output->text);
    status = output_close_file(output, status, keep);
    while (output->pager && waitpid(output->pager, NULL, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

int output_end_standard(void)
{
    return fflush(stdout) == 0 ? STATUS_OK : output_fail("standard output");
}
