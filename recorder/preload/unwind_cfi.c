/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* _dl_find_object */
#endif
#include "unwind_cfi.h"

#include "unwind_mem.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

/* How far call frame information is followed in memory of unknown extent. */
#define PROBED_MAX ((uintptr_t)1 << 28)

/* A record whose bytes are known to be there: a CIE or an FDE without its length. */
struct record {
    uintptr_t at; /* of the length */
    struct cursor body;
};

static bool span_holds(const struct cfi_span *span, uintptr_t address, size_t size)
{
    if (address < span->low || address > span->high || size > span->high - address)
        return false;
    return !span->needs_probe || unwind_range_readable(address, size);
}

static inline __attribute__((always_inline)) struct cursor
span_cursor(const struct cfi_span *span, uintptr_t address, size_t size)
{
    struct cursor cursor = {0};
    if (!span_holds(span, address, size)) {
        cursor.is_bad = true;
        return cursor;
    }
    cursor.at = (const uint8_t *)address;
    cursor.end = cursor.at + size;
    return cursor;
}

static const ElfW(Phdr) * main_phdr;
static size_t main_phnum;

void cfi_setup(void)
{
    main_phdr = (const void *)getauxval(AT_PHDR); /* NOLINT: an address as a number */
    main_phnum = getauxval(AT_PHNUM);
}

/* The readable segment that holds `addr`; `low` of the result is 0 if there is none. */
static struct cfi_span find_segment(const ElfW(Phdr) * phdr, size_t count, uintptr_t load,
                                    uintptr_t address)
{
    for (size_t i = 0; i < count; i++) {
        uintptr_t low = load + phdr[i].p_vaddr;
        if (phdr[i].p_type == PT_LOAD && (phdr[i].p_flags & PF_R) != 0 && address >= low &&
            address - low < phdr[i].p_filesz)
            return (struct cfi_span){low, low + phdr[i].p_filesz, false};
    }
    return (struct cfi_span){0};
}

/* By the ELF header at the start of the mapping. */
static struct cfi_span segment_by_header(const struct dl_find_object *object, uintptr_t address)
{
    uintptr_t start = (uintptr_t)object->dlfo_map_start;
    uintptr_t end = (uintptr_t)object->dlfo_map_end;
    const ElfW(Ehdr) *header = object->dlfo_map_start;
    if (end - start < UNWIND_PAGE || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_phentsize != sizeof(ElfW(Phdr)) || header->e_phoff > UNWIND_PAGE ||
        header->e_phnum > (UNWIND_PAGE - header->e_phoff) / sizeof(ElfW(Phdr)))
        return (struct cfi_span){0};
    const ElfW(Phdr) *phdr = (const void *)(start + header->e_phoff);
    struct cfi_span span =
        find_segment(phdr, header->e_phnum, object->dlfo_link_map->l_addr, address);
    return span.low >= start && span.high <= end && span.low < span.high ? span
                                                                         : (struct cfi_span){0};
}

/* By the program headers that the kernel gave, if this is the program itself. */
static struct cfi_span segment_of_main(const struct dl_find_object *object, uintptr_t address)
{
    uintptr_t load = object->dlfo_link_map->l_addr;
    for (size_t i = 0; i < main_phnum; i++)
        if (main_phdr[i].p_type == PT_GNU_EH_FRAME &&
            load + main_phdr[i].p_vaddr == (uintptr_t)object->dlfo_eh_frame)
            return find_segment(main_phdr, main_phnum, load, address);
    return (struct cfi_span){0};
}

/*
 * The readable segment around `addr`. For a program that the kernel mapped in pieces, `object` is
 * but one segment, and seldom the one that we need. Where the program headers cannot be found
 * (some tools that edit libraries move them), pages are probed.
 */
static struct cfi_span span_around(const struct dl_find_object *object, uintptr_t address)
{
    struct cfi_span span = segment_by_header(object, address);
    if (span.low == 0)
        span = segment_of_main(object, address);
    if (span.low == 0) {
        span.low = address - (address < PROBED_MAX ? address : PROBED_MAX);
        span.high = address + (UINTPTR_MAX - address < PROBED_MAX ? 0 : PROBED_MAX);
        span.needs_probe = true;
    }
    return span;
}

/* The record at `at`. False for the terminator, too. */
static bool record_at(const struct cfi_span *span, uintptr_t at, struct record *record)
{
    struct cursor cursor = span_cursor(span, at, 4);
    uint64_t size = cursor_uint(&cursor, 4);
    uintptr_t body = at + 4;
    if (size == 0xffffffff) {
        cursor = span_cursor(span, body, 8);
        size = cursor_uint(&cursor, 8);
        body += 8;
    }
    if (cursor.is_bad || size == 0 || size > span->high - span->low)
        return false;
    record->at = at;
    record->body = span_cursor(span, body, size);
    return !record->body.is_bad;
}

/* Reads a CIE's augmentation; `encoding` and `signal` come from there. */
static void read_augmentation(struct cursor *cursor, const char *letters,
                              struct cfi_function *function)
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
    struct cursor data = {cursor->at, cursor->at + size, false};
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
        default: /* the size tells where what we do not know ends */
            return;
        }
    }
    cursor->is_bad |= data.is_bad;
}

