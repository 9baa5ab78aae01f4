/* SPDX-License-Identifier: MIT */
/*
 * Patches the program's own versions of functions of the C library and the C++ runtime: no hook
 * could come before them otherwise. When the program starts there is one thread; it is here, and so
 * in none of them.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>

#include "patch/instruction.h"
#include "patch/patch.h"
#include "preload/system/own_memory.h"
#include "preload/system/replaced.h"
#include "preload/system/sys.h"
#include "allocator_names.h"
#include "preload/hooks/entries.h"
#include "preload/hooks/patched.h"
#include "preload/system/symbols.h"

extern const struct patched_hook first_hook __asm__("__start_patched_hooks")
    __attribute__((visibility("hidden")));
extern const struct patched_hook last_hook __asm__("__stop_patched_hooks")
    __attribute__((visibility("hidden")));

/* For each function there is a slot: the gate to its hook, and its trampoline. */
enum {
    PATCHES_MAX = 64,
    TRAMPOLINE_AT = 32,
    SLOT_SIZE = TRAMPOLINE_AT + PATCH_TRAMPOLINE_MAX,
    AREA_SIZE = (PATCHES_MAX * SLOT_SIZE + 4095) / 4096 * 4096,
    AREA_STEP = 1 << 16,
    AREA_LOWEST = 1 << 16,
    AREA_REACH = 1 << 30,
    /* Bytes of a function whose size is not known, or with the padding behind a short one. */
    SIZE_UNKNOWN = 32,
    SIZE_PADDED = 16,
};
_Static_assert((int)PATCH_GATE_SIZE <= (int)TRAMPOLINE_AT, "a gate fits");

struct patching {
    uint8_t *area; /* of those from `begin` on */
    size_t begin, count;
    struct patched_entry {
        uint64_t address;
        uint8_t original[PATCH_JUMP_SIZE], jump[PATCH_JUMP_SIZE];
        /* Where a hook that serves one function only has the function behind it; or NULL. */
        uintptr_t *behind;
        uintptr_t before;
    } entries[PATCHES_MAX];
};

static struct patching patching;

/* Whether the module has a sanitizer's runtime in it; that looks after its functions itself. */
static bool patching_has_sanitizer(const struct dl_find_object *object)
{
    struct symbols symbols;
    return symbols_of(object, &symbols) &&
           symbols_find(&symbols, "__sanitizer_get_allocated_size", 0);
}

/* Maps the area below the module, so that the program break can grow above it. */
static bool patching_map(uintptr_t function)
{
    struct dl_find_object object;
    if (_dl_find_object((void *)function, &object) != 0 || patching_has_sanitizer(&object))
        return false;
    uintptr_t begin = ((uintptr_t)object.dlfo_map_start & -(uintptr_t)AREA_STEP) - AREA_STEP;
    uintptr_t low = begin > AREA_REACH ? begin - AREA_REACH : AREA_LOWEST;
    for (uintptr_t at = begin; at >= low && at <= begin; at -= AREA_STEP) {
        long mapped = sys_call6(SYS_mmap, (long)at, AREA_SIZE, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (mapped == (long)at) {
            patching.area = (uint8_t *)at;
            own_memory_add(at, AREA_SIZE);
            return true;
        }
        if (mapped > 0) /* older systems do not know the flag */
            sys_call3(SYS_munmap, mapped, AREA_SIZE, 0);
    }
    return false;
}

static void patching_unmap(void)
{
    if (!patching.area)
        return;
    own_memory_remove((uintptr_t)patching.area);
    sys_call3(SYS_munmap, (long)patching.area, AREA_SIZE, 0);
    patching.area = NULL;
}

static const struct patched_hook *patching_hook(const char *name)
{
    for (const struct patched_hook *hook = &first_hook; hook < &last_hook; hook++)
        if (strcmp(hook->name, name) == 0)
            return hook;
    return NULL;
}

/* A segment of code: that of a function. */
struct patching_segment {
    uint64_t function, begin, end;
};

static int patching_find_segment(struct dl_phdr_info *info, size_t size, void *found)
{
    struct patching_segment *segment = found;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uint64_t begin = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD && (header->p_flags & (PF_R | PF_X)) == (PF_R | PF_X) &&
            segment->function >= begin && segment->function - begin < header->p_filesz) {
            segment->begin = begin;
            segment->end = begin + header->p_filesz;
            return 1;
        }
    }
    return 0;
}

