/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* _dl_find_object */
#endif
#include "dwarf/cfi.h"

#include "common/search.h"
#include "dwarf/dwarf.h"

/* Moves fdes[i] down to where none below it is larger: the first `count` become a heap again. */
static void cfi_fde_sift(struct debug_fde *fdes, size_t i, size_t count)
{
    struct debug_fde fde = fdes[i];
    for (size_t child; (child = 2 * i + 1) < count; i = child) {
        child += child + 1 < count && fdes[child + 1].code > fdes[child].code;
        if (fdes[child].code <= fde.code)
            break;
        fdes[i] = fdes[child];
    }
    fdes[i] = fde;
}

/* Sorts by code, without other memory and in bounded time whatever the order. */
static void cfi_fdes_sort(struct debug_fde *fdes, size_t count)
{
    for (size_t i = count / 2; i-- > 0;)
        cfi_fde_sift(fdes, i, count);
    for (size_t last = count; last-- > 1;) {
        struct debug_fde largest = fdes[0];
        fdes[0] = fdes[last];
        fdes[last] = largest;
        cfi_fde_sift(fdes, 0, last);
    }
}

size_t debug_frame_list(struct debug_frame *frame, uint64_t low, uint64_t high)
{
    struct cursor cursor = {.next = frame->bytes, .end = frame->bytes + frame->size};
    size_t count = 0;
    while (cursor_left(&cursor) > 0) {
        uint32_t offset = (uint32_t)(cursor.next - frame->bytes);
        uint64_t size = cursor_uint(&cursor, 4);
        bool is_wide = size == 0xffffffff; /* 64-bit DWARF; no compiler writes it by itself */
        if (is_wide)
            size = cursor_uint(&cursor, 8);
        if (size > cursor_left(&cursor))
            break;
        struct cursor record = {.next = cursor.next, .end = cursor.next + size};
        cursor_skip(&cursor, size);
        uint64_t cie = cursor_uint(&record, 4);
        uint64_t code = cursor_uint(&record, 8);
        if (is_wide || record.is_bad || cie == DEBUG_FRAME_CIE || code < low || code >= high)
            continue;
        if (frame->fdes)
            frame->fdes[count] = (struct debug_fde){code, offset};
        count++;
    }
    if (frame->fdes)
        cfi_fdes_sort(frame->fdes, count);
    return count;
}

bool debug_frame_search(const struct debug_frame *frame, uint64_t code, uint32_t *offset)
{
    size_t low = 0;
    size_t high = frame->fde_count;
    SEARCH_SORTED(low, high, middle, frame->fdes[middle].code <= code);
    if (low == 0)
        return false;
    *offset = frame->fdes[low - 1].offset;
    return true;
}

/* The most of .eh_frame_hdr that comes before its table. */
#define HEADER_MAX 32u

/* Reads the length of the record that begins at `begin`. False for the terminator as well. */
static bool cfi_record_at(const struct cfi_span *span, uintptr_t begin, struct cfi_record *record)
{
    struct cursor cursor = span_cursor(span, begin, 4);
    uint64_t size = cursor_uint(&cursor, 4);
    uintptr_t body = begin + 4;
    if (size == 0xffffffff) {
        cursor = span_cursor(span, body, 8);
        size = cursor_uint(&cursor, 8);
        body += 8;
    }
    if (cursor.is_bad || size == 0 || size > span->high - span->low)
        return false;
    record->begin = begin;
    record->body = span_cursor(span, body, size);
    return !record->body.is_bad;
}

/* Reads the augmentation of a CIE; sets `encoding` and `is_signal_frame`. */
static __attribute__((noinline)) void
cfi_read_augmentation(struct cursor *cursor, const char *letters, struct cfi_function *function)
{
    if (letters[0] == '\0')
        return;
    if (letters[0] != 'z') {
        cursor_fail(cursor);
        return;
    }
    function->is_augmented = true;
    uint64_t size = cursor_uleb(cursor);
    if (size > cursor_left(cursor)) {
        cursor_fail(cursor);
        return;
    }
    struct cursor data = *cursor;
    data.end = data.next + size;
    cursor_skip(cursor, size);
    for (letters++; *letters != '\0' && !data.is_bad; letters++) {
        switch (*letters) {
        case 'R':
            function->encoding = cursor_u8(&data);
            break;
        case 'P': {
            uint8_t encoding = cursor_u8(&data);
            cursor_pointer(&data, encoding & 0x7f, 0);
            break;
        }
        case 'L':
            cursor_u8(&data);
            break;
        case 'S':
            function->is_signal_frame = true;
            break;
        default: /* unknown letters: data ends where `size` says */
            return;
        }
    }
    cursor->is_bad |= data.is_bad;
}

