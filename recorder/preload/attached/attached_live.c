/* SPDX-License-Identifier: MIT */
/*
 * The live API of a process that is attached to. Programs keep clients for as long as they run, and
 * may be in the middle of a call of theirs at any moment: clients, the tables of their functions
 * and the code that these lead to are in memory of their own, that stays when this library is
 * removed. The code goes on to this library, by slots that the recorder clears; its functions then
 * do nothing. Only a process that asks for the API has this memory.
 */
#include <string.h>
#include <sys/mman.h>

#include "preload/attached/attached_parts.h"
#include "preload/hooks/live_hooks.h"
#include "preload/system/real.h"
#include "preload/system/sys.h"

/* The data behind the page of code. */
struct live_data {
    _Atomic uint64_t slots[ATTACHED_LIVE_SLOTS];
    struct ttd_live_functions functions;
    struct ttd_live_heap_functions heaps;
    struct ttd_live_dump_functions dumps;
    struct live_clients clients;
};
#define LIVE_SIZE ((long)(ATTACHED_LIVE_CODE + sizeof(struct live_data)))

/* The stub of a function, by its number: the factory's, then the tables' in their order. */
enum { STUB_SIZE = 32, STUB_FACTORY = 0, STUB_THROTTLE = 10 };

#define STUB_WITH(number, else)                                                                    \
    ".balign 32\n"                                                                                 \
    "    movq attached_live_code + 4096 + 8 * " #number "(%rip), %r11\n"                           \
    "    testq %r11, %r11\n"                                                                       \
    "    je 1f\n"                                                                                  \
    "    jmp *%r11\n"                                                                              \
    "1:\n" else "    xorl %eax, %eax\n"                                                            \
                "    ret\n"
#define STUB(number)      STUB_WITH(number, )
#define STUBS(a, b, c, d) STUB(a) STUB(b) STUB(c) STUB(d)

/* The page of code: a template, that runs in its copy only. A throttle is 0 without a recorder. */
extern const unsigned char attached_live_code[] __attribute__((visibility("hidden")));
extern const unsigned char attached_live_code_end[] __attribute__((visibility("hidden")));

__asm__(".pushsection .text\n"
        ".balign 32\n"
        "attached_live_code:\n"
        ".ascii \"TTDLIVE1\"\n" STUBS(0, 1, 2, 3) STUBS(4, 5, 6, 7) STUB(8) STUB(9)
            STUB_WITH(10, "    movq $0, (%rsi)\n"
                          "    movq $0, (%rdx)\n") STUB(11) STUBS(12, 13, 14, 15)
                STUBS(16, 17, 18, 19) STUB(20) STUB(21) STUB(22) ".balign 32\n"
                                                                 "attached_live_code_end:\n"
                                                                 ".popsection\n");
enum { STUBS_BEGIN = 32, STUB_COUNT = 23 };
_Static_assert(ATTACHED_LIVE_CODE == 4096 && STUB_COUNT <= (int)ATTACHED_LIVE_SLOTS,
               "as in the stubs");
_Static_assert(offsetof(struct ttd_live_functions, throttle) / sizeof(uint64_t) == STUB_THROTTLE,
               "a table begins with a word for its size");

struct live_clients *live_clients(void)
{
    uint64_t page = __atomic_load_n(&attached.live, __ATOMIC_ACQUIRE);
    return &((struct live_data *)(page + ATTACHED_LIVE_CODE))->clients;
}

EXPORT struct ttd_live *ttd_live_factory(uint32_t version, const struct ttd_live_guid *guid,
                                         const void *data, size_t size);

/* Has the words of a table lead to the stubs from a number on, and these to the functions of a
 * table of this library. Returns the next number. */
static unsigned live_lead(unsigned char *page, unsigned stub, void *table, const void *own,
                          size_t end)
{
    struct live_data *data = (struct live_data *)(page + ATTACHED_LIVE_CODE);
    uint64_t *words = table, function;
    for (size_t i = 1; i < end / sizeof *words; i++, stub++) {
        words[i] = (uintptr_t)page + STUBS_BEGIN + (size_t)stub * STUB_SIZE;
        memcpy(&function, (const unsigned char *)own + i * sizeof function, sizeof function);
        atomic_store_explicit(&data->slots[stub], function, memory_order_release);
    }
    return stub;
}

