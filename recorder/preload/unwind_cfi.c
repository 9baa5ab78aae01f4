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

static bool span_holds(const struct cfi_span *span, uintptr_t addr, size_t size)
{
    if (addr < span->low || addr > span->high || size > span->high - addr)
        return false;
    return !span->probe || unwind_range_readable(addr, size);
}

static inline __attribute__((always_inline)) struct cursor span_cursor(const struct cfi_span *span,
                                                                       uintptr_t addr, size_t size)
{
    struct cursor c = {0};
    if (!span_holds(span, addr, size)) {
        c.bad = true;
        return c;
    }
    c.p = (const uint8_t *)addr;
    c.end = c.p + size;
    return c;
}

static const ElfW(Phdr) * main_phdr;
static size_t main_phnum;

void cfi_setup(void)
{
    main_phdr = (const void *)getauxval(AT_PHDR); /* NOLINT: an address as a number */
    main_phnum = getauxval(AT_PHNUM);
}

/* The readable segment that holds `addr`; `low` of the result is 0 if there is none. */
static struct cfi_span find_segment(const ElfW(Phdr) * phdr, size_t n, uintptr_t load,
                                    uintptr_t addr)
{
    for (size_t i = 0; i < n; i++) {
        uintptr_t low = load + phdr[i].p_vaddr;
        if (phdr[i].p_type == PT_LOAD && (phdr[i].p_flags & PF_R) != 0 && addr >= low &&
            addr - low < phdr[i].p_filesz)
            return (struct cfi_span){low, low + phdr[i].p_filesz, false};
    }
    return (struct cfi_span){0};
}

/* By the ELF header at the start of the mapping. */
static struct cfi_span segment_by_header(const struct dl_find_object *object, uintptr_t addr)
{
    uintptr_t start = (uintptr_t)object->dlfo_map_start;
    uintptr_t end = (uintptr_t)object->dlfo_map_end;
    const ElfW(Ehdr) *ehdr = object->dlfo_map_start;
    if (end - start < UNWIND_PAGE || memcmp(ehdr->e_ident, ELFMAG, SELFMAG) != 0 ||
        ehdr->e_phentsize != sizeof(ElfW(Phdr)) || ehdr->e_phoff > UNWIND_PAGE ||
        ehdr->e_phnum > (UNWIND_PAGE - ehdr->e_phoff) / sizeof(ElfW(Phdr)))
        return (struct cfi_span){0};
    const ElfW(Phdr) *phdr = (const void *)(start + ehdr->e_phoff);
    struct cfi_span span = find_segment(phdr, ehdr->e_phnum, object->dlfo_link_map->l_addr, addr);
    return span.low >= start && span.high <= end && span.low < span.high ? span
                                                                         : (struct cfi_span){0};
}

/* By the program headers that the kernel gave, if this is the program itself. */
static struct cfi_span segment_of_main(const struct dl_find_object *object, uintptr_t addr)
{
    uintptr_t load = object->dlfo_link_map->l_addr;
    for (size_t i = 0; i < main_phnum; i++)
        if (main_phdr[i].p_type == PT_GNU_EH_FRAME &&
            load + main_phdr[i].p_vaddr == (uintptr_t)object->dlfo_eh_frame)
            return find_segment(main_phdr, main_phnum, load, addr);
    return (struct cfi_span){0};
}

/*
 * The readable segment around `addr`. For a program that the kernel mapped in pieces, `object` is
 * but one segment, and seldom the one that we need. Where the program headers cannot be found
 * (some tools that edit libraries move them), pages are probed.
 */
static struct cfi_span span_around(const struct dl_find_object *object, uintptr_t addr)
{
    struct cfi_span span = segment_by_header(object, addr);
    if (span.low == 0)
        span = segment_of_main(object, addr);
    if (span.low == 0) {
        span.low = addr - (addr < PROBED_MAX ? addr : PROBED_MAX);
        span.high = addr + (UINTPTR_MAX - addr < PROBED_MAX ? 0 : PROBED_MAX);
        span.probe = true;
    }
    return span;
}

/* The record at `at`. False for the terminator, too. */
static bool record_at(const struct cfi_span *span, uintptr_t at, struct record *r)
{
    struct cursor c = span_cursor(span, at, 4);
    uint64_t size = cursor_uint(&c, 4);
    uintptr_t body = at + 4;
    if (size == 0xffffffff) {
        c = span_cursor(span, body, 8);
        size = cursor_uint(&c, 8);
        body += 8;
    }
    if (c.bad || size == 0 || size > span->high - span->low)
        return false;
    r->at = at;
    r->body = span_cursor(span, body, size);
    return !r->body.bad;
}

/* Reads a CIE's augmentation; `encoding` and `signal` come from there. */
static void read_augmentation(struct cursor *c, const char *letters, struct cfi_function *f)
{
    if (letters[0] == '\0')
        return;
    if (letters[0] != 'z') {
        cursor_fail(c);
        return;
    }
    f->augmented = true;
    uint64_t size = cursor_uleb(c);
    if (size > cursor_left(c)) {
        cursor_fail(c);
        return;
    }
    struct cursor data = {c->p, c->p + size, false};
    cursor_skip(c, size);
    for (letters++; *letters != '\0' && !data.bad; letters++) {
        switch (*letters) {
        case 'R':
            f->encoding = cursor_u8(&data);
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
            f->signal = true;
            break;
        default: /* the size tells where what we do not know ends */
            return;
        }
    }
    c->bad |= data.bad;
}

