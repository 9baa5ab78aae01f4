/* SPDX-License-Identifier: MIT */
/** Netting a chunk of events: what they leave behind at each address, without an event struct. */
#ifndef TTD_CODEC_EVENTS_NETTING_H
#define TTD_CODEC_EVENTS_NETTING_H

#include "codec/events/events.h"

/** An event whose times are an exception. The events up to the next mark follow it in the same
 * thread, and each takes two steps. */
struct ttd_net_mark {
    uint32_t index;
    ttd_id thread;
    /** The place of the thread in the chunk's list. */
    uint32_t place;
    /** With sums: the number of the thread's calls in the chunk before this one. */
    uint32_t calls;
    struct ttd_position start;
    /** End of the call; its start if it never returned. */
    struct ttd_position end;
};

/** A ReAlloc that ends after the event behind it takes effect. */
struct ttd_net_late {
    uint32_t index;
    /** The place of its thread. */
    uint32_t thread;
    struct ttd_position end;
};

/** Events from one that has a struct ttd_net_place to the next. */
#define TTD_NET_PLACE_EVENTS 16u

/** The last mark and the last time at an event or before. */
struct ttd_net_place {
    uint32_t mark;
    uint32_t time;
};

/** Sums over the calls of a chunk: see struct ttd_net_sums. */
struct ttd_netting_sums {
    struct ttd_net_sum_options options;
    struct ttd_net_lifetimes lifetimes;
    bool is_wanted;
    bool is_exact;
    /** By shape: bits of an enum netting_shape_flag. */
    uint8_t *flags;
    size_t flag_capacity;
    struct ttd_net_site_sums *sites;
    size_t site_capacity;
    struct ttd_net_thread *threads;
    size_t thread_count;
    size_t thread_capacity;
    /** The last mark and the last time at the event that is netted or before; and the number of the
     * next event that has one. */
    size_t mark;
    size_t time;
    uint32_t change;
};

/** Nets one chunk at a time. */
struct ttd_netting {
    /** Decodes the tables, the times and the optional values; its lists of addresses have indices
     * of `nets`. */
    struct ttd_events_decoder decoder;
    /** While events are decoded: one for each address that is spelled out. Then: one for each
     * address. */
    struct ttd_net *nets;
    size_t count;
    size_t capacity;
    /** By shape: an enum ttd_event_fast. */
    uint8_t *forms;
    size_t form_capacity;
    /** By shape: the place of its heap in netted.heaps; 0 if it changes no block. */
    uint16_t *shape_heaps;
    size_t shape_heap_capacity;
    /** By event of a batch: the number of its shape. */
    uint32_t shapes[TTD_EVENT_BATCH];
    /** Shape of the event before the batch; 0 for none. */
    uint32_t shape_before;
    /** Index in `nets` of the address that the last event has acquired. */
    uint32_t last_acquired;
    /** Index in the chunk of the first event of the batch. */
    uint32_t index;
    struct ttd_net_mark *marks;
    size_t mark_count;
    size_t mark_capacity;
    struct ttd_net_late *lates;
    size_t late_count;
    size_t late_capacity;
    /** The first of `lates` whose event was not netted yet. */
    size_t late_next;
    /** The end of the latest ReAlloc of `lates`, or of the last event; 0:0 if there is none. */
    struct ttd_position settled;
    struct ttd_net_pending *pending;
    size_t pending_count;
    size_t pending_capacity;
    struct ttd_net_time *times;
    size_t time_count;
    size_t time_capacity;
    /** The place of each TTD_NET_PLACE_EVENTS-th event, from the first on, whose time is decoded.
     */
    struct ttd_net_place *places;
    size_t place_count;
    size_t place_capacity;
    /** A hash table of the nets' addresses: 1 more than the index in `nets`; 0 for none. */
    uint32_t *slots;
    size_t slot_capacity;
    /** Hashes of 64 bits are shifted by so many. */
    unsigned slot_shift;
    struct ttd_netting_sums sums;
    uint64_t first_event;
    /** Number of events that destroyed a heap. */
    unsigned destructions;
    /** `nets` and `count` are set last. */
    struct ttd_netted netted;
};

void ttd_netting_init(struct ttd_netting *netting, const struct ttd_allocator *allocator);
void ttd_netting_free(struct ttd_netting *netting);

/**
 * Nets the chunk of `header`; it has at least one event. Checks all that ttd_events_decoder_next()
 * checks.
 *
 * @return TTD_OK with netting->netted set; TTD_ERROR_CORRUPT (netting->decoder.error says why),
 *         TTD_ERROR_NO_MEMORY.
 */
enum ttd_status ttd_netting_chunk(struct ttd_netting *netting, const struct ttd_header *header,
                                  struct ttd_cursor payload, uint64_t time_unit);

/** Describes the block that a net has left. */
void ttd_netting_block(const struct ttd_netting *netting, const struct ttd_net *net,
                       struct ttd_net_block *block);

/** See ttd_netter_site(). */
void ttd_netting_site(const struct ttd_netting *netting, uint32_t number,
                      struct ttd_net_site *site);

/** See ttd_netter_moment(). */
void ttd_netting_moment(const struct ttd_netting *netting, uint32_t index,
                        struct ttd_net_moment *moment);

/** See ttd_netter_find(). */
bool ttd_netting_find(const struct ttd_netting *netting, uint64_t address,
                      struct ttd_position *position);

#endif
