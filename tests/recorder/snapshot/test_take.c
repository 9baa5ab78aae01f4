/* SPDX-License-Identifier: MIT */
/* Pointers that a child has put into every kind of place, and which of them a snapshot has. */
#include <alloca.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "child.h"
#include "preload/system/borrowed.h"
#include "trace_of.h"

enum place {
    DATA,
    BSS,
    STACK,
    TLS,
    THREAD_STACK,
    THREAD_TLS,
    THREAD_VECTOR,
    HEAP,
    ARENA,
    MAPPED,
    SHARED,
    FILE_MAPPED,
    WIPED,
    KEPT_OUT,
    RED_ZONE_BELOW, /* dead stack */
    ENDED_STACK,
    UNMAPPED,
    OWN,
    PLACES
};

/* Other words of the shared memory. */
enum { REGISTER = 100, TID, STACK_POINTER, POINTER, OWN_MEMORY, RUNS, FRAME, THREAD_FRAME };

/* Keeps addresses in the shared memory from being references themselves. */
#define MASK UINT64_C(0xa5a5000000000000)

static volatile struct child_shared *child_shared;
static int target;
static void *volatile data = &target;
static void *volatile bss;
static __thread void *volatile tls;
static struct own_memory own;

/* Puts the address of a new block into a place. */
static void put(enum place place, void *volatile *slot)
{
    *slot = malloc(24);
    child_shared->values[2 * place] = (uintptr_t)slot ^ MASK;
    child_shared->values[2 * place + 1] = (uintptr_t)*slot ^ MASK;
}

static void *map(int flags, int file)
{
    return mmap(NULL, 8192, PROT_READ | PROT_WRITE, flags, file, 0);
}

static void __attribute__((noinline)) put_below(enum place place)
{
    void *volatile *deep = alloca(16384);
    put(place, deep);
}

static void *end_soon(void *unused)
{
    put_below(ENDED_STACK);
    return unused;
}

static void *live_on(void *unused)
{
    void *volatile slot;
    child_shared->values[THREAD_FRAME] = (uintptr_t)__builtin_dwarf_cfa() ^ MASK;
    put(THREAD_STACK, &slot);
    put(THREAD_TLS, &tls);
    void *volatile *block = malloc(64);
    put(ARENA, block);
    uintptr_t pointer;
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
    child_shared->values[2 * THREAD_VECTOR] = (pointer + 8) ^ MASK;
    child_shared->values[2 * THREAD_VECTOR + 1] = (((uint64_t *)pointer)[1] - 16) ^ MASK;
    register void *held __asm__("r12") = malloc(24);
    child_shared->values[REGISTER] = (uintptr_t)held ^ MASK;
    while (!child_shared->may_go) {
        child_shared->values[RUNS] = 1;
        __asm__ volatile("" : "+r"(held));
    }
    return !slot ? NULL : unused;
}

static void *volatile *file_page(void)
{
    char path[] = "/tmp/snapshot-test-XXXXXX";
    int file = mkstemp(path);
    unlink(path);
    if (file < 0 || ftruncate(file, 8192) != 0)
        abort();
    return map(MAP_PRIVATE, file);
}

static void *volatile *map_for_copies(int advice)
{
    void *page = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
    madvise(page, 8192, advice);
    return page;
}

