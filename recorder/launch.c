/* SPDX-License-Identifier: MIT */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "loader.h"
#include "messages.h"

enum { KEPT_MEMORY = 16 << 20 };

/* Keeps freed memory for the next trace: many processes end soon, and returning it to the system
 * and getting it again, page by page, is most of the cost of recording such a process here. */
void limits_keep_memory(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_TRIM_THRESHOLD, KEPT_MEMORY);
    mallopt(M_MMAP_THRESHOLD, KEPT_MEMORY);
}

void limits_raise(int resource)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(resource, &limit);
    }
}

/* Opens the channel. It is larger than some programs' limit of files; they keep theirs. */
int limits_open_channel(struct host *host, int memfd, uint32_t flags)
{
    struct rlimit limit;
    bool is_known = getrlimit(RLIMIT_FSIZE, &limit) == 0;
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    limits_raise(RLIMIT_FSIZE);
    int reason = memfd >= 0 ? host_adopt(host, memfd, flags) : host_open(host, flags);
    if (is_known)
        setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, before);
    return reason;
}

enum { INTERPRETERS_MAX = 4 };

static int launch_not_executable(const char *path, const char *reason)
{
    message("cannot run '%s': %s", path, reason);
    return EXIT_CANNOT_RUN;
}

static bool launch_read_at(int file, void *buffer, size_t size, uint64_t offset)
{
    return pread(file, buffer, size, (off_t)offset) == (ssize_t)size;
}

static int launch_check_runtime(const char *path, struct elf_file *elf)
{
    char name[32];
    if (!sanitizer_needed(elf, name))
        return 0;
    message("cannot record '%s': it is built with a sanitizer, whose runtime, %s, replaces malloc "
            "and lets no other library come before it; build it without to record it",
            path, name);
    return EXIT_SANITIZED;
}

/* Checks the libraries that are loaded before the program's own. */
static int launch_check_preloaded(const char *path)
{
    const char *value = getenv("LD_PRELOAD");
    const char *name = value ? sanitizer_preloaded(value) : NULL;
    if (!name)
        return 0;
    message("cannot record '%s': LD_PRELOAD has the runtime of a sanitizer, %.*s, which replaces "
            "malloc and lets no other library come before it; record without that",
            path, (int)strcspn(name, ": "), name);
    return EXIT_SANITIZED;
}