static size_t patching_code(void *context, uint64_t address, const uint8_t **code)
{
    const struct patching_segment *segment = context;
    if (address < segment->begin || address >= segment->end)
        return 0;
    *code = (const uint8_t *)address;
    return segment->end - address < INSTRUCTION_MAX ? segment->end - address : INSTRUCTION_MAX;
}

/* Whether its callers leave nothing in registers that a hook changes. */
static bool patching_is_plain_call(uintptr_t function)
{
    struct patching_segment segment = {.function = function};
    return dl_iterate_phdr(patching_find_segment, &segment) != 0 &&
           clobbers_all(function, patching_code, &segment);
}

/* Makes the patch of a function, and writes its gate and its trampoline. */
static bool patching_add(const char *name, uintptr_t function, size_t size)
{
    struct patch patch;
    for (size_t i = 0; i < patching.count; i++)
        if (patching.entries[i].address == function)
            return true; /* under another name */
    if (patching.count == PATCHES_MAX || !patching_is_plain_call(function) ||
        (!patching.area && !patching_map(function)))
        return false;
    uint8_t *gate = patching.area + (patching.count - patching.begin) * SLOT_SIZE;
    uint8_t *trampoline = gate + TRAMPOLINE_AT;
    if (size < PATCH_JUMP_SIZE)
        size = size == 0 ? SIZE_UNKNOWN : SIZE_PADDED;
    if (patch_make(&patch, function, (const uint8_t *)function, size, (uintptr_t)gate,
                   (uintptr_t)trampoline) != PATCH_OK)
        return false;
    const struct patched_hook *hook = patching_hook(name);
    struct real_later *later = !hook ? real_later_named(name) : NULL;
    struct redirection *redirection = !hook && !later ? entries_named(name) : NULL;
    struct patched_entry *entry = &patching.entries[patching.count];
    *entry = (struct patched_entry){.address = function};
    if (hook)
        patch_gate(gate, hook->arguments, (uintptr_t)trampoline, hook->hook);
    else if (later && later->hook)
        entry->behind = (uintptr_t *)later->function;
    else if (redirection)
        entry->behind = &redirection->real_function;
    else
        return false;
    if (entry->behind)
        patch_stub(gate, later ? (uintptr_t)later->hook : redirection->hook);
    memcpy(trampoline, patch.code, patch.code_size);
    memcpy(entry->original, patch.original, PATCH_JUMP_SIZE);
    memcpy(entry->jump, patch.jump, PATCH_JUMP_SIZE);
    patching.count++;
    return true;
}

/* Adds the functions of the same module that have hooks, and that only its allocator has. */
static bool patching_add_others(uintptr_t function)
{
    struct dl_find_object object;
    struct symbols symbols;
    if (_dl_find_object((void *)function, &object) != 0 || !symbols_of(&object, &symbols))
        return false;
    for (const struct patched_hook *hook = &first_hook; hook < &last_hook; hook++) {
        const ElfW(Sym) *symbol = symbols_find(&symbols, hook->name, 0);
        if (symbol && symbol->st_shndx != SHN_UNDEF &&
            !patching_add(hook->name, symbols.bias + symbol->st_value, symbol->st_size))
            return false;
    }
    return true;
}

