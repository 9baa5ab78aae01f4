/* SPDX-License-Identifier: MIT */
/**
 * The functions of POSIX and of the GNU C library that ttdanalyze uses and Windows lacks. Meson
 * includes this header at the beginning of each file of common/ and analyzer/, on Windows only; so
 * these files know one system. The headers beside it stand for those that Windows lacks.
 *
 * File names, arguments and variables of the environment are UTF-8. Files are binary. Failures set
 * errno.
 */
#ifndef TTD_WINDOWS_POSIX_H
#define TTD_WINDOWS_POSIX_H

#include <dirent.h>
#include <direct.h>
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <process.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* The program's entry converts the arguments and calls main(). */

#define main posix_main
int posix_main(int count, char **arguments);

/* Strings. */

void *mempcpy(void *target, const void *source, size_t size);
char *stpcpy(char *target, const char *source);
void *memmem(const void *data, size_t size, const void *part, size_t part_size);
void *memrchr(const void *data, int byte, size_t size);
char *strndup(const char *text, size_t size);

/* Files. */

#define O_CLOEXEC  O_NOINHERIT
#define O_NOCTTY   0
#define O_NONBLOCK 0

/* No file system has files without names: open() refuses this flag. */
#define O_TMPFILE 0x40000000

int posix_open(const char *path, int flags, ...);
int64_t posix_lseek(int descriptor, int64_t offset, int whence);
ssize_t posix_read(int descriptor, void *data, size_t size);
ssize_t posix_write(int descriptor, const void *data, size_t size);
ssize_t posix_pread(int descriptor, void *data, size_t size, int64_t offset);
int posix_isatty(int descriptor);
int posix_access(const char *path, int mode);
int posix_unlink(const char *path);
int posix_rename(const char *path, const char *target);
FILE *posix_fopen(const char *path, const char *mode);

/** Makes a file that only this user may open, and that can be renamed while it is open. */
int posix_mkstemp(char *pattern);

/** Such a file, removed when it is closed. */
int mkostemp(char *pattern, int flags);

#undef lseek
#undef fstat
#undef stat
#undef S_IWGRP
#undef S_IWOTH
#undef SIG_UNBLOCK
#define open(...) posix_open(__VA_ARGS__)
#define lseek     posix_lseek
#define read      posix_read
#define write     posix_write
#define pread     posix_pread
#define isatty    posix_isatty
#define access    posix_access
#define unlink    posix_unlink
#define rename    posix_rename
#define fopen     posix_fopen
#define mkstemp   posix_mkstemp
#define fchmod    posix_fchmod

/** Nothing is left to do: a file is private from the beginning. */
static inline int posix_fchmod(int descriptor, int mode)
{
    (void)descriptor;
    (void)mode;
    return 0;
}

int link(const char *path, const char *target);

#define AT_FDCWD          (-1)
#define AT_SYMLINK_FOLLOW 0

/** There are no files without names, which alone are given some. */
#define linkat(directory, path, target_directory, target, flags)                                   \
    ((void)(path), (void)(target), errno = ENOSYS, -1)

/* Owners and permissions. A user's number is 0 for the system and its administrators, 1 for this
 * user, and otherwise a hash of the identifier (SID). S_IWOTH is set if somebody but these and the
 * owner may write the file. */

#define S_IWGRP 0020
#define S_IWOTH 0002

struct posix_stat {
    uint64_t st_dev, st_ino, st_uid;
    int64_t st_size;
    int st_mode;
    struct timespec st_mtim, st_ctim;
};

int posix_fstat(int descriptor, struct posix_stat *result);
int posix_path_stat(const char *path, struct posix_stat *result);

#define stat            posix_stat
#define posix_stat(...) posix_path_stat(__VA_ARGS__)
#define fstat           posix_fstat
#define lstat           posix_path_stat
#define geteuid()       UINT64_C(1)

/* Directories. */