/* Has all stubs lead to this library. */
static void live_lead_all(unsigned char *page)
{
    struct live_data *data = (struct live_data *)(page + ATTACHED_LIVE_CODE);
    unsigned stub = STUB_FACTORY + 1;
    stub = live_lead(page, stub, &data->functions, &live_functions,
                     offsetof(struct ttd_live_functions, heaps));
    stub = live_lead(page, stub, &data->heaps, &live_heap_functions, sizeof live_heap_functions);
    live_lead(page, stub, &data->dumps, &live_dump_functions, sizeof live_dump_functions);
    atomic_store_explicit(&data->slots[STUB_FACTORY], (uintptr_t)ttd_live_factory,
                          memory_order_release);
}
_Static_assert(offsetof(struct ttd_live_functions, heaps) + sizeof live_heap_functions +
                       sizeof live_dump_functions ==
                   (STUB_COUNT - 1 + 3) * sizeof(uint64_t),
               "a stub for each function");

void attached_live_begin(void)
{
    if (attached.live != 0)
        live_lead_all((unsigned char *)attached.live);
}

static bool live_is_failed(long result)
{
    return (unsigned long)result >= -4095UL;
}

/* Makes the memory. Returns NULL if the system does not permit it. */
static unsigned char *live_make(void)
{
    long memory = sys_call6(SYS_mmap, 0, LIVE_SIZE, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (live_is_failed(memory))
        return NULL;
    unsigned char *page = (unsigned char *)memory;
    struct live_data *data = (struct live_data *)(page + ATTACHED_LIVE_CODE);
    memcpy(page, attached_live_code, (size_t)(attached_live_code_end - attached_live_code));
    data->functions = live_functions;
    data->functions.heaps = &data->heaps;
    data->functions.dumps = &data->dumps;
    data->heaps = live_heap_functions;
    data->dumps = live_dump_functions;
    data->clients.functions = &data->functions;
    live_lead_all(page);
    if (!live_is_failed(sys_call3(SYS_mprotect, memory, ATTACHED_LIVE_CODE, PROT_READ | PROT_EXEC)))
        return page;
    sys_call3(SYS_munmap, memory, LIVE_SIZE, 0);
    return NULL;
}

/* Returns the memory, made if need be; NULL if there can be none. Threads that make it at once keep
 * one. */
static unsigned char *live_page(void)
{
    uint64_t page = __atomic_load_n(&attached.live, __ATOMIC_ACQUIRE);
    unsigned char *made = page == 0 && !process_is_confined ? live_make() : NULL;
    if (!made)
        return (unsigned char *)page;
    if (!__atomic_compare_exchange_n(&attached.live, &page, (uintptr_t)made, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        sys_call3(SYS_munmap, (long)made, LIVE_SIZE, 0);
        return (unsigned char *)page;
    }
    return made;
}

/* The program looks for ttd_live_factory(). */
__attribute__((used)) static void *attached_find(const char *name)
{
    if (attached.records == 0 || strcmp(name, "ttd_live_factory") != 0)
        return NULL;
    unsigned char *page = live_page();
    return page ? page + STUBS_BEGIN : NULL;
}

/*
 * dlsym(RTLD_DEFAULT, ...). In assembly, and without a frame where it goes on, because dlsym()
 * looks at its return address: the trampoline is in r11 here.
 */
extern const unsigned char patched_dlsym[] __attribute__((visibility("hidden")));
PATCHED_ROW(ATTACHED_IN_LIBC, 0, dlsym, ATTACHED_IN_R11)

__asm__(".pushsection .text\n"
        ".globl patched_dlsym\n"
        ".hidden patched_dlsym\n"
        ".type patched_dlsym, @function\n"
        "patched_dlsym:\n"
        "    .cfi_startproc\n"
        "    testq %rdi, %rdi\n"
        "    jne 1f\n"
        "    testq %rsi, %rsi\n"
        "    jne 2f\n"
        "1:  jmp *%r11\n"
        "2:  pushq %rdi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %rsi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %r11\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    movq %rsi, %rdi\n"
        "    call attached_find\n"
        "    popq %r11\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rsi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rdi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    testq %rax, %rax\n"
        "    je 1b\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size patched_dlsym, . - patched_dlsym\n"
        ".popsection\n");