/* Writes to code. Through the file of the memory no mapping is split. */
static bool patching_write(int memory, uint64_t address, const uint8_t *bytes)
{
    enum { PAGE = 4096 };
    if (memory >= 0 && sys_call6(SYS_pwrite64, memory, (long)bytes, PATCH_JUMP_SIZE, (long)address,
                                 0, 0) == PATCH_JUMP_SIZE)
        return true;
    uint64_t begin = address & -(uint64_t)PAGE;
    uint64_t end = (address + PATCH_JUMP_SIZE + PAGE - 1) & -(uint64_t)PAGE;
    if (sys_call3(SYS_mprotect, (long)begin, (long)(end - begin),
                  PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
        return false;
    memcpy((void *)address, bytes, PATCH_JUMP_SIZE);
    sys_call3(SYS_mprotect, (long)begin, (long)(end - begin), PROT_READ | PROT_EXEC);
    return true;
}

/* Writes all jumps; on failure puts back the old bytes. */
static bool patching_write_jumps(void)
{
    int memory =
        (int)sys_call6(SYS_openat, AT_FDCWD, (long)"/proc/self/mem", O_RDWR | O_CLOEXEC, 0, 0, 0);
    size_t written = patching.begin;
    while (written < patching.count && patching_write(memory, patching.entries[written].address,
                                                      patching.entries[written].jump))
        written++;
    bool is_whole = written == patching.count;
    while (!is_whole && written-- > patching.begin)
        patching_write(memory, patching.entries[written].address,
                       patching.entries[written].original);
    if (memory >= 0)
        sys_call3(SYS_close, memory, 0, 0);
    return is_whole;
}

/* Whether the processor checks return addresses against a stack of its own: trampolines push. */
static bool patching_has_shadow_stack(void)
{
    enum { ARCH_SHSTK_STATUS = 0x5005 };
    uint64_t features = 0;
    return sys_call3(SYS_arch_prctl, ARCH_SHSTK_STATUS, (long)&features, 0) == 0 && features != 0;
}

/* Makes all that was added effective; undoes it if `is_whole` is not set, or on failure. */
static bool patching_end(bool is_whole)
{
    is_whole = is_whole && patching.count > patching.begin &&
               sys_call3(SYS_mprotect, (long)patching.area, AREA_SIZE, PROT_READ | PROT_EXEC) == 0;
    for (size_t i = patching.begin; is_whole && i < patching.count; i++) {
        struct patched_entry *entry = &patching.entries[i];
        uint8_t *slot = patching.area + (i - patching.begin) * SLOT_SIZE;
        if (!entry->behind)
            continue;
        entry->before = *entry->behind;
        *entry->behind = (uintptr_t)(slot + TRAMPOLINE_AT);
    }
    if (is_whole && patching_write_jumps()) {
        patching.begin = patching.count;
        patching.area = NULL;
        return true;
    }
    for (size_t i = patching.begin; is_whole && i < patching.count; i++)
        if (patching.entries[i].behind)
            *patching.entries[i].behind = patching.entries[i].before;
    patching.count = patching.begin;
    patching_unmap();
    return false;
}

static bool patching_is_possible(void)
{
    return __libc_single_threaded && !patching_has_shadow_stack();
}

bool replaced_patch(void)
{
    if (!patching_is_possible() ||
        !patching_end(replaced_each(patching_add) && patching.count > 0 &&
                      patching_add_others(patching.entries[0].address)))
        return false;
    replaced_any = false;
    return true;
}

/* ---- Allocators under names of their own ---- */

/* Adds a function of the program's, if it is one of such an allocator. */
static bool patching_add_named(const char *name, uintptr_t function, size_t size)
{
    if (entries_named(name))
        return patching_add(name, function, size);
    for (size_t i = 0; i < ALLOCATOR_NAMES; i++) {
        size_t prefix = strlen(allocator_names[i]) - (sizeof ALLOCATOR_NAMES_ENDING - 1);
        if (strncmp(name, allocator_names[i], prefix) == 0 &&
            (patching_hook(name + prefix) || entries_named(name + prefix)))
            return patching_add(name + prefix, function, size);
    }
    return true;
}

bool patch_within(void)
{
    return patching_is_possible() && (patching.count > 0 || program_has_allocator()) &&
           patching_end(program_each_function(patching_add_named));
}