struct posix_directory;
struct posix_entry {
    char d_name[3 * 260 + 1];
};

struct posix_directory *posix_opendir(const char *path);
struct posix_entry *posix_readdir(struct posix_directory *directory);
int posix_closedir(struct posix_directory *directory);

#define DIR      struct posix_directory
#define dirent   posix_entry
#define opendir  posix_opendir
#define readdir  posix_readdir
#define closedir posix_closedir

/* Memory. */

#define MFD_CLOEXEC 0
#define PROT_READ   1
#define MAP_PRIVATE 1
#define MAP_FAILED  NULL

/** Makes a temporary file, removed when it is closed. */
int memfd_create(const char *name, unsigned flags);

/** Maps a file, to be read. */
void *mmap(void *address, size_t size, int protection, int flags, int descriptor, int64_t offset);
int munmap(void *memory, size_t size);

/* The limit of memory is that of a job which has this process only. */

enum { RLIMIT_DATA };
#define RLIM_INFINITY UINT64_MAX

struct rlimit {
    uint64_t rlim_cur, rlim_max;
};

int getrlimit(int resource, struct rlimit *limit);
int setrlimit(int resource, const struct rlimit *limit);

enum { _SC_PHYS_PAGES, _SC_PAGESIZE };
long sysconf(int name);

/* Randomness. */

int getentropy(void *data, size_t size);
ssize_t getrandom(void *data, size_t size, unsigned flags);

/* The environment. TMPDIR is the directory of temporary files unless it is set. */

char *posix_getenv(const char *name);
#define getenv posix_getenv
#define setenv posix_setenv

static inline int posix_setenv(const char *name, const char *value, int replaces)
{
    return replaces || !posix_getenv(name) ? _putenv_s(name, value) : 0;
}

/* The only question about a locale: its characters. They are UTF-8 unless variables name others. */

typedef void *locale_t;
enum { CODESET };
#define LC_CTYPE_MASK               1
#define newlocale(mask, name, base) ((locale_t)1)
#define freelocale(locale)          ((void)(locale))
const char *nl_langinfo_l(int item, locale_t locale);

/* The console. */

#define TIOCGWINSZ 0
struct winsize {
    unsigned short ws_row, ws_col;
};
int ioctl(int descriptor, int request, struct winsize *size);

/* Processes: none can be started. The output goes to the console without a pager. */

pid_t posix_fork(void);
#define fork posix_fork
pid_t waitpid(pid_t process, int *status, int options);
int execl(const char *path, const char *argument, ...);
int pipe(int ends[2]);

/* Processors. */

typedef struct {
    int count;
} cpu_set_t;
#define CPU_COUNT(set) ((set)->count)
int sched_getaffinity(int process, size_t size, cpu_set_t *set);

/* Signals: SIGINT is a key, SIGALRM a timer; their handlers run in a thread of the system's. */

#define SIGALRM     14
#define SIGPIPE     13
#define SA_RESTART  0
#define SIG_UNBLOCK 0

typedef int posix_sigset;
struct sigaction {
    void (*sa_handler)(int signal);
    posix_sigset sa_mask;
    int sa_flags;
};

struct posix_interval {
    time_t tv_sec;
    long tv_usec;
};
struct itimerval {
    struct posix_interval it_interval, it_value;
};
enum { ITIMER_REAL };

#define sigset_t                      posix_sigset
#define sigemptyset(set)              ((void)(*(set) = 0))
#define sigaddset(set, signal)        ((void)(set))
#define sigprocmask(how, set, before) ((void)(set))
#define signal(number, handler)       ((void)0)
int sigaction(int signal, const struct sigaction *action, struct sigaction *before);
int setitimer(int which, const struct itimerval *timer, struct itimerval *before);

/* Streams and time. */

struct tm *gmtime_r(const time_t *time, struct tm *parts);

ssize_t getline(char **line, size_t *capacity, FILE *stream);

#endif
