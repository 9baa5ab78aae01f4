/* SPDX-License-Identifier: MIT */
/* The part of taking a snapshot that lists the headers of the C library's allocator in front of
 * blocks.
 */
#include <signal.h>
#include <string.h>

#include "snapshot/taking.h"

enum {
    HEADERS_AT_ONCE = 8192,
    HEADERS_MAX = 1 << 26,
    /* Bytes of a stack in which a call of the allocator has the return address of its hook, even if
     * a handler of a signal has interrupted it. */
    STACK_SEARCHED = 16384
};

/* Headers that follow each other, until they are written. */
struct header_list {
    struct taking *taking;
    struct ttd_block_headers part;
    uint64_t headers[HEADERS_AT_ONCE];
    size_t total;
    bool is_written;
};

static void headers_flush(struct header_list *list, uint32_t flags)
{
    const struct snapshot_calls *calls = &list->taking->order->calls;
    struct ttd_block_headers *part = &list->part;
    uint32_t kept_flags = part->flags;
    part->flags |= flags;
    if (part->count != 0)
        list->is_written = list->is_written && calls->headers(calls->context, part);
    part->flags = kept_flags;
    part->count = 0;
    taking_tick(list->taking);
}

static bool headers_add(void *context, uint64_t address, uint64_t header)
{
    struct header_list *list = context;
    if (list->part.count == HEADERS_AT_ONCE)
        headers_flush(list, 0);
    if (list->part.count == 0)
        list->part.begin = address;
    list->headers[list->part.count++] = header;
    return list->is_written && ++list->total < HEADERS_MAX;
}

static bool take_headers_is_in_module(const struct snapshot_module *module, uint64_t address)
{
    return module && address >= module->begin && address < module->end;
}

/* The modules that show that a thread is in a call of the allocator. */
struct call_modules {
    const struct snapshot_module *library; /* has the allocator */
    const struct snapshot_module *hooks;   /* calls it */
};