static void put_everywhere(volatile struct child_shared *shared)
{
    pthread_t living, ended;
    void *volatile slot;
    child_shared = shared;
    shared->values[FRAME] = (uintptr_t)__builtin_dwarf_cfa() ^ MASK;
    pthread_create(&living, NULL, live_on, NULL);
    while (shared->values[RUNS] == 0)
        ;
    pthread_create(&ended, NULL, end_soon, NULL);
    pthread_join(ended, NULL);
    put(DATA, &data);
    put(BSS, &bss);
    put(STACK, &slot);
    put(TLS, &tls);
    put(HEAP, malloc(64));
    put(MAPPED, map(MAP_PRIVATE | MAP_ANONYMOUS, -1));
    put(SHARED, map(MAP_SHARED | MAP_ANONYMOUS, -1));
    put(FILE_MAPPED, file_page());
    put(WIPED, map_for_copies(MADV_WIPEONFORK));
    put(KEPT_OUT, map_for_copies(MADV_DONTFORK));
    void *gone = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
    put(UNMAPPED, gone);
    munmap(gone, 8192);
    void *hidden = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
    put(OWN, hidden);
    own.ranges[3].begin = (uintptr_t)hidden;
    own.ranges[3].size = 8192;
    put_below(RED_ZONE_BELOW);
    shared->values[OWN_MEMORY] = (uintptr_t)&own ^ MASK;
    shared->values[TID] = (uint64_t)syscall(SYS_gettid);
    uintptr_t pointer;
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
    shared->values[POINTER] = pointer ^ MASK;
    shared->values[STACK_POINTER] = (uintptr_t)(&slot + 1) ^ MASK;
    child_wait(shared);
    pthread_join(living, NULL);
}

static void learn_blocks(const struct child *child, struct heap_pages *pages)
{
    for (size_t i = 0; i < PLACES; i++)
        heap_pages_add(pages, child->shared->values[2 * i + 1] ^ MASK, 24);
    heap_pages_add(pages, child->shared->values[REGISTER] ^ MASK, 24);
    heap_pages_add(pages, child->shared->values[2 * HEAP] ^ MASK, 64);
}

static const struct {
    const char *name;
    unsigned kind; /* 0: is not to be found */
} expected[PLACES] = {
    [DATA] = {"data", TTD_REGION_MODULE},
    [BSS] = {"bss", TTD_REGION_MODULE},
    [STACK] = {"stack", TTD_REGION_STACK},
    [TLS] = {"tls", TTD_REGION_TLS},
    [THREAD_STACK] = {"stack of a thread", TTD_REGION_STACK},
    [THREAD_TLS] = {"tls of a thread", TTD_REGION_TLS},
    [THREAD_VECTOR] = {"vector of a thread", TTD_REGION_TLS},
    [HEAP] = {"heap", TTD_REGION_HEAP},
    [ARENA] = {"arena", TTD_REGION_HEAP},
    [MAPPED] = {"mapped", TTD_REGION_ANONYMOUS},
    [SHARED] = {"shared", TTD_REGION_FILE},
    [FILE_MAPPED] = {"file", TTD_REGION_FILE},
    [WIPED] = {"wiped in copies", TTD_REGION_ANONYMOUS},
    [KEPT_OUT] = {"kept out of copies", TTD_REGION_ANONYMOUS},
    [RED_ZONE_BELOW] = {"below the stack", 0},
    [ENDED_STACK] = {"stack of an ended thread", 0},
    [UNMAPPED] = {"unmapped", 0},
    [OWN] = {"the recorder's own", 0},
};

static void check_places(const struct child *child, const struct found *found)
{
    for (size_t i = 0; i < PLACES; i++) {
        const struct ttd_region *region;
        uint64_t address = child->shared->values[2 * i] ^ MASK;
        uint64_t value = child->shared->values[2 * i + 1] ^ MASK;
        const struct ttd_reference *reference = found_at(found, address, &region);
        unsigned kind = region ? region->kind : 0;
        cr_expect(kind == expected[i].kind, "%s: kind %u at %lx", expected[i].name, kind,
                  (unsigned long)address);
        cr_expect(!reference || reference->value == value, "%s: %lx, not %lx", expected[i].name,
                  (unsigned long)reference->value, (unsigned long)value);
    }
}

/* Whether a register of a thread has a value. */
static bool is_in_register(const struct found *found, uint64_t value, unsigned number)
{
    for (size_t i = 0; i < found->reference_count; i++)
        if (found->regions[found->references[i].region - 1].kind == TTD_REGION_REGISTERS &&
            found->references[i].offset == number * 8 && found->references[i].value == value)
            return true;
    return false;
}