/* Reads a CIE; `id` distinguishes it from an FDE. */
static bool cfi_read_cie(struct cfi_lookup *lookup, uintptr_t begin, uint32_t id)
{
    struct cfi_function *function = &lookup->function;
    struct cursor *cursor = &lookup->cie.body;
    if (!cfi_record_at(&function->span, begin, &lookup->cie) || cursor_uint(cursor, 4) != id)
        return false;
    uint8_t version = cursor_u8(cursor);
    const char *letters = (const char *)cursor->next;
    while (cursor_u8(cursor) != '\0') {
    }
    if (cursor->is_bad || (version != 1 && version != 3 && version != 4))
        return false;
    if (version == 4 && cursor_uint(cursor, 2) != 8) /* address size 8, no segment selector */
        return false;
    function->code_align = cursor_uleb(cursor);
    function->data_align = cursor_sleb(cursor);
    function->ra_column = version == 1 ? cursor_u8(cursor) : cursor_uleb(cursor);
    function->encoding = PE_ABSPTR;
    function->is_signal_frame = false;
    function->is_augmented = false;
    cfi_read_augmentation(cursor, letters, function);
    function->common = *cursor;
    return !cursor->is_bad && function->ra_column == CFI_RA;
}

/* Reads the rest of the FDE lookup->fde, whose CIE was read. False unless its code contains
 * `address`. */
static bool cfi_read_code(struct cfi_lookup *lookup, uintptr_t address)
{
    struct cfi_function *function = &lookup->function;
    struct cursor *cursor = &lookup->fde.body;
    function->start = cursor_pointer(cursor, function->encoding, function->bias);
    function->size = cursor_pointer(cursor, function->encoding & 0x0f, 0);
    if (cursor->is_bad || address < function->start || address - function->start >= function->size)
        return false;
    if (function->is_augmented)
        cursor_skip(cursor, cursor_uleb(cursor));
    function->specific = *cursor;
    return !cursor->is_bad;
}

/* Reads the record lookup->fde up to its code, and its CIE. False unless it is an FDE. */
static bool cfi_read_fde_begin(struct cfi_lookup *lookup)
{
    struct cursor *cursor = &lookup->fde.body;
    uintptr_t id_address = cursor_address(cursor);
    uint64_t delta = cursor_uint(cursor, 4);
    lookup->function.bias = 0;
    return !cursor->is_bad && delta != 0 && delta <= id_address &&
           cfi_read_cie(lookup, id_address - delta, 0);
}

/* Reads the record lookup->fde into the function. False unless it is an FDE whose code contains
 * `address`. */
static bool cfi_read_fde(struct cfi_lookup *lookup, uintptr_t address)
{
    return cfi_read_fde_begin(lookup) && cfi_read_code(lookup, address);
}

size_t eh_frame_list(struct debug_frame *frame, struct cfi_lookup *lookup, uint64_t low,
                     uint64_t high)
{
    const uintptr_t first = (uintptr_t)frame->bytes;
    struct cfi_function *function = &lookup->function;
    struct cursor *body = &lookup->fde.body;
    size_t count = 0;
    function->span = (struct cfi_span){.low = first, .high = first + frame->size};
    for (uintptr_t begin = first, next; cfi_record_at(&function->span, begin, &lookup->fde);
         begin = next) {
        next = cursor_address(body) + cursor_left(body);
        if (!cfi_read_fde_begin(lookup))
            continue;
        uint64_t code = cursor_pointer(body, function->encoding, 0);
        if ((function->encoding & 0xf0) == PE_PCREL)
            code += frame->loaded - first;
        if (body->is_bad || code < low || code >= high)
            continue;
        if (frame->fdes)
            frame->fdes[count] = (struct debug_fde){code, (uint32_t)(begin - first)};
        count++;
    }
    if (frame->fdes)
        cfi_fdes_sort(frame->fdes, count);
    return count;
}

/* Finds the function where there is no table: tries each record up to the terminator. */
static __attribute__((noinline)) bool cfi_scan(struct cfi_lookup *lookup, uintptr_t eh_frame,
                                               uintptr_t address)
{
    const struct cursor *body = &lookup->fde.body;
    for (uintptr_t begin = eh_frame; cfi_record_at(&lookup->function.span, begin, &lookup->fde);) {
        begin = cursor_address(body) + cursor_left(body);
        if (cfi_read_fde(lookup, address))
            return true;
    }
    return false;
}

/* The table of .eh_frame_hdr: pairs of (code, FDE), relative to the header, sorted by code. */
struct table {
    uintptr_t header;
    uintptr_t first;
    uint64_t count;
};

/* Returns one half of a pair of the table; 0 if it cannot be read, and the cursor is bad. */
static inline uintptr_t cfi_table_at(struct cfi_lookup *lookup, const struct table *table,
                                     uint64_t half)
{
    struct cursor *cursor = &lookup->fde.body;
    *cursor = span_cursor(&lookup->function.span, table->first + half * 4, 4);
    return table->header + (uintptr_t)cursor_int(cursor, 4);
}

/* Finds the address of the FDE for `address`. */
static inline bool cfi_search(struct cfi_lookup *lookup, const struct table *table,
                              uintptr_t address, uintptr_t *fde)
{
    uint64_t low = 0;
    uint64_t high = table->count;
    uintptr_t end = lookup->function.span.high;
    if (high == 0 || table->first > end || high > (end - table->first) / 8)
        return false;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (cfi_table_at(lookup, table, middle * 2) <= address)
            low = middle;
        else
            high = middle;
    }
    *fde = cfi_table_at(lookup, table, low * 2 + 1);
    return !lookup->fde.body.is_bad;
}

