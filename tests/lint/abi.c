/* SPDX-License-Identifier: MIT */
/*
 * Sizes of the public structs where pointers have 64 bits, and that structs of options begin with
 * theirs: version.h says what may change, and when. Who changes a struct changes its line here, and
 * from version 1.0 on the soname as well.
 */
#include <assert.h>
#include <stddef.h>

#include <ttdtrace/advanced.h>
#include <ttdtrace/ttdheap.h>
#include <ttdtrace/ttdtrace.h>

#define SIZE(name, bytes)                                                                          \
    static_assert(sizeof(void *) != 8 || sizeof(struct name) == (bytes), "size of " #name)
#define BEGINS_WITH_SIZE(name)                                                                     \
    static_assert(offsetof(struct name, size) == 0 &&                                              \
                      sizeof(((struct name *)NULL)->size) == sizeof(size_t),                       \
                  #name " begins with its size")

BEGINS_WITH_SIZE(ttd_reader_options);
BEGINS_WITH_SIZE(ttd_writer_options);
BEGINS_WITH_SIZE(ttdheap_options);

SIZE(ttd_allocator, 24);
SIZE(ttd_string, 16);
SIZE(ttd_string_definition, 24);
SIZE(ttd_stack, 24);
SIZE(ttd_module, 128);
SIZE(ttd_thread, 40);
SIZE(ttd_heap, 24);
SIZE(ttd_heap_parent, 8);
SIZE(ttd_symbol_frame, 12);
SIZE(ttd_symbol, 32);
SIZE(ttd_event, 160);
SIZE(ttd_block, 56);
SIZE(ttd_live_blocks, 48);
SIZE(ttd_pages, 24);
SIZE(ttd_memory_run, 32);
SIZE(ttd_memory_map, 48);
SIZE(ttd_state, 192);
SIZE(ttd_sum, 64);
SIZE(ttd_snapshot, 88);
SIZE(ttd_region, 40);
SIZE(ttd_regions, 24);
SIZE(ttd_reference, 24);
SIZE(ttd_references, 24);
SIZE(ttd_variable, 32);
SIZE(ttd_frames, 32);
SIZE(ttd_class, 16);
SIZE(ttd_classes, 24);
SIZE(ttd_block_headers, 32);
SIZE(ttd_register, 16);
SIZE(ttd_fatal_signal, 80);
SIZE(ttd_input, 32);
SIZE(ttd_output, 24);
SIZE(ttd_memory_output, 48);
SIZE(ttd_loaded, 56);
SIZE(ttd_name, 40);
SIZE(ttd_position, 16);
SIZE(ttd_chunk, 88);
SIZE(ttd_call, 24);
SIZE(ttd_calls, 48);
SIZE(ttd_batch, 192);
SIZE(ttd_reader_options, 32);
SIZE(ttd_error, 32);
SIZE(ttd_group, 16);
SIZE(ttd_trace, 120);
SIZE(ttd_end, 48);
SIZE(ttd_metadata, 32);
SIZE(ttd_loss, 48);
SIZE(ttd_user_event, 64);
SIZE(ttd_problem, 88);
SIZE(ttd_problem_observer, 16);
SIZE(ttd_verdict, 56);
SIZE(ttd_redaction, 64);
SIZE(ttd_writer_options, 24);
SIZE(ttdheap_error, 544);
SIZE(ttdheap_answer, 48);
SIZE(ttdheap_info, 360);
SIZE(ttdheap_block, 56);
SIZE(ttdheap_blocks, 64);
SIZE(ttdheap_group, 112);
SIZE(ttdheap_groups, 96);
SIZE(ttdheap_move, 96);
SIZE(ttdheap_moves, 64);
SIZE(ttdheap_call, 32);
SIZE(ttdheap_finding, 168);
SIZE(ttdheap_findings, 72);
SIZE(ttdheap_owner, 112);
SIZE(ttdheap_history, 72);
SIZE(ttdheap_frame, 88);
SIZE(ttdheap_frames, 64);
SIZE(ttdheap_range, 48);
SIZE(ttdheap_calls, 72);