static struct snapshot_request request_of(const struct child *child)
{
    return (struct snapshot_request){
        .tid = (uint32_t)child->shared->values[TID],
        .stack_pointer = child->shared->values[STACK_POINTER] ^ MASK,
        .thread_pointer = child->shared->values[POINTER] ^ MASK,
        .own_memory = child->shared->values[OWN_MEMORY] ^ MASK,
        .registers_valid = 1u << 3,
        .registers = {[3] = child->shared->values[2 * DATA + 1] ^ MASK,
                      [12] = child->shared->values[2 * BSS + 1] ^ MASK},
    };
}

Test(take, pointers_in_every_kind_of_place, .timeout = 60)
{
    struct child child = child_start(put_everywhere);
    struct heap_pages pages = {0};
    learn_blocks(&child, &pages);
    struct snapshot_request request = request_of(&child);
    request.stack_pointer -= 8; /* the word in question is the first one */
    struct found found = trace_of((uint32_t)child.pid, &request, &pages, SNAPSHOT_TIME_LIMIT);
    cr_assert(found.is_taken);
    cr_assert(found.snapshot.flags == TTD_SNAPSHOT_STOPPED, "%u", found.snapshot.flags);
    cr_assert(found.snapshot.missing == 0 && found.snapshot.duration > 0);
    check_places(&child, &found);
    cr_assert(found.variable_count >= 2);
    /* Only those registers count that are valid. */
    cr_assert(is_in_register(&found, request.registers[3], 3));
    cr_assert(!is_in_register(&found, request.registers[12], 12));
    cr_assert(is_in_register(&found, child.shared->values[REGISTER] ^ MASK, 12));
    for (size_t i = 1; i < found.reference_count; i++) {
        const struct ttd_reference *a = &found.references[i - 1], *b = &found.references[i];
        cr_assert(a->region < b->region || (a->region == b->region && a->offset < b->offset));
    }
    found_free(&found);
    heap_pages_free(&pages);
    cr_assert(child_end(&child) == 0);
}

Test(take, a_stack_counts_from_where_the_request_says, .timeout = 60)
{
    struct child child = child_start(put_everywhere);
    struct heap_pages pages = {0};
    const struct ttd_region *region;
    learn_blocks(&child, &pages);
    struct snapshot_request request = request_of(&child);
    struct found found = trace_of((uint32_t)child.pid, &request, &pages, SNAPSHOT_TIME_LIMIT);
    cr_assert(found.is_taken);
    cr_assert(!found_at(&found, child.shared->values[2 * STACK] ^ MASK, &region));
    cr_assert(found_at(&found, child.shared->values[2 * DATA] ^ MASK, &region) != NULL);
    found_free(&found);
    heap_pages_free(&pages);
    cr_assert(child_end(&child) == 0);
}

/* Whether a frame of a thread has this canonical frame address, and the frames follow each other.
 */
static bool has_frame(const struct found *found, uint64_t cfa)
{
    for (size_t i = 0; i < found->stack_count; i++) {
        const struct stack_frames *frames = &found->stacks[i].frames;
        for (size_t j = 0; j < frames->count && frames->cfas[j] != 0; j++) {
            cr_assert(j == 0 || frames->cfas[j] > frames->cfas[j - 1]);
            if (frames->cfas[j] == cfa)
                return true;
        }
    }
    return false;
}

static void check_frames(const struct child *child, const struct found *found)
{
    cr_assert(found->stack_count == 2 && found->stacks_missing == 0);
    cr_assert(has_frame(found, child->shared->values[FRAME] ^ MASK));
    cr_assert(has_frame(found, child->shared->values[THREAD_FRAME] ^ MASK));
}