enum fde_search { FDE_UNKNOWN, FDE_FOUND, FDE_TO_SCAN };

/* Reads the header. Sets `*fde` to the FDE for `address`; or, if there is no table of them, to the
   first of all records. The cursor is the lookup's: the stack may be small. */
static __attribute__((noinline)) enum fde_search cfi_locate(struct cfi_lookup *lookup,
                                                            uintptr_t address, uintptr_t *fde)
{
    uintptr_t header = (uintptr_t)lookup->object.dlfo_eh_frame;
    const struct cfi_span *span = &lookup->function.span;
    struct cursor *cursor = &lookup->fde.body;
    size_t size = span->high - header < HEADER_MAX ? span->high - header : HEADER_MAX;
    *cursor = span_cursor(span, header, size);
    uint8_t version = cursor_u8(cursor);
    uint8_t frame_encoding = cursor_u8(cursor);
    uint8_t count_encoding = cursor_u8(cursor);
    uint8_t table_encoding = cursor_u8(cursor);
    uintptr_t eh_frame = cursor_pointer(cursor, frame_encoding, header);
    if (cursor->is_bad || version != 1)
        return FDE_UNKNOWN;
    if (count_encoding == PE_OMIT || table_encoding != (PE_DATAREL | PE_SDATA4)) {
        *fde = eh_frame;
        return FDE_TO_SCAN;
    }
    struct table table = {.header = header};
    table.count = cursor_pointer(cursor, count_encoding, header);
    table.first = cursor_address(cursor);
    bool is_found = !cursor->is_bad && cfi_search(lookup, &table, address, fde);
    return is_found ? FDE_FOUND : FDE_UNKNOWN;
}

/* The stack may be small: modules_segment(), cfi_locate(), cfi_scan() and cfi_read_augmentation()
 * are not inlined, so that they use it in turn. */
static bool cfi_find_in_memory(struct cfi_lookup *lookup, uintptr_t address)
{
    struct cfi_span *span = &lookup->function.span;
    uintptr_t fde = 0;
    if (!lookup->object.dlfo_eh_frame)
        return false;
    *span = modules_segment(lookup, (uintptr_t)lookup->object.dlfo_eh_frame);
    switch (cfi_locate(lookup, address, &fde)) {
    case FDE_FOUND:
        if (fde < span->low || fde >= span->high)
            *span = modules_segment(lookup, fde);
        return cfi_record_at(&lookup->function.span, fde, &lookup->fde) &&
               cfi_read_fde(lookup, address);
    case FDE_TO_SCAN:
        return cfi_scan(lookup, fde, address);
    case FDE_UNKNOWN:
    default:
        return false;
    }
}

/* Finds the function in the section that only the module's file has. */
static __attribute__((noinline)) bool cfi_find_in_file(struct cfi_lookup *lookup, uintptr_t address)
{
    struct cfi_function *function = &lookup->function;
    struct cursor *cursor = &lookup->fde.body;
    uint32_t offset;
    const struct debug_frame *frame = modules_debug_frame(lookup, &function->bias);
    if (!frame || !debug_frame_search(frame, address - function->bias, &offset))
        return false;
    if (frame->loaded != 0) {
        uintptr_t fde = frame->loaded + function->bias + offset;
        function->span = modules_segment(lookup, fde);
        return cfi_record_at(&function->span, fde, &lookup->fde) && cfi_read_fde(lookup, address);
    }
    uintptr_t begin = (uintptr_t)frame->bytes;
    function->span = (struct cfi_span){.low = begin, .high = begin + frame->size};
    if (!cfi_record_at(&function->span, begin + offset, &lookup->fde))
        return false;
    uint64_t cie = cursor_uint(cursor, 4);
    if (cursor->is_bad || !cfi_read_cie(lookup, begin + cie, DEBUG_FRAME_CIE))
        return false;
    function->encoding = PE_DATAREL | PE_ABSPTR; /* relative to the bias */
    return cfi_read_code(lookup, address);
}

bool cfi_find(struct cfi_lookup *lookup, uintptr_t address)
{
    return cfi_find_in_memory(lookup, address) || cfi_find_in_file(lookup, address);
}

void cfi_expression(const struct cfi_span *span, int32_t offset, struct cursor *cursor)
{
    /* The length was checked when the row was made; reading it again is cheaper than a field. */
    uintptr_t at = span->low + (uint32_t)offset;
    *cursor = (struct cursor){.next = (const uint8_t *)at, .end = (const uint8_t *)span->high};
    if (span->is_fetched) { /* no more than there is: none is so long that its size is two bytes */
        *cursor = span_cursor(span, at, 1);
        *cursor = span_cursor(span, at, 1 + (size_t)(cursor_u8(cursor) & 0x7f));
    }
    uint64_t size = cursor_uleb(cursor);
    if (size > cursor_left(cursor)) {
        cursor_fail(cursor);
        return;
    }
    cursor->end = cursor->next + size;
}