static bool headers_path_ends(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

static struct call_modules take_headers_find_modules(const struct taking *taking)
{
    struct call_modules found = {NULL, NULL};
    for (size_t i = 0; i < taking->subject.module_count; i++) {
        const struct snapshot_module *module = &taking->subject.modules[i];
        if (module->id == taking->layout.arena_module)
            found.library = module;
        else if (headers_path_ends(module->path, OWN_LIBRARY))
            found.hooks = module;
    }
    return found;
}

/* Whether a stopped thread may be in a call of the allocator: on its stack is an address of the
 * hooks, perhaps left by an earlier call; or it is on another stack, as handlers of signals are;
 * those may have interrupted one. */
static bool take_headers_may_be_in_call(const struct taking *taking,
                                        const struct call_modules *modules,
                                        const struct thread_state *thread)
{
    uint64_t words[STACK_SEARCHED / 8], pointer = thread->registers[THREAD_STACK_POINTER];
    const struct region *region = regions_at(&taking->layout.regions, pointer);
    if (take_headers_is_in_module(modules->hooks, thread->registers[THREAD_REGISTERS - 1]) ||
        !region || region->kind != TTD_REGION_STACK || region->tid != thread->tid)
        return true;
    uint64_t left = region->end - pointer;
    size_t size = left < sizeof words ? left / 8 * 8 : sizeof words;
    if (!memory_read(&taking->memory, pointer, words, size))
        return true;
    for (size_t i = 0; i < size / 8; i++)
        if (take_headers_is_in_module(modules->hooks, words[i]))
            return true;
    return false;
}

/* Whether the thread that waits has failed where it was, instead of being interrupted there. */
static bool take_headers_has_failed(const struct snapshot_request *request)
{
    switch (request->signal) {
    case SIGABRT:
        return request->code == SI_TKILL;
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGTRAP:
        return request->code > 0;
    default:
        return false;
    }
}

/* Where the thread that waits stands. */
enum waiting_thread {
    WAITS_OUTSIDE,
    WAITS_IN_CALL,    /* of the allocator, or may do so: a signal has interrupted it */
    WAITS_IN_FAILURE, /* of the allocator; it fails before it changes headers, as in abort() */
};

static enum waiting_thread take_headers_where_waits(const struct snapshot_request *request,
                                                    const struct call_modules *modules)
{
    uint32_t i = 0, count = request->frame_count;
    count = count < SNAPSHOT_FRAMES ? count : SNAPSHOT_FRAMES;
    while (i < count && take_headers_is_in_module(modules->library, request->frame_pcs[i]))
        i++;
    bool is_in_call =
        i != 0 && i < count && take_headers_is_in_module(modules->hooks, request->frame_pcs[i]);
    if (is_in_call && take_headers_has_failed(request))
        return WAITS_IN_FAILURE;
    for (i = 0; i < count; i++)
        if (take_headers_is_in_module(modules->hooks, request->frame_pcs[i]))
            return WAITS_IN_CALL;
    return WAITS_OUTSIDE;
}

void taking_note_calls(struct taking *taking)
{
    const struct snapshot_request *request = taking->order->request;
    struct call_modules modules = take_headers_find_modules(taking);
    enum waiting_thread waits =
        request ? take_headers_where_waits(request, &modules) : WAITS_OUTSIDE;
    taking->may_have_lock = waits == WAITS_IN_FAILURE;
    taking->is_in_call = !modules.hooks || waits == WAITS_IN_CALL;
    for (size_t i = 0; i < taking->threads.count && !taking->is_in_call; i++) {
        const struct thread_state *thread = &taking->threads.items[i];
        taking->is_in_call =
            thread->is_stopped && take_headers_may_be_in_call(taking, &modules, thread);
    }
}

/* Whether a thread may be changing headers of an arena: it is in a call, or has the lock. */
static bool take_headers_is_busy(const struct taking *taking, uint64_t arena)
{
    uint32_t lock;
    return taking->is_in_call ||
           (!taking->may_have_lock &&
            (!memory_read(&taking->memory, arena, &lock, sizeof lock) || lock != 0));
}

static void headers_write(struct header_list *list, const struct glibc_chunks *chunks)
{
    list->part.flags = take_headers_is_busy(list->taking, chunks->arena) ? TTD_HEADERS_BUSY : 0;
    static const uint32_t flags[] = {
        [GLIBC_CHUNKS_WHOLE] = 0,
        [GLIBC_CHUNKS_BROKEN] = TTD_HEADERS_BROKEN,
        [GLIBC_CHUNKS_DERIVED] = TTD_HEADERS_BROKEN | TTD_HEADERS_DERIVED,
        [GLIBC_CHUNKS_UNKNOWN] = 0,
    };
    enum glibc_chunks_end end = glibc_chunks_list(&list->taking->memory, chunks, headers_add, list);
    headers_flush(list, flags[end]);
}

/* Finds the chunks that a region has at its begin. */
static bool take_headers_find_chunks(const struct taking *taking, const struct region *region,
                                     struct glibc_chunks *chunks)
{
    const struct layout *layout = &taking->layout;
    if (region->kind != TTD_REGION_HEAP || region->module != layout->arena_module)
        return false;
    return region->begin % GLIBC_HEAP_ALIGNMENT == 0 &&
           glibc_chunks_of_heap(&taking->memory, region->begin, chunks);
}

/* Finds the chunks in the memory of the program break, perhaps several mappings side by side.
 */
static bool take_headers_find_break(const struct taking *taking, struct glibc_chunks *chunks)
{
    const struct maps *maps = &taking->layout.maps;
    struct memory_span span = {0, 0};
    for (size_t i = 0; i < maps->count && !taking->subject.moves_break; i++) {
        const struct mapping *mapping = &maps->items[i];
        if (mapping->is_file || strcmp(mapping->name, "[heap]") != 0)
            continue;
        if (span.end == 0)
            span.begin = span.end = mapping->begin;
        if (span.end == mapping->begin)
            span.end = mapping->end;
    }
    return span.end != 0 &&
           glibc_chunks_of_break(&taking->memory, span, &taking->layout.arena, chunks);
}

/* Writes the headers of blocks with mappings of their own that lie side by side in a region. Behind
 * them may be other memory of the program: whether a header is wrong that the allocator cannot have
 * written depends on whether there is a block. Looks in vain at `*left` pages at most. */
static void headers_write_mapped(struct header_list *list, const struct region *region,
                                 unsigned *left)
{
    const struct taking *taking = list->taking;
    uint64_t page = (region->begin + MEMORY_PAGE - 1) / MEMORY_PAGE * MEMORY_PAGE, head = 0;
    bool has_begun = false;
    list->part.flags = taking->is_in_call ? TTD_HEADERS_BUSY : 0;
    while (page < region->end && *left != 0) {
        if (!heap_pages_has(taking->subject.pages, page)) {
            headers_flush(list, 0);
            has_begun = false;
            page = (page / HEAP_PAGE_SIZE + 1) * HEAP_PAGE_SIZE;
            continue;
        }
        enum glibc_mapped state = glibc_mapped_look(&taking->memory, page, region->end, &head);
        bool is_right = state == GLIBC_MAPPED_BEGIN || (has_begun && state == GLIBC_MAPPED_RIGHT);
        bool is_wrong = has_begun && state == GLIBC_MAPPED_WRONG;
        if ((is_right || is_wrong) && !headers_add(list, page + 8, head))
            break;
        if (!is_right)
            headers_flush(list, is_wrong ? TTD_HEADERS_BROKEN : 0);
        *left -= !is_right;
        has_begun = is_right;
        page += is_right ? TTD_BLOCK_HEADER_SIZE(head) : MEMORY_PAGE;
    }
    headers_flush(list, 0);
}

/* Writes the headers of all blocks with mappings of their own. They mean nothing if other functions
 * than the C library's may have given blocks from there. */
static void headers_write_all_mapped(struct header_list *list)
{
    enum { PAGES_MAX = 4096 };
    const struct taking *taking = list->taking;
    const struct regions *regions = &taking->layout.regions;
    unsigned left = PAGES_MAX;
    for (size_t i = 0; i < regions->count && !taking->subject.has_other_malloc; i++)
        if (regions->items[i].kind == TTD_REGION_ANONYMOUS)
            headers_write_mapped(list, &regions->items[i], &left);
}

bool taking_write_headers(struct taking *taking)
{
    struct header_list list = {
        .taking = taking, .part = {.snapshot = taking->snapshot->number}, .is_written = true};
    const struct regions *regions = &taking->layout.regions;
    struct glibc_chunks chunks;
    list.part.headers = list.headers;
    if (taking->layout.arena_module == TTD_NONE || !taking->threads.are_stopped)
        return true;
    if (take_headers_find_break(taking, &chunks))
        headers_write(&list, &chunks);
    for (size_t i = 0; i < regions->count; i++)
        if (take_headers_find_chunks(taking, &regions->items[i], &chunks))
            headers_write(&list, &chunks);
    headers_write_all_mapped(&list);
    return list.is_written;
}