Test(take, from_outside, .timeout = 60)
{
    struct child child = child_start(put_everywhere);
    struct heap_pages pages = {0};
    const struct ttd_region *region;
    learn_blocks(&child, &pages);
    struct found found = trace_of((uint32_t)child.pid, NULL, &pages, SNAPSHOT_TIME_LIMIT);
    cr_assert(found.is_taken && found.snapshot.flags == TTD_SNAPSHOT_STOPPED);
    cr_assert(found_at(&found, child.shared->values[2 * STACK] ^ MASK, &region) != NULL);
    cr_assert(!found_at(&found, child.shared->values[2 * RED_ZONE_BELOW] ^ MASK, &region));
    check_frames(&child, &found);
    found_free(&found);
    heap_pages_free(&pages);
    cr_assert(child_end(&child) == 0);
}

/* A copy shows everything as it was, also what it does not have itself. */
Test(take, from_a_copy, .timeout = 60)
{
    struct child child = child_start(put_everywhere);
    struct heap_pages pages = {0};
    struct borrowed_code code;
    borrowed_publish(&code);
    trace_of_copy = &code;
    learn_blocks(&child, &pages);
    struct found found = trace_of((uint32_t)child.pid, NULL, &pages, SNAPSHOT_TIME_LIMIT);
    cr_assert(found.is_taken);
    cr_assert(found.snapshot.flags == (TTD_SNAPSHOT_STOPPED | TTD_SNAPSHOT_COPIED), "%u",
              found.snapshot.flags);
    cr_assert(found.snapshot.missing == 0 && found.snapshot.duration > 0);
    for (size_t i = 0; i < PLACES; i++) {
        const struct ttd_region *region;
        uint64_t address = child.shared->values[2 * i] ^ MASK;
        bool is_found = found_at(&found, address, &region) != NULL;
        if (i != OWN && i != UNMAPPED) /* the latter was mapped for the former, which is known only
                                          from a request */
            cr_expect(is_found == (expected[i].kind != 0), "%s", expected[i].name);
    }
    check_frames(&child, &found);
    found_free(&found);
    heap_pages_free(&pages);
    cr_assert(child_end(&child) == 0);
}

#if defined(__has_feature)
#define ADDRESS_SANITIZER __has_feature(address_sanitizer)
#else
#define ADDRESS_SANITIZER 0
#endif

/* 64 MB of pointers. */
enum { LARGE = 64 << 20 };

static void fill_much(volatile struct child_shared *shared)
{
    uint64_t *block = malloc(LARGE);
    for (size_t i = 0; i < LARGE / 8; i++)
        block[i] = (uintptr_t)&block[i];
    shared->values[0] = (uintptr_t)block ^ MASK;
    child_wait(shared);
}

Test(take, what_takes_too_long_is_left_out_and_said, .timeout = 120)
{
    struct child child = child_start(fill_much);
    struct heap_pages pages = {0};
    uint64_t block = child.shared->values[0] ^ MASK;
    heap_pages_add(&pages, block, LARGE);
    struct found found = trace_of((uint32_t)child.pid, NULL, &pages, 60 * SNAPSHOT_TIME_LIMIT);
    cr_assert(found.is_taken && found.snapshot.flags == TTD_SNAPSHOT_STOPPED);
    cr_assert(found.reference_count >= LARGE / 8 && found.snapshot.missing == 0);
    cr_assert(found.stack_count == 1 && found.stacks_missing == 0);
    found_free(&found);
    found = trace_of((uint32_t)child.pid, NULL, &pages, 3000000);
    cr_assert(found.is_taken);
    cr_assert(found.snapshot.flags == (TTD_SNAPSHOT_STOPPED | TTD_SNAPSHOT_INCOMPLETE));
    cr_assert(found.snapshot.missing > LARGE / 2);
    cr_assert(found.stack_count == 0 && found.stacks_missing == 1);
#if !defined(__SANITIZE_ADDRESS__) && !ADDRESS_SANITIZER
    /* A sanitizer reserves terabytes, and it is not known how much of them was touched. */
    cr_assert(found.snapshot.missing < 2 * LARGE);
#endif
    cr_assert(found.snapshot.duration < 60 * SNAPSHOT_TIME_LIMIT);
    found_free(&found);
    heap_pages_free(&pages);
    cr_assert(child_end(&child) == 0);
}
