/* SPDX-License-Identifier: MIT */
#include "support/address_book.h"

#include <stdlib.h>
#include <string.h>

void address_book_free(struct address_book *book)
{
    free(book->items);
    *book = (struct address_book){.items = NULL};
}

static const char *add_all(struct address_book *book, const struct ttd_batch *batch)
{
    size_t count = book->count + batch->address_count;
    if (batch->first_ordinal != book->count)
        return "first ordinal of a batch";
    if (count > book->capacity) {
        uint64_t *items = realloc(book->items, 2 * count * sizeof *items);
        if (!items)
            return "memory";
        book->items = items;
        book->capacity = 2 * count;
    }
    if (batch->address_count)
        memcpy(book->items + book->count, batch->addresses,
               batch->address_count * sizeof *batch->addresses);
    book->count = count;
    return NULL;
}

/* `known`: how many ordinals the events before mention. */
static bool fits(const struct address_book *book, uint64_t address, uint32_t ordinal, size_t *known)
{
    if (!address)
        return true;
    *known += ordinal == *known;
    return ordinal < *known && ordinal < book->count && book->items[ordinal] == address;
}

const char *address_book_add(struct address_book *book, const struct ttd_batch *batch)
{
    const struct ttd_event *events = batch->u.events;
    size_t known = batch->first_ordinal;
    if (book->chunk != batch->chunk.offset || book->next != events->number)
        book->count = 0;
    book->chunk = batch->chunk.offset;
    book->next = events[batch->count - 1].number + 1;
    const char *wrong = add_all(book, batch);
    for (size_t i = 0; i < batch->count && !wrong; i++) {
        const struct ttd_event *event = &events[i];
        if (!fits(book, event->base_address, event->base_ordinal, &known) ||
            !fits(book, event->address, event->address_ordinal, &known))
            wrong = "ordinal of an address";
    }
    if (!wrong && known != book->count)
        wrong = "an address that no event has";
    return wrong;
}