static bool read_cie(struct cfi_function *f, uintptr_t at)
{
    struct record r;
    if (!record_at(&f->span, at, &r) || cursor_uint(&r.body, 4) != 0)
        return false;
    struct cursor *c = &r.body;
    uint8_t version = cursor_u8(c);
    const char *letters = (const char *)c->p;
    while (cursor_u8(c) != '\0') {
    }
    if (c->bad || (version != 1 && version != 3 && version != 4))
        return false;
    if (version == 4 && cursor_uint(c, 2) != 8) /* address size 8, no segment selector */
        return false;
    f->code_align = cursor_uleb(c);
    f->data_align = cursor_sleb(c);
    f->ra_column = version == 1 ? cursor_u8(c) : cursor_uleb(c);
    f->encoding = PE_ABSPTR;
    f->signal = false;
    f->augmented = false;
    read_augmentation(c, letters, f);
    f->common = *c;
    return !c->bad && f->ra_column == CFI_RA;
}

/* Whether the record is a function (not a CIE) that contains `addr`; fills `f`. */
static bool read_fde(struct cfi_function *f, struct record *r, uintptr_t addr)
{
    struct cursor *c = &r->body;
    uintptr_t here = (uintptr_t)c->p;
    uint64_t delta = cursor_uint(c, 4);
    if (c->bad || delta == 0 || delta > here || !read_cie(f, here - delta))
        return false;
    f->start = cursor_pointer(c, f->encoding, 0);
    f->size = cursor_pointer(c, f->encoding & 0x0f, 0);
    if (c->bad || addr < f->start || addr - f->start >= f->size)
        return false;
    if (f->augmented)
        cursor_skip(c, cursor_uleb(c));
    f->specific = *c;
    return !c->bad;
}

/* Without a table: all records from the first to the terminator. */
static __attribute__((noinline)) bool scan(struct cfi_function *f, uintptr_t eh_frame,
                                           uintptr_t addr)
{
    struct record r;
    struct cfi_span span = span_holds(&f->span, eh_frame, 4) ? f->span : (struct cfi_span){0};
    for (uintptr_t at = eh_frame; record_at(&span, at, &r);) {
        at = (uintptr_t)r.body.end;
        if (read_fde(f, &r, addr))
            return true;
    }
    return false;
}

/* The table of .eh_frame_hdr: pairs of (code, FDE), relative to the header, sorted by code. Finds
   the FDE for `addr`. */
static bool search(const struct cfi_span *span, uintptr_t hdr, uintptr_t table, uint64_t count,
                   uintptr_t addr, uintptr_t *fde)
{
    uint64_t low = 0;
    uint64_t high = count;
    if (count == 0 || table > span->high || count > (span->high - table) / 8)
        return false;
    while (high - low > 1) {
        uint64_t mid = low + (high - low) / 2;
        struct cursor c = span_cursor(span, table + mid * 8, 4);
        if (hdr + (uintptr_t)cursor_int(&c, 4) <= addr)
            low = mid;
        else
            high = mid;
    }
    struct cursor c = span_cursor(span, table + low * 8, 8);
    cursor_skip(&c, 4);
    *fde = hdr + (uintptr_t)cursor_int(&c, 4);
    return !c.bad;
}

enum where { NOWHERE, IN_TABLE, TO_BE_SCANNED };

/* Reads the header: where the FDE for `addr` is, or else where all of them start. */
static __attribute__((noinline)) enum where locate(struct cfi_lookup *l, uintptr_t addr,
                                                   uintptr_t *place)
{
    uintptr_t hdr = (uintptr_t)l->object.dlfo_eh_frame;
    if (hdr == 0)
        return NOWHERE;
    const struct cfi_span *span = &l->function.span;
    l->function.span = span_around(&l->object, hdr);
    size_t size = span->high - hdr < 32 ? span->high - hdr : 32;
    struct cursor c = span_cursor(span, hdr, size);
    uint8_t version = cursor_u8(&c);
    uint8_t frame_encoding = cursor_u8(&c);
    uint8_t count_encoding = cursor_u8(&c);
    uint8_t table_encoding = cursor_u8(&c);
    uintptr_t eh_frame = cursor_pointer(&c, frame_encoding, hdr);
    if (c.bad || version != 1)
        return NOWHERE;
    if (count_encoding == PE_OMIT || table_encoding != (PE_DATAREL | PE_SDATA4)) {
        *place = eh_frame;
        return TO_BE_SCANNED;
    }
    uint64_t count = cursor_pointer(&c, count_encoding, hdr);
    bool found = !c.bad && search(span, hdr, (uintptr_t)c.p, count, addr, place);
    if (found && (*place < span->low || *place >= span->high))
        l->function.span = span_around(&l->object, *place);
    return found ? IN_TABLE : NOWHERE;
}

/* The stack may be small: what is called here is not called from within one another. */
bool cfi_find(struct cfi_lookup *l, uintptr_t addr)
{
    uintptr_t place = 0;
    struct record r;
    switch (locate(l, addr, &place)) {
    case IN_TABLE:
        return record_at(&l->function.span, place, &r) && read_fde(&l->function, &r, addr);
    case TO_BE_SCANNED:
        return scan(&l->function, place, addr);
    case NOWHERE:
    default:
        return false;
    }
}

struct cursor cfi_expression(const struct cfi_span *span, int32_t place)
{
    /* The length was checked when the row was made; reading it again is cheaper than a field. */
    struct cursor c = {(const uint8_t *)(span->low + (uint32_t)place), (const uint8_t *)span->high,
                       false};
    uint64_t size = cursor_uleb(&c);
    if (size > cursor_left(&c)) {
        cursor_fail(&c);
        return c;
    }
    c.end = c.p + size;
    return c;
}
