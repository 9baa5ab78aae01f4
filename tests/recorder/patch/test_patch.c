/* SPDX-License-Identifier: MIT */
/*
 * Functions whose first instructions were moved do what they did before, also in a thread that was
 * stopped within these; what cannot be moved is refused.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "patch/instruction.h"
#include "patch/patch.h"

enum { PAGE = 4096, ROOM = 128, FUNCTIONS_MAX = 8192, COUNTING_SIZE = 12 };

typedef uint64_t function_of_two(uint64_t a, uint64_t b);

/* entries.S */
struct entry {
    function_of_two *function;
    uint64_t size;
    const char *name;
};
extern const struct entry entries[] __attribute__((visibility("hidden"))); /* to a NULL function */
extern const char entries_code[] __attribute__((visibility("hidden")));
extern const char entries_code_end[] __attribute__((visibility("hidden")));

/* Numbers to call them with. */
static const uint64_t numbers[] = {0, 1, 2, 3, 100, 255, 0x123456789abcdef, UINT64_MAX};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

/* Beside the code: for each patch the code that counts, and the trampoline; the counts. */
static uint8_t *near;
static uint64_t *count;

/* Maps memory within 2 GB of an address. */
static uint8_t *map_near(const void *address, size_t size)
{
    for (uintptr_t at = ((uintptr_t)address & -(uintptr_t)PAGE) - size; at > PAGE;
         at -= 16 * PAGE) {
        void *memory = mmap((void *)at, size, PROT_READ | PROT_WRITE | PROT_EXEC,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (memory != MAP_FAILED)
            return memory;
    }
    cr_assert_fail("no memory");
    return NULL;
}

static void make_writable(const void *begin, size_t size)
{
    uintptr_t first = (uintptr_t)begin & -(uintptr_t)PAGE;
    uintptr_t end = ((uintptr_t)begin + size + PAGE - 1) & -(uintptr_t)PAGE;
    cr_assert_eq(mprotect((void *)first, end - first, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
}

/* Makes the patch of a function; it goes to code that counts, and from there to the trampoline. */
static enum patch_status make(struct patch *patch, const void *function, size_t size, size_t index)
{
    uint8_t *counting = near + index * ROOM, *trampoline = counting + 16;
    int32_t to_count = (int32_t)((uint8_t *)&count[index] - (counting + 7));
    int32_t to_trampoline = (int32_t)(trampoline - (counting + COUNTING_SIZE));
    enum patch_status status = patch_make(patch, (uintptr_t)function, function, size,
                                          (uintptr_t)counting, (uintptr_t)trampoline);
    static const uint8_t increment[] = {0x48, 0xff, 0x05}; /* incq count(%rip) */
    memcpy(counting, increment, sizeof increment);
    memcpy(counting + 3, &to_count, 4);
    counting[7] = 0xe9;
    memcpy(counting + 8, &to_trampoline, 4);
    if (status == PATCH_OK)
        memcpy(trampoline, patch->code, patch->code_size);
    return status;
}

/* No function of the C library, which may be the one that is written. */
static void write_jump(uint64_t entry, const uint8_t *bytes)
{
    for (size_t i = 0; i < PATCH_JUMP_SIZE; i++)
        ((volatile uint8_t *)entry)[i] = bytes[i];
}

static void map_for(const void *functions, size_t functions_count)
{
    size_t size = functions_count * (ROOM + sizeof *count) + PAGE;
    near = map_near(functions, size & -(size_t)PAGE);
    count = (uint64_t *)(near + functions_count * ROOM);
}

static void map_for_entries(void)
{
    map_for(entries_code, FUNCTIONS_MAX);
    make_writable(entries_code, (size_t)(entries_code_end - entries_code));
}

Test(patch, functions_do_what_they_did)
{
    map_for_entries();
    for (const struct entry *entry = entries; entry->function; entry++) {
        uint64_t before[NUMBERS * NUMBERS];
        struct patch patch;
        for (size_t i = 0; i < NUMBERS * NUMBERS; i++)
            before[i] = entry->function(numbers[i / NUMBERS], numbers[i % NUMBERS]);
        enum patch_status status =
            make(&patch, (const void *)(uintptr_t)entry->function, entry->size, 0);
        cr_assert_eq(status, PATCH_OK, "%s: %s", entry->name, patch_reason(status));
        uint64_t counted = *count;
        write_jump(patch.entry, patch.jump);
        for (size_t i = 0; i < NUMBERS * NUMBERS; i++)
            cr_assert_eq(entry->function(numbers[i / NUMBERS], numbers[i % NUMBERS]), before[i],
                         "%s", entry->name);
        cr_assert_eq(*count - counted, NUMBERS * NUMBERS, "%s", entry->name);
        write_jump(patch.entry, patch.original);
        cr_assert_eq(entry->function(1, 2), before[NUMBERS + 2], "%s", entry->name);
        cr_assert_eq(*count - counted, NUMBERS * NUMBERS, "%s", entry->name);
    }
}

/* ---- A thread that is stopped ---- */

/* Where a thread is in its call when the function is patched or freed of the patch. */
struct stop {
    const struct entry *entry;
    uint64_t a, b;
    unsigned steps;
    bool is_patched; /* before the call, and no longer after the stop */
};

static void child_write(pid_t pid, uint64_t address, const uint8_t *bytes)
{
    long word = ptrace(PTRACE_PEEKTEXT, pid, address, NULL);
    memcpy(&word, bytes, PATCH_JUMP_SIZE);
    cr_assert_eq(ptrace(PTRACE_POKETEXT, pid, address, word), 0);
}

/* Calls the function in a child, changes it after some steps. Returns whether the thread was still
 * in it, and moved. Its exit tells whether the result was right. */
static enum patch_place call_and_stop(const struct stop *stop, const struct patch *patch)
{
    struct user_regs_struct registers;
    enum patch_place place = PATCH_ELSEWHERE;
    int status;
    uint64_t result = stop->entry->function(stop->a, stop->b);
    pid_t pid = fork();
    if (pid == 0) {
        if (stop->is_patched)
            write_jump(patch->entry, patch->jump);
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        _exit(stop->entry->function(stop->a, stop->b) == result ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    cr_assert(WIFSTOPPED(status));
    /* On to the entry, then as many steps as it says. */
    unsigned steps = 0;
    bool is_in = false;
    while (!is_in || steps++ < stop->steps) {
        ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL);
        waitpid(pid, &status, 0);
        cr_assert(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP, "%s: a step",
                  stop->entry->name);
        ptrace(PTRACE_GETREGS, pid, NULL, &registers);
        is_in = is_in || registers.rip == patch->entry;
    }
    uint64_t pc = registers.rip;
    place = stop->is_patched ? patch_pc_back(patch, &pc) : patch_pc_forward(patch, &pc);
    if (place != PATCH_BETWEEN) {
        registers.rip = pc;
        ptrace(PTRACE_SETREGS, pid, NULL, &registers);
        child_write(pid, patch->entry, stop->is_patched ? patch->original : patch->jump);
    }
    ptrace(PTRACE_DETACH, pid, NULL, NULL);
    waitpid(pid, &status, 0);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0,
              "%s(%" PRIx64 ", %" PRIx64 "): %u steps, %s", stop->entry->name, stop->a, stop->b,
              stop->steps, stop->is_patched ? "patched" : "not patched");
    return place;
}

Test(patch, stopped_threads_go_on, .timeout = 300)
{
    enum { STEPS = 9 };
    unsigned moved[2] = {0}, between[2] = {0};
    map_for_entries();
    for (const struct entry *entry = entries; entry->function; entry++) {
        struct patch patch;
        enum patch_status status =
            make(&patch, (const void *)(uintptr_t)entry->function, entry->size, 0);
        cr_assert_eq(status, PATCH_OK);
        /* Each takes two branches at the most. */
        for (unsigned i = 0; i < 2 * 2 * STEPS; i++) {
            const struct stop stop = {
                .entry = entry, .a = i % 2, .b = 100, .steps = i / 4, .is_patched = i / 2 % 2 == 1};
            enum patch_place place = call_and_stop(&stop, &patch);
            moved[stop.is_patched] += place == PATCH_MOVED;
            between[stop.is_patched] += place == PATCH_BETWEEN;
        }
    }
    cr_expect_gt(moved[0], 20);
    cr_expect_gt(moved[1], 100);
    cr_expect_eq(between[0], 0, "all places in a function have one in the trampoline");
    cr_expect_eq(between[1], 4, "behind the push of the two indirect calls");
}

/* ---- What is refused ---- */

static enum patch_status status_of(const uint8_t *bytes, size_t size)
{
    struct patch patch;
    uint8_t *exact = malloc(size);
    memcpy(exact, bytes, size);
    enum patch_status status = patch_make(&patch, 0x10000, exact, size, 0x20000, 0x30000);
    free(exact);
    return status;
}

#define STATUS_OF(...)                                                                             \
    status_of((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

Test(patch, what_cannot_be_moved_is_refused)
{
    cr_expect_eq(STATUS_OF(0x90, 0x90, 0x90, 0x90, 0xc3), PATCH_OK);
    cr_expect_eq(STATUS_OF(0x90, 0x90, 0x90, 0xc3), PATCH_SHORT, "no byte behind it");
    cr_expect_eq(STATUS_OF(0x31, 0xc0, 0xc3, 0x55, 0x53), PATCH_SHORT, "another function");
    cr_expect_eq(STATUS_OF(0x31, 0xc0, 0xc3, 0xcc, 0xcc), PATCH_OK, "padding");
    cr_expect_eq(STATUS_OF(0xeb, 0x03, 0x55, 0x53, 0x90, 0xc3), PATCH_SHORT, "more code");
    cr_expect_eq(STATUS_OF(0x06, 0x90, 0x90, 0x90, 0xc3), PATCH_UNKNOWN);
    cr_expect_eq(STATUS_OF(0x55, 0x48, 0x8b, 0x05, 0, 0, 0), PATCH_UNKNOWN, "not all there");
    cr_expect_eq(STATUS_OF(0xcc, 0x90, 0x90, 0x90, 0xc3), PATCH_FIXED, "a breakpoint");
    cr_expect_eq(STATUS_OF(0xc7, 0xf8, 0, 0, 0, 0, 0xc3), PATCH_FIXED, "xbegin");
    cr_expect_eq(STATUS_OF(0x67, 0x8b, 0x05, 0, 0, 0, 0, 0xc3), PATCH_FIXED, "from eip");
    cr_expect_eq(STATUS_OF(0xff, 0xd0, 0x90, 0x90, 0x90, 0xc3), PATCH_FIXED, "returns within");
    cr_expect_eq(STATUS_OF(0xff, 0x54, 0x24, 0x08, 0x90, 0xc3), PATCH_FIXED, "returns within");
    cr_expect_eq(STATUS_OF(0x50, 0xff, 0x54, 0x24, 0x08, 0xc3), PATCH_FIXED, "call *8(%%rsp)");
    cr_expect_eq(STATUS_OF(0x90, 0x90, 0x90, 0x90, 0x90, 0x75, 0xfc, 0xc3), PATCH_JUMPED_TO);
    cr_expect_eq(STATUS_OF(0x90, 0x90, 0x90, 0x90, 0x90, 0x75, 0xf9, 0xc3), PATCH_JUMPED_TO);
    cr_expect_eq(STATUS_OF(0x90, 0x90, 0x90, 0x90, 0x90, 0x75, 0xfe, 0xc3), PATCH_OK);
    cr_expect_eq(STATUS_OF(0x90, 0x90, 0x90, 0x90, 0x90, 0xe8, 0xf6, 0xff, 0xff, 0xff, 0xc3),
                 PATCH_OK, "a call to itself");
    cr_expect_eq(STATUS_OF(0x31, 0xc0, 0x75, 0xfd, 0x90, 0xc3), PATCH_JUMPED_TO,
                 "into an instruction");
    cr_expect_eq(STATUS_OF(0x8b, 0x05, 0xfa, 0xff, 0xff, 0xff, 0xc3), PATCH_JUMPED_TO,
                 "reads its own code");
}

Test(patch, all_is_within_reach)
{
    static const uint8_t code[] = {0x8b, 0x05, 0, 0, 0, 0, 0xc3}; /* reads what is behind it */
    const uint64_t entry = 0x100000000, far = UINT64_C(1) << 31;
    struct patch patch;
    cr_expect_eq(patch_make(&patch, entry, code, 7, entry + 5 + far - 1, entry), PATCH_OK);
    cr_expect_eq(patch_make(&patch, entry, code, 7, entry + 5 + far, entry), PATCH_FAR);
    cr_expect_eq(patch_make(&patch, entry, code, 7, entry + 5 - far, entry), PATCH_OK);
    cr_expect_eq(patch_make(&patch, entry, code, 7, entry + 5 - far - 1, entry), PATCH_FAR);
    cr_expect_eq(patch_make(&patch, entry, code, 7, entry, entry + far - 5), PATCH_OK);
    cr_expect_eq(patch_make(&patch, entry, code, 7, entry, entry + far), PATCH_FAR);
    cr_expect_eq(patch_make(&patch, entry, code, 7, entry, entry - far + 1), PATCH_OK);
    cr_expect_eq(patch_make(&patch, entry, code, 7, entry, entry - far), PATCH_FAR);
}

Test(patch, a_stub_goes_anywhere)
{
    uint8_t *memory = map_near((const void *)(uintptr_t)map_near, PAGE);
    function_of_two *function;
    patch_stub(memory, (uintptr_t)entries->function);
    memcpy(&function, &memory, sizeof function);
    cr_expect_eq(function(3, 4), 7);
}

static uint64_t join(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
    return ((((a * 10 + b) * 10 + c) * 10 + d) * 10 + e) * 10 + f;
}

Test(patch, a_gate_adds_an_argument)
{
    static const uint64_t joined[] = {923456, 193456, 129456, 123956, 123496, 123459};
    uint8_t *memory = map_near((const void *)(uintptr_t)map_near, PAGE);
    uint64_t (*function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
    memcpy(&function, &memory, sizeof function);
    for (unsigned i = 0; i <= PATCH_GATE_ARGUMENTS; i++) {
        patch_gate(memory, i, 9, (uintptr_t)join);
        cr_expect_eq(function(1, 2, 3, 4, 5, 6), joined[i]);
    }
}

static size_t own_code(void *context, uint64_t address, const uint8_t **code)
{
    (void)context;
    *code = (const uint8_t *)address;
    return address >= (uintptr_t)entries_code && address < (uintptr_t)entries_code_end
               ? (size_t)((uintptr_t)entries_code_end - address)
               : 0;
}

Test(patch, functions_that_change_every_register)
{
    extern void leaf(void), calls_leaf(void), has_table(void), has_plain_table(void);
    extern void never_ends(void), calls_another_module(void), calls_by_register(void);
    extern void ends_by_register(void), ends_by_memory(void);
    static void (*const others[])(void) = {leaf, calls_leaf, has_table, has_plain_table,
                                           never_ends};
    static void (*const all[])(void) = {calls_another_module, calls_by_register, ends_by_register,
                                        ends_by_memory};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        cr_expect_not(clobbers_all((uintptr_t)others[i], own_code, NULL), "%zu", i);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        cr_expect(clobbers_all((uintptr_t)all[i], own_code, NULL), "%zu", i);
    /* The decoder must know all that is there: here it is told of less. */
    cr_expect_not(clobbers_all((uintptr_t)entries_code_end, own_code, NULL));
}

/* ---- Functions that others have written ---- */

static struct patch patches[FUNCTIONS_MAX];

/* Patches all functions that the C library exports. Returns how many; sets how many were not. */
static size_t patch_library(size_t *refused)
{
    struct link_map *map = NULL;
    Dl_info info;
    const ElfW(Sym) *table = NULL;
    const char *strings = NULL;
    const uint32_t *hash = NULL;
    size_t made = 0;
    cr_assert(dladdr1((void *)(uintptr_t)qsort, &info, (void **)&map, RTLD_DL_LINKMAP));
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB)
            table = (const ElfW(Sym) *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_STRTAB)
            strings = (const char *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_GNU_HASH)
            hash = (const uint32_t *)entry->d_un.d_ptr;
    }
    cr_assert(table && strings && hash);
    const uint32_t *buckets = hash + 4 + 2 * (size_t)hash[2], *chains = buckets + hash[0];
    for (uint32_t bucket = 0; bucket < hash[0]; bucket++) {
        for (uint32_t index = buckets[bucket]; index >= hash[1]; index++) {
            const ElfW(Sym) *symbol = &table[index];
            const void *function = (const void *)(map->l_addr + symbol->st_value);
            bool is_known = ELF64_ST_TYPE(symbol->st_info) != STT_FUNC;
            for (size_t i = 0; i < made && !is_known; i++)
                is_known = patches[i].entry == (uintptr_t)function;
            if (!is_known) {
                make_writable(function, PATCH_JUMP_SIZE);
                enum patch_status status = make(&patches[made], function, symbol->st_size, made);
                made += status == PATCH_OK;
                *refused += status != PATCH_OK;
                cr_expect(status == PATCH_OK || !strstr(strings + symbol->st_name, "alloc"),
                          "%s: %s", strings + symbol->st_name, patch_reason(status));
            }
            if ((chains[index - hash[1]] & 1) != 0)
                break;
        }
    }
    for (size_t i = 0; i < made; i++)
        write_jump(patches[i].entry, patches[i].jump);
    return made;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Calls many functions of the C library; returns a sum of what they gave. */
static uint64_t work(void)
{
    enum { TEXTS = 500 };
    char *texts[TEXTS], line[64];
    uint64_t sum = 5381;
    srandom(1);
    for (int i = 0; i < TEXTS; i++) {
        snprintf(line, sizeof line, "%ld %g", random(), (double)random() / 1e3);
        texts[i] = strdup(line);
    }
    qsort(texts, TEXTS, sizeof *texts, compare_texts);
    FILE *file = tmpfile();
    for (int i = 0; i < TEXTS; i++) {
        fprintf(file, "%s\n", texts[i]);
        texts[i] = realloc(texts[i], 200);
        free(texts[i]);
    }
    rewind(file);
    while (fgets(line, sizeof line, file))
        sum = sum * 33 + strtoul(line, NULL, 10) + (uint64_t)strtod(strchr(line, ' '), NULL);
    fclose(file);
    time_t moment = 1000000000;
    struct tm parts;
    gmtime_r(&moment, &parts);
    sum += strftime(line, sizeof line, "%Y %B", &parts);
    int status = 0;
    if (fork() == 0)
        _exit(7);
    wait(&status);
    FILE *output = popen("echo 12", "r");
    int number = 0;
    sum += (uint64_t)fscanf(output, "%d", &number) + (uint64_t)number;
    return sum + (uint64_t)status + (uint64_t)pclose(output);
}

Test(patch, whole_c_library, .timeout = 120)
{
    size_t refused = 0;
    uint64_t before = work();
    map_for((const void *)(uintptr_t)qsort, FUNCTIONS_MAX);
    size_t made = patch_library(&refused);
    uint64_t after = work();
    uint64_t called = 0;
    for (size_t i = 0; i < made; i++) {
        write_jump(patches[i].entry, patches[i].original);
        called += count[i] != 0;
    }
    cr_expect_eq(after, before);
    cr_expect_gt(called, 30, "%zu of %zu were called", (size_t)called, made);
    cr_expect_gt(made, 1000);
    cr_expect_lt(refused * 20, made, "%zu refused", refused);
}
