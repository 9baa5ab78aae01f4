/* SPDX-License-Identifier: MIT */
/*
 * Reports APR's pools to the recorder. A library to be loaded before APR:
 *
 *     cc -shared -fPIC -D_GNU_SOURCE $(apr-1-config --includes --cppflags) -o pools.so apr.c
 *     ttdrecord -o trace.bin -- env LD_PRELOAD=$PWD/pools.so program
 */
#include <apr_pools.h>

#include "report.h"

/* The first cleanup of a pool is run last: behind the cleanups of the program and of the pools
 * within, just before the memory is released. */
static apr_status_t report_end(void *pool)
{
    ttd_live_heap_destroy(client, pool);
    return APR_SUCCESS;
}

static void report_begin(apr_pool_t *pool)
{
    ttd_live_heap_create(client, pool, apr_pool_parent_get(pool), "APR pool");
    if (client)
        apr_pool_cleanup_register(pool, pool, report_end, apr_pool_cleanup_null);
}

apr_status_t apr_pool_create_ex(apr_pool_t **pool, apr_pool_t *parent, apr_abortfunc_t abort_fn,
                                apr_allocator_t *allocator)
{
    REAL(apr_pool_create_ex);
    apr_status_t status = real(pool, parent, abort_fn, allocator);
    if (status == APR_SUCCESS)
        report_begin(*pool);
    return status;
}

apr_status_t apr_pool_create_unmanaged_ex(apr_pool_t **pool, apr_abortfunc_t abort_fn,
                                          apr_allocator_t *allocator)
{
    REAL(apr_pool_create_unmanaged_ex);
    apr_status_t status = real(pool, abort_fn, allocator);
    if (status == APR_SUCCESS)
        report_begin(*pool);
    return status;
}

/* An empty pool is a new one. Its cleanups have been run, ours among them. */
void apr_pool_clear(apr_pool_t *pool)
{
    REAL(apr_pool_clear);
    real(pool);
    report_begin(pool);
}

/* Everything else that gives out memory of a pool calls this. */
void *apr_palloc(apr_pool_t *pool, apr_size_t size)
{
    REAL(apr_palloc);
    void *block = real(pool, size);
    ttd_live_heap_alloc(client, pool, block, size);
    return block;
}
