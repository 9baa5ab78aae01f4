/* SPDX-License-Identifier: MIT */
/**
 * Names for addresses of modules: functions, files, lines and inlined calls.
 *
 * Debug information is untrusted input, so it is read in a child process, which can only write to
 * a pipe or a socket. Whatever happens to the child, whatever it says: the caller gets well-formed
 * names, or none. A child that crashes, hangs or lies is killed; what it had told by then is kept,
 * and the rest of the module is tried once more with the symbol table only.
 *
 * Sources of names, best first: DWARF (in the file, in a separate file found by build-id or debug
 * link below /usr/lib/debug, split or shared with dwz, or from debuginfod if DEBUGINFOD_URLS is set
 * in the environment), .symtab, .gnu_debugdata, .dynsym.
 *
 * A file is used only if its build-id is that of the module. A module without build-id is named by
 * a file at its path that has none either: that is the best that can be done, and it is wrong if
 * the file was replaced since. Modules that are no regular files (the vDSO, deleted files) have no
 * names; that is no error.
 */
#ifndef TTD_RECORDER_SYMBOLIZE_H
#define TTD_RECORDER_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SYMBOLIZE_FRAMES_MAX = 256,       /* frames of one address */
    SYMBOLIZE_STRING_MAX = 64 * 1024, /* bytes of a function or file; longer ones are left out */
};

/** Addresses of one module to name. All pointers are borrowed. */
struct symbolize_module {
    /** Absolute path, NUL-terminated; anything else has no names. */
    const char *path;
    const uint8_t *build_id;
    size_t build_id_size;
    /**
     * Return addresses minus the module's load bias, in any order; names are looked up one byte
     * before each.
     */
    const uint64_t *offsets;
    size_t offset_count;
};

/** A source place. Strings are not NUL-terminated; NULL with size 0 if unknown. */
struct symbolize_frame {
    /** As the module has it: mangled, without symbol version. */
    const char *function;
    size_t function_size;
    /** Absolute if the compiler told its directory. */
    const char *file;
    size_t file_size;
    /** From 1; 0 if unknown. */
    uint32_t line;
};

/**
 * Takes the names of one address: modules[module].offsets[...] == offset. `frames` holds up to
 * SYMBOLIZE_FRAMES_MAX of them, innermost first: inlined functions come before the function that
 * they are inlined in. None at all: nothing that can be read has a name for the address. They are
 * valid during the call.
 */
typedef void symbolize_function(void *context, size_t module, uint64_t offset,
                                const struct symbolize_frame *frames, size_t count);

/** What became of the modules that have offsets, each counted once; and of their addresses. */
struct symbolize_summary {
    /** Read to the end. */
    size_t modules_read;
    /** Read to the end, but only the symbol table: the debug information failed. */
    size_t modules_reduced;
    /** No file there, or none with this build-id. */
    size_t modules_absent;
    /** Unreadable, or the child failed even on the symbol table. */
    size_t modules_failed;
    /** Not begun or not ended before the time was over. */
    size_t modules_skipped;
    size_t addresses;
    size_t addresses_named;
};

/** How much may be spent. Zero stands for the default. */
struct symbolize_limits {
    /** Milliseconds for one module (60 s). */
    unsigned module_time;
    /** Milliseconds for all (120 s). */
    unsigned total_time;
    /** Bytes of address space on top of what the caller has (SYMBOLIZE_MEMORY). */
    uint64_t memory;
};

#define SYMBOLIZE_MEMORY (UINT64_C(4) << 30)

struct helper;

/**
 * Names the addresses of `count` modules.
 *
 * `function` is called at most once for each element of `offsets`, module by module and in no order
 * within one: for those that have names, and when all of a module has been read, debug information
 * included, for those that have none. It is called by this thread, in this process, while the child
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

/** The same within limits, NULL for the defaults, asking a helper first, NULL for none: see
 * helper.h. What the helper takes is not counted. */
int symbolize_with(struct helper *helper, const struct symbolize_limits *limits,
                   const struct symbolize_module *modules, size_t count,
                   symbolize_function *function, void *context, struct symbolize_summary *summary);

/**
 * Makes symbolize() end soon with EINTR, in this process and now and ever after; what was told by
 * then stays. For a signal handler.
 */
void symbolize_stop(void);

/** Whether that was called in this process. */
bool symbolize_is_stopped(void);

#endif
