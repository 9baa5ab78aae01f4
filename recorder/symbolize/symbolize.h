/* SPDX-License-Identifier: MIT */
/**
 * Names for addresses of modules: functions, files, lines and inlined calls; and variables.
 *
 * Debug information is untrusted input, so it is read in a child process; that can only write to a
 * pipe or a socket. Whatever happens to the child, the caller gets well-formed names or none. A
 * child that crashes, hangs or sends malformed messages is killed; the answers before that are
 * kept, and the rest of the module is read once more, its symbol table only.
 *
 * Sources of names, best first: DWARF (in the file, in a separate file found by build-id or debug
 * link below /usr/lib/debug, split or shared with dwz, or from debuginfod if DEBUGINFOD_URLS is set
 * in the environment), .symtab, .gnu_debugdata, .dynsym.
 *
 * A file is used only if its build-id equals the module's. If that at the module's path is another,
 * or there is none, a separate debug file is looked for by build-id alone. A module without
 * build-id is named by a file at its path that has none either, and is still the same file. Modules
 * that are no regular files (the vDSO, deleted files) and have no debug file have no names; that is
 * no error.
 */
#ifndef RECORDER_SYMBOLIZE_SYMBOLIZE_H
#define RECORDER_SYMBOLIZE_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/**
 * Set in offsets of thread-local data, whose other bits count from the begin of the module's block
 * of thread-local storage. Its addresses in the file may belong to other sections, too.
 */
#define SYMBOLIZE_TLS (UINT64_C(1) << 63)

enum {
    SYMBOLIZE_FRAMES_MAX = 256,       /* frames of one address */
    SYMBOLIZE_STRING_MAX = 64 * 1024, /* bytes of a function or file; longer functions are cut,
                                         longer files left out */
};

/** Distinguishes a file from others that are at its path later. Times are in nanoseconds. */
struct symbolize_file {
    uint64_t device;
    /** 0 if nothing is known. */
    uint64_t inode;
    uint64_t size;
    uint64_t modified;
    /** 0 if it does not matter: a file that stays open may have been removed. */
    uint64_t changed;
};

/** Addresses of one module to name. All pointers are borrowed. */
struct symbolize_module {
    /** Absolute path, NUL-terminated; a module with another path has no names. */
    const char *path;
    /** Where the file can be read now; NULL if at its path. */
    const char *place;
    /** Without a build-id, a file at the path that is another one is not used. */
    struct symbolize_file file;
    const uint8_t *build_id;
    size_t build_id_size;
    /**
     * Return addresses minus the module's load bias, in any order; names are looked up one byte
     * before each. For data, addresses minus the load bias, ascending.
     */
    const uint64_t *offsets;
    size_t offset_count;
    /** The variables that hold the offsets are named, not the functions. */
    bool is_data;
};

/** A frame: a function and a source location; or a variable. Strings are not NUL-terminated; NULL
 * with size 0 if unknown. */
struct symbolize_frame {
    /** The function's name as the module has it: mangled, without symbol version. For data, the
     * variable or, if there is none, the section, whose name begins with a dot. */
    const char *function;
    size_t function_size;
    /** Absolute if the compiler recorded its directory. */
    const char *file;
    size_t file_size;
    /** From 1; 0 if unknown. */
    uint32_t line;
    /** For data: the first offset of the variable or section, and its size in bytes. */
    uint64_t begin;
    uint64_t size;
};

/**
 * Takes the names of one address: modules[module].offsets[...] == offset. `frames` holds up to
 * SYMBOLIZE_FRAMES_MAX of them, innermost first: inlined functions come before the function that
 * they are inlined in. `count` is 0 if the module has no name for the address. Frames are valid
 * during the call.
 *
 * For data, `count` is 1, and only the first of the offsets in one variable or section is answered.
 */
typedef void symbolize_function(void *context, size_t module, uint64_t offset,
                                const struct symbolize_frame *frames, size_t count);

/** Result of the lookup for a module. */
enum symbolize_result {
    SYMBOLIZE_SKIPPED, /* not finished before the time limit */
    SYMBOLIZE_READ,    /* read to the end */
    SYMBOLIZE_REDUCED, /* read to the end, but only the symbol table: the debug information failed
                        */
    SYMBOLIZE_ABSENT,  /* no file has its build-id */
    SYMBOLIZE_FAILED   /* the file is unreadable, or the child failed even on the symbol table */
};

/** Counts of the modules that have offsets, each in one of the first five, and of addresses. */
struct symbolize_summary {
    size_t modules_read;
    size_t modules_reduced;
    size_t modules_absent;
    size_t modules_failed;
    size_t modules_skipped;
    size_t addresses;
    size_t addresses_named;
};

struct helper;

/** Options of a call. Zero stands for the default. */
struct symbolize_options {
    /** Asked first, NULL for none: see worker.h. Its time does not count against the limits. */
    struct helper *helper;
    /** Milliseconds for one module (60 s). */
    unsigned module_time;
    /** Milliseconds for all (120 s). */
    unsigned total_time;
    /** Bytes of address space on top of the caller's (SYMBOLIZE_MEMORY). */
    uint64_t memory;
    /** Set for each module that has offsets; NULL if nobody wants to know. */
    enum symbolize_result *results;
    /** Called with the context when a child begins with a module; NULL for none. */
    void (*begin)(void *context, size_t module);
};

#define SYMBOLIZE_MEMORY (UINT64_C(4) << 30)

/**
 * Names the addresses of `count` modules.
 *
 * `function` is called at most once for each element of `offsets`, module by module, in no order
 * within a module: for those that have names and, if the module was read to the end with its debug
 * information, for addresses of code that have none. It is called by this thread while the child
 * runs.
 *
 * One child, beside a helper, exists at a time and is gone on return. Only its own process id is
 * waited for; the caller may ignore SIGCHLD, and must tolerate one while it runs. The child
 * inherits memory: mark shared mappings that matter MADV_DONTFORK. Other threads may run, but
 * should not be inside of dlopen().
 *
 * @param summary  filled in also on error; may be NULL.
 * @return 0; or an errno value if there could be no child (EAGAIN, EMFILE, ENOMEM), EINTR after
 *         symbolize_stop(), or EINVAL if there are more than UINT32_MAX modules or offsets in one.
 */
int symbolize(const struct symbolize_module *modules, size_t count, symbolize_function *function,
              void *context, struct symbolize_summary *summary);

/** Like symbolize(), with options; NULL for the defaults. */
int symbolize_with(const struct symbolize_options *options, const struct symbolize_module *modules,
                   size_t count, symbolize_function *function, void *context,
                   struct symbolize_summary *summary);

/**
 * Sets directories, separated by colons, that have debug files below `.build-id`, beside
 * /usr/lib/debug. For the children started from now on.
 */
void symbolize_set_debug_path(const char *path);

/**
 * Makes every running and later symbolize() of this process return EINTR soon; answers passed on
 * before stay valid. Async-signal-safe.
 */
void symbolize_stop(void);

/** Whether symbolize_stop() was called in this process. */
bool symbolize_is_stopped(void);

/* Monotonic time in milliseconds, for deadlines. */

/** Returns CLOCK_MONOTONIC in milliseconds. */
static inline int64_t symbolize_milliseconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

#endif