static bool read_cie(struct cfi_function *function, uintptr_t at)
{
    struct record record;
    if (!record_at(&function->span, at, &record) || cursor_uint(&record.body, 4) != 0)
        return false;
    struct cursor *cursor = &record.body;
    uint8_t version = cursor_u8(cursor);
    const char *letters = (const char *)cursor->at;
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
    read_augmentation(cursor, letters, function);
    function->common = *cursor;
    return !cursor->is_bad && function->ra_column == CFI_RA;
}

/* Whether the record is a function (not a CIE) that contains `addr`; fills `f`. */
static bool read_fde(struct cfi_function *function, struct record *record, uintptr_t address)
{
    struct cursor *cursor = &record->body;
    uintptr_t here = (uintptr_t)cursor->at;
    uint64_t delta = cursor_uint(cursor, 4);
    if (cursor->is_bad || delta == 0 || delta > here || !read_cie(function, here - delta))
        return false;
    function->start = cursor_pointer(cursor, function->encoding, 0);
    function->size = cursor_pointer(cursor, function->encoding & 0x0f, 0);
    if (cursor->is_bad || address < function->start || address - function->start >= function->size)
        return false;
    if (function->is_augmented)
        cursor_skip(cursor, cursor_uleb(cursor));
    function->specific = *cursor;
    return !cursor->is_bad;
}

/* Without a table: all records from the first to the terminator. */
static __attribute__((noinline)) bool scan(struct cfi_function *function, uintptr_t eh_frame,
                                           uintptr_t address)
{
    struct record record;
    struct cfi_span span =
        span_holds(&function->span, eh_frame, 4) ? function->span : (struct cfi_span){0};
    for (uintptr_t at = eh_frame; record_at(&span, at, &record);) {
        at = (uintptr_t)record.body.end;
        if (read_fde(function, &record, address))
            return true;
    }
    return false;
}

/* The table of .eh_frame_hdr: pairs of (code, FDE), relative to the header, sorted by code. Finds
   the FDE for `addr`. */
static bool search(const struct cfi_span *span, uintptr_t hdr, uintptr_t table, uint64_t count,
                   uintptr_t address, uintptr_t *fde)
{
    uint64_t low = 0;
    uint64_t high = count;
    if (count == 0 || table > span->high || count > (span->high - table) / 8)
        return false;
    while (high - low > 1) {
        uint64_t mid = low + (high - low) / 2;
        struct cursor cursor = span_cursor(span, table + mid * 8, 4);
        if (hdr + (uintptr_t)cursor_int(&cursor, 4) <= address)
            low = mid;
        else
            high = mid;
    }
    struct cursor cursor = span_cursor(span, table + low * 8, 8);
    cursor_skip(&cursor, 4);
    *fde = hdr + (uintptr_t)cursor_int(&cursor, 4);
    return !cursor.is_bad;
}

enum where { NOWHERE, IN_TABLE, TO_BE_SCANNED };

/* Reads the header: where the FDE for `addr` is, or else where all of them start. */
static __attribute__((noinline)) enum where locate(struct cfi_lookup *lookup, uintptr_t address,
                                                   uintptr_t *place)
{
    uintptr_t hdr = (uintptr_t)lookup->object.dlfo_eh_frame;
    if (hdr == 0)
        return NOWHERE;
    const struct cfi_span *span = &lookup->function.span;
    lookup->function.span = span_around(&lookup->object, hdr);
    size_t size = span->high - hdr < 32 ? span->high - hdr : 32;
    struct cursor cursor = span_cursor(span, hdr, size);
    uint8_t version = cursor_u8(&cursor);
    uint8_t frame_encoding = cursor_u8(&cursor);
    uint8_t count_encoding = cursor_u8(&cursor);
    uint8_t table_encoding = cursor_u8(&cursor);
    uintptr_t eh_frame = cursor_pointer(&cursor, frame_encoding, hdr);
    if (cursor.is_bad || version != 1)
        return NOWHERE;
    if (count_encoding == PE_OMIT || table_encoding != (PE_DATAREL | PE_SDATA4)) {
        *place = eh_frame;
        return TO_BE_SCANNED;
    }
    uint64_t count = cursor_pointer(&cursor, count_encoding, hdr);
    bool found = !cursor.is_bad && search(span, hdr, (uintptr_t)cursor.at, count, address, place);
    if (found && (*place < span->low || *place >= span->high))
        lookup->function.span = span_around(&lookup->object, *place);
    return found ? IN_TABLE : NOWHERE;
}

/* The stack may be small: what is called here is not called from within one another. */
bool cfi_find(struct cfi_lookup *lookup, uintptr_t address)
{
    uintptr_t place = 0;
    struct record record;
    switch (locate(lookup, address, &place)) {
    case IN_TABLE:
        return record_at(&lookup->function.span, place, &record) &&
               read_fde(&lookup->function, &record, address);
    case TO_BE_SCANNED:
        return scan(&lookup->function, place, address);
    case NOWHERE:
    default:
        return false;
    }
}

struct cursor cfi_expression(const struct cfi_span *span, int32_t place)
{
    /* The length was checked when the row was made; reading it again is cheaper than a field. */
    struct cursor cursor = {(const uint8_t *)(span->low + (uint32_t)place),
                            (const uint8_t *)span->high, false};
    uint64_t size = cursor_uleb(&cursor);
    if (size > cursor_left(&cursor)) {
        cursor_fail(&cursor);
        return cursor;
    }
    cursor.end = cursor.at + size;
    return cursor;
}
