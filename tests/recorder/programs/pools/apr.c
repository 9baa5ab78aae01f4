/* SPDX-License-Identifier: MIT */
/* A tree of APR's pools: one is destroyed with what is within it, one is cleared, one is lost. */
#include <stdlib.h>
#include <string.h>

#include <apr_general.h>
#include <apr_pools.h>
#include <apr_strings.h>

static apr_pool_t *make(apr_pool_t *parent, int blocks, apr_size_t size)
{
    apr_pool_t *pool;
    if (apr_pool_create(&pool, parent) != APR_SUCCESS)
        abort();
    for (int i = 0; i < blocks; i++)
        memset(apr_palloc(pool, size), 1, size);
    return pool;
}

static apr_status_t say_goodbye(void *pool)
{
    return apr_palloc(pool, 66) ? APR_SUCCESS : APR_ENOMEM;
}

static void destroy_some(void)
{
    apr_pool_t *outer = make(NULL, 5, 1001);
    apr_pool_t *inner = make(outer, 3, 1002);
    make(inner, 2, 1003);
    apr_pool_cleanup_register(inner, inner, say_goodbye, apr_pool_cleanup_null);
    apr_pool_destroy(outer);
}

static void clear_one(void)
{
    apr_pool_t *pool = make(NULL, 4, 1004);
    apr_pool_clear(pool);
    apr_pstrdup(pool, "four"); /* 5 bytes */
    apr_pcalloc(pool, 1005);
    apr_pool_destroy(pool);
}

__attribute__((noinline)) static void lose_one(void)
{
    make(make(NULL, 1, 1006), 10, 1007);
}

int main(void)
{
    apr_initialize();
    destroy_some();
    clear_one();
    lose_one();
    return 0;
}