/* Checks a program's loader. A missing one is left to the system; it says so. */
static int launch_check_loader(const char *path, const char *loader)
{
    struct elf_file elf;
    int file = open(loader, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool is_suitable =
        file < 0 || (elf_open(&elf, file, launch_read_at) && loader_is_suitable(&elf));
    if (file >= 0)
        close(file);
    if (is_suitable)
        return 0;
    message("cannot record '%s': its loader, '%s', is not that of the GNU C library 2.35 or newer, "
            "and cannot load the recorder",
            path, loader);
    return EXIT_STATIC;
}

static int launch_check_elf(const char *path, struct elf_file *elf, bool *is_static)
{
    char loader[LOADER_PATH_MAX];
    int result = 0;
    switch (loader_find(elf, loader)) {
    case LOADER_NONE:
        if (is_static) {
            *is_static = true;
            return 0;
        }
        message("cannot record '%s' from its first instruction on: it is statically linked; start "
                "it by 'ttdrecord %s', or attach to it while it runs",
                path, path);
        return EXIT_STATIC;
    case LOADER_OTHER_MACHINE:
        return launch_not_executable(path, "it is for another architecture than x86-64");
    case LOADER_UNREADABLE:
        return launch_not_executable(path, "its program headers cannot be read");
    case LOADER_ANOTHER:
        result = launch_check_loader(path, loader);
        break;
    case LOADER_USUAL_ONE:
        break;
    }
    return result != 0 ? result : launch_check_runtime(path, elf);
}

/* Whether a program gains privileges: the loader then ignores LD_PRELOAD. */
static int launch_check_privileges(const char *path, const char *name, const struct stat *status)
{
    const char *privilege = status->st_mode & S_ISUID ? "setuid" : "setgid";
    if (!(status->st_mode & (S_ISUID | S_ISGID))) {
        if (getxattr(path, "security.capability", NULL, 0) <= 0)
            return 0;
        privilege = "given file capabilities";
    }
    message("cannot record '%s': it is %s, and the loader of such a program ignores the recorder; "
            "record a copy without that",
            name, privilege);
    return EXIT_SETUID;
}

static int launch_check_program(const char *path, const char *name, int interpreters,
                                bool *is_static);

/* Checks a script: it can be recorded if its interpreter can. */
static int launch_check_script(const char *path, char *line, int interpreters, bool *is_static)
{
    line[strcspn(line, "\n")] = '\0';
    char *interpreter = line + 2 + strspn(line + 2, " \t");
    interpreter[strcspn(interpreter, " \t")] = '\0';
    if (interpreters == INTERPRETERS_MAX)
        return launch_not_executable(path, "too many interpreters");
    return launch_check_program(interpreter, interpreter, interpreters + 1, is_static);
}

static int launch_check_program(const char *path, const char *name, int interpreters,
                                bool *is_static)
{
    char line[256] = "";
    struct elf_file elf;
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return launch_not_executable(name, strerror(errno));
    ssize_t size = pread(file, line, sizeof line - 1, 0);
    int result;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
        result = launch_not_executable(name, "not a regular file");
    else if ((result = launch_check_privileges(path, name, &status)) != 0)
        ;
    else if (size >= 2 && memcmp(line, "#!", 2) == 0)
        result = launch_check_script(name, line, interpreters, is_static);
    else if (elf_open(&elf, file, launch_read_at))
        result = launch_check_elf(name, &elf, is_static);
    else
        result =
            launch_not_executable(name, "neither an ELF file nor a script with an interpreter");
    close(file);
    return result;
}

static bool launch_is_runnable(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

static bool launch_search_path(const char *program, char path[LAUNCH_PATH_MAX])
{
    const char *directories = getenv("PATH");
    if (!directories)
        directories = "/usr/local/bin:/usr/bin:/bin";
    for (;;) {
        int length = (int)strcspn(directories, ":");
        int size = length == 0
                       ? snprintf(path, LAUNCH_PATH_MAX, "%s", program)
                       : snprintf(path, LAUNCH_PATH_MAX, "%.*s/%s", length, directories, program);
        if (size > 0 && size < LAUNCH_PATH_MAX && launch_is_runnable(path))
            return true;
        if (directories[length] == '\0')
            return false;
        directories += length + 1;
    }
}

int launch_find(const char *program, char path[LAUNCH_PATH_MAX], bool *is_static)
{
    if (!strchr(program, '/')) {
        if (!launch_search_path(program, path)) {
            message("cannot find '%s' in PATH", program);
            return EXIT_NOT_FOUND;
        }
    } else {
        if (snprintf(path, LAUNCH_PATH_MAX, "%s", program) >= LAUNCH_PATH_MAX)
            return launch_not_executable(program, strerror(ENAMETOOLONG));
        if (access(path, F_OK) != 0) {
            message("cannot find '%s': %s", program, strerror(errno));
            return EXIT_NOT_FOUND;
        }
        if (!launch_is_runnable(path))
            return launch_not_executable(path, "it is not an executable file");
    }
    int refused = launch_check_program(path, path, 0, is_static);
    return refused != 0 || (is_static && *is_static) ? refused : launch_check_preloaded(path);
}

int launch_check(const char *path, const char *name)
{
    return launch_check_program(path, name, 0, NULL);
}

/* Sets `path` to the directory of this program. Returns false and sets errno if it is unknown. */
static bool launch_find_self(char path[LAUNCH_PATH_MAX])
{
    ssize_t size = readlink("/proc/self/exe", path, LAUNCH_PATH_MAX - 1);
    if (size <= 0)
        return false;
    path[size] = '\0';
    *strrchr(path, '/') = '\0';
    return true;
}

/* Whether a file belongs to the owner of this program, or to root: nobody else has put it there. */
static bool launch_is_of_own_owner(const char *path)
{
    struct stat self, file;
    return stat("/proc/self/exe", &self) == 0 && stat(path, &file) == 0 &&
           (file.st_uid == self.st_uid || file.st_uid == 0);
}

/* The folder of the build directory is asked only by a program that is in a build directory: one
 * that has its library in a folder beside it. */
bool launch_find_analyzer(char path[LAUNCH_PATH_MAX])
{
    static const char name[] = "/ttdanalyze", built[] = "/../analyzer/ttdanalyze";
    static const char library[] = "/preload/" PRELOAD_NAME;
    char self[LAUNCH_PATH_MAX];
    if (!launch_find_self(self) || strlen(self) + sizeof built > LAUNCH_PATH_MAX)
        return false;
    snprintf(path, LAUNCH_PATH_MAX, "%s%s", self, name);
    if (access(path, X_OK) == 0)
        return true;
    snprintf(path, LAUNCH_PATH_MAX, "%s%s", self, library);
    if (access(path, R_OK) != 0)
        return false;
    snprintf(path, LAUNCH_PATH_MAX, "%s%s", self, built);
    return access(path, X_OK) == 0 && launch_is_of_own_owner(path);
}

/* Finds a library of the recorder, beside this program. */
static bool launch_find_library(const char *const candidates[2], char path[LAUNCH_PATH_MAX])
{
    char self[LAUNCH_PATH_MAX], candidate[LAUNCH_PATH_MAX + 256];
    if (!launch_find_self(self)) {
        message("cannot find my own path: %s", strerror(errno));
        return false;
    }
    for (size_t i = 0; i < 2; i++) {
        snprintf(candidate, sizeof candidate, "%s/%s", self, candidates[i]);
        char *resolved = realpath(candidate, NULL);
        if (!resolved)
            continue;
        snprintf(path, LAUNCH_PATH_MAX, "%s", resolved);
        free(resolved);
        return true;
    }
    message("cannot find %s beside '%s'; is the installation complete?",
            strrchr(candidates[0], '/') + 1, self);
    return false;
}

bool launch_find_preload(char path[LAUNCH_PATH_MAX])
{
    static const char *const candidates[] = {"preload/" PRELOAD_NAME, PRELOAD_FROM_BINDIR};
    if (!launch_find_library(candidates, path))
        return false;
    if (!strpbrk(path, ": "))
        return true;
    message("'%s' cannot be preloaded: its path has a colon or a space in it", path);
    return false;
}

bool launch_find_attached(char path[LAUNCH_PATH_MAX])
{
    static const char *const candidates[] = {"preload/" ATTACHED_NAME, ATTACHED_FROM_BINDIR};
    return launch_find_library(candidates, path);
}

bool launch_is_possible(void)
{
    const char *channel = getenv(CHANNEL_ENV);
    if (!channel || (!strchr(channel, '=') && access(channel, F_OK) != 0))
        return true;
    message("this runs under another ttdrecord, which records all that is started here already; "
            "recordings cannot be nested");
    return false;
}

static bool launch_set_environment(const char *preload, const struct host *host)
{
    const char *others = getenv("LD_PRELOAD");
    char *joined = NULL;
    if (others && others[0] != '\0') {
        if (asprintf(&joined, "%s:%s", preload, others) < 0)
            return false;
        preload = joined;
    }
    bool is_set = setenv("LD_PRELOAD", preload, 1) == 0 && setenv(CHANNEL_ENV, host->path, 1) == 0;
    free(joined);
    return is_set;
}

/* Attributes of a process that an exec keeps and a fork does not. */
struct attributes {
    pid_t parent;
    int death_signal; /* this process gets it when its own parent dies */
    bool reaps;       /* orphans become its children */
    bool leads;       /* a session that has no terminal */
};

/* Whether this process leads a session without a terminal. One that has a terminal cannot be given
 * to a new session, and others of the old one would lose it. */
static bool launch_leads_session(pid_t self)
{
    if (getsid(0) != self)
        return false;
    int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (terminal < 0)
        return errno == ENXIO;
    close(terminal);
    return false;
}

static struct attributes launch_own_attributes(void)
{
    struct attributes own = {.parent = getpid()};
    int is_subreaper = 0;
    prctl(PR_GET_PDEATHSIG, &own.death_signal);
    prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper);
    own.reaps = own.parent == 1 || is_subreaper;
    own.leads = launch_leads_session(own.parent);
    return own;
}

static void launch_keep_attributes(const struct attributes *attributes)
{
    if (attributes->leads)
        setsid();
    if (attributes->reaps)
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (attributes->death_signal == 0)
        return;
    prctl(PR_SET_PDEATHSIG, attributes->death_signal);
    if (getppid() != attributes->parent)
        raise(attributes->death_signal);
}

/* In the child: waits for a byte, executes the program, and reports errno if that fails. */
static void launch_become(const char *path, char *const *arguments, const char *preload,
                          const struct host *host, int go, int report)
{
    char byte;
    if (read(go, &byte, 1) != 1)
        _exit(EXIT_RECORDER);
    if (!host || launch_set_environment(preload, host))
        execv(path, arguments);
    int reason = errno;
    ssize_t written = write(report, &reason, sizeof reason);
    _exit(written == sizeof reason ? EXIT_CANNOT_RUN : EXIT_RECORDER);
}

static void launch_close_both(const int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

bool launch_prepare(struct launch *launch, const char *path, char *const *arguments,
                    const char *preload, struct host *host)
{
    int go[2], report[2];
    launch->path = path;
    launch->pid = -1;
    struct attributes attributes = launch_own_attributes();
    if (pipe2(go, O_CLOEXEC) == 0) {
        if (pipe2(report, O_CLOEXEC) == 0) {
            launch->pid = fork();
            if (launch->pid == 0) {
                close(go[1]);
                launch_keep_attributes(&attributes);
                launch_become(path, arguments, preload, host, go[0], report[1]);
            }
            if (launch->pid < 0)
                launch_close_both(report);
        }
        if (launch->pid < 0)
            launch_close_both(go);
    }
    if (launch->pid < 0) {
        message("cannot start '%s': %s", path, strerror(errno));
        return false;
    }
    close(go[0]);
    close(report[1]);
    launch->go = go[1];
    launch->report = report[0];
    if (host)
        host->channel->launched_pid = (uint32_t)launch->pid;
    return true;
}

bool launch_go(struct launch *launch)
{
    int reason = 0;
    ssize_t size = write(launch->go, "", 1);
    close(launch->go);
    /* The pipe is closed on exec: its end without a byte means that the program runs. */
    if (size == 1)
        size = read(launch->report, &reason, sizeof reason);
    close(launch->report);
    if (size == 0)
        return true;
    message("cannot run '%s': %s", launch->path, strerror(size > 0 ? reason : errno));
    waitpid(launch->pid, NULL, 0);
    return false;
}

void launch_cancel(struct launch *launch)
{
    close(launch->go);
    close(launch->report);
    waitpid(launch->pid, NULL, 0);
}

void launch_join_arguments(char *text, size_t size)
{
    while (size > 0 && text[size - 1] == '\0')
        size--;
    text[size] = '\0';
    for (size_t i = 0; i < size; i++)
        if (text[i] == '\0')
            text[i] = ' ';
}
