/* SPDX-License-Identifier: MIT */
/* The report of `fragmentation`: regions of memory, and how much of each is live. */
#include "report/state/state_reports.h"

/* Serves a region and the sum of all regions. In the sum, the space between regions is no gap. */
static void fragmentation_text_region_sums(struct text_output *output,
                                           const struct heap_region *region)
{
    say(output, sized(region->used), " in ", blocks(region->blocks), "; ", sized(region->unused),
        " in ", counted(region->gaps, "gap"));
    if (region->gaps)
        say(output, ", the largest of ", grouped(region->largest_gap));
    out_char(output, '\n');
}

/* Tells the allocator's overhead apart from the memory that it keeps free. */
static void fragmentation_text_overhead(struct text_output *output, const struct heap_region *total)
{
    if (total->unused)
        say(output, "Of the gaps ", rounded(total->overhead), " are overhead, under ",
            number(HEAP_GAP_FREE), " bytes each; ", rounded(total->unused - total->overhead),
            " mostly kept free\n");
}

/* Sites that text shows. */
#define SPARSE_SHOWN 5

/* Writes the sparse pages, and the call sites whose blocks keep most of them. */
static void fragmentation_text_sparse(struct report *report, const struct heap_sparse_pages *sparse)
{
    struct text_output *output = report->output;
    if (!sparse->sparse)
        return;
    say(output, BOLD, "\n", counted(sparse->sparse, "sparse page"), " of ", grouped(sparse->pages),
        ", with less than a quarter in blocks: ", rounded(sparse->total.kept), " kept by ",
        rounded(sparse->total.bytes), "\n", PLAIN);
    for (size_t i = 0; i < report_shown(sparse->count, SPARSE_SHOWN); i++) {
        const struct heap_sparse_site *site = &sparse->sites[i];
        say(output, "\n", bytes(site->kept), " kept by ", blocks(site->blocks), " with ",
            bytes(site->bytes), " in all\n");
        report_site_text(report, site->key);
    }
    if (sparse->count > SPARSE_SHOWN)
        say(output, "\n… and ", counted(sparse->count - SPARSE_SHOWN, "call site"),
            " more (JSON has all)\n");
}

static void text_fragmentation(struct report *report,
                               const struct heap_fragmentation *fragmentation)
{
    struct text_output *output = report->output;
    say(output, BOLD, counted(fragmentation->count, "region"), " at ",
        moment(report, fragmentation->outcome.position), ": ");
    fragmentation_text_region_sums(output, &fragmentation->total);
    out_plain(output);
    fragmentation_text_overhead(output, &fragmentation->total);
    report_certainty_text(report);
    if (fragmentation->count)
        out_char(output, '\n');
    for (size_t i = 0; i < fragmentation->count && i < report->limit; i++) {
        say(output, "  ", hex(fragmentation->regions[i].begin), " to ",
            hex(fragmentation->regions[i].last), ": ");
        fragmentation_text_region_sums(output, &fragmentation->regions[i]);
    }
    if (fragmentation->count > report->limit)
        say(output, "… and ", counted(fragmentation->count - report->limit, "region"),
            " more (--limit 0 for all)\n");
    fragmentation_text_sparse(report, &fragmentation->sparse);
}

static void fragmentation_row_region_sums(struct row *row, const struct heap_region *region)
{
    row_unsigned(row, "blocks", region->blocks);
    row_unsigned(row, "used_bytes", region->used);
    row_unsigned(row, "gaps", region->gaps);
    row_unsigned(row, "gap_bytes", region->unused);
    row_unsigned(row, "overhead_bytes", region->overhead);
    row_unsigned(row, "largest_gap", region->largest_gap);
}

static void fragmentation_row_sparse(struct row *row, const struct heap_sparse_pages *sparse,
                                     size_t shown)
{
    row_unsigned(row, "pages", sparse->pages);
    row_unsigned(row, "sparse_pages", sparse->sparse);
    row_unsigned(row, "kept_bytes", sparse->total.kept);
    row_begin_array(row, "keepers");
    for (size_t i = 0; i < shown; i++) {
        row_begin_object(row, NULL);
        row_unsigned(row, "kept_bytes", sparse->sites[i].kept);
        row_unsigned(row, "blocks", sparse->sites[i].blocks);
        row_unsigned(row, "bytes", sparse->sites[i].bytes);
        row_site(row, sparse->sites[i].key);
        row_end_object(row);
    }
    row_end_array(row);
}

void report_sparse_pages(struct report *report, const struct heap_sparse_pages *sparse, size_t most)
{
    struct row row;
    row_open(&row, report);
    row_unsigned(&row, "bytes", sparse->total.bytes);
    row_unsigned(&row, "total_keepers", sparse->count);
    fragmentation_row_sparse(&row, sparse, report_shown(sparse->count, most));
    row_end_object(&row);
}

void report_fragmentation(struct report *report, const struct heap_fragmentation *fragmentation)
{
    struct row row;
    if (report->form == REPORT_TEXT) {
        text_fragmentation(report, fragmentation);
        return;
    }
    row_open(&row, report);
    row_position(&row, "position", fragmentation->outcome.position);
    row_certainty(&row);
    fragmentation_row_region_sums(&row, &fragmentation->total);
    row_unsigned(&row, "total_regions", fragmentation->count);
    ROW_EACH(&row, "regions", struct heap_region, region, fragmentation->regions,
             section_row_listed(&row, fragmentation->count))
    {
        row_hex(&row, "begin", region->begin);
        row_hex(&row, "last", region->last);
        fragmentation_row_region_sums(&row, region);
    }
    fragmentation_row_sparse(&row, &fragmentation->sparse, fragmentation->sparse.count);
    row_end_object(&row);
}
