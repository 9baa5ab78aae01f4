/* SPDX-License-Identifier: MIT */
/* Lists, trees, cycles, tables and pools, kept and lost. */
#include "case.h"

struct node {
    struct node *next, *previous;
    uint64_t payload[4];
};

/* A text behind a header. */
__attribute__((noinline)) static char *text(uint64_t size)
{
    uint64_t *header = block(sizeof *header + size);

    *header = size;
    return (char *)(header + 1);
}

CASE(texts_behind_headers)
{
    kept[0] = text(20);
    kept[1] = text(30);
    kept[2] = text(40);
}

CASE(texts_behind_headers_lost)
{
    text(20);
    kept[0] = text(30);
    text(40);
}

CASE(self_pointer)
{
    void *memory = block(48);

    put(memory, 16, memory);
}

CASE(self_pointer_interior)
{
    char *memory = block(48);

    put(memory, 16, memory + 16);
}

CASE(cycle)
{
    struct node *first = block(sizeof *first), *second = block(sizeof *second);

    first->next = second;
    second->next = first;
}

CASE(cycle_kept)
{
    struct node *first = block(sizeof *first), *second = block(sizeof *second);

    first->next = second;
    second->next = first;
    kept[0] = first;
}

CASE(cycle_of_interior)
{
    struct node *first = block(sizeof *first), *second = block(sizeof *second);

    first->next = (struct node *)&second->previous;
    second->next = (struct node *)&first->previous;
}

CASE(cycle_possible)
{
    struct node *first = block(sizeof *first), *second = block(sizeof *second);

    first->next = second;
    second->next = first;
    kept[0] = &second->payload;
}

CASE(cycle_with_tail)
{
    struct node *first = block(sizeof *first), *second = block(sizeof *second);

    first->next = second;
    second->next = first;
    second->previous = block(80);
}

CASE(cycle_with_head)
{
    struct node *first = block(sizeof *first), *second = block(sizeof *second);

    first->next = second;
    second->next = first;
    put(block(80), 0, first);
}

/* The cycle that holds the other one was acquired first, then last: it is the one to be named. */
static void cycles(int holder)
{
    struct node *nodes[4];

    for (int i = 0; i < 4; i++)
        nodes[i] = block(sizeof *nodes[i]);
    for (int i = 0; i < 4; i += 2) {
        nodes[i]->next = nodes[i + 1];
        nodes[i + 1]->next = nodes[i];
    }
    nodes[holder]->previous = nodes[2 - holder];
}

CASE(cycle_to_cycle)
{
    cycles(0);
}

CASE(cycle_from_cycle)
{
    cycles(2);
}

CASE(diamond)
{
    struct node *top = block(sizeof *top), *left = block(32), *right = block(32);

    top->next = left;
    top->previous = right;
    left->next = right->next = block(24);
}

static struct node *list(int length)
{
    struct node *head = NULL;

    while (length-- > 0) {
        struct node *node = block(sizeof *node);

        node->next = head;
        head = node;
    }
    return head;
}

static void link_back(struct node *head)
{
    for (; head->next; head = head->next)
        head->next->previous = head;
}

CASE(list_lost)
{
    list(100);
}

CASE(list_kept)
{
    kept[0] = list(100);
}

CASE(list_cut)
{
    struct node *head = list(100), *node = head;

    for (int i = 0; i < 39; i++)
        node = node->next;
    node->next = NULL;
    kept[0] = head;
}

CASE(list_long)
{
    list(100000);
}

CASE(double_list_lost)
{
    link_back(list(100));
}

CASE(double_list_kept_in_the_middle)
{
    struct node *head = list(100);

    link_back(head);
    kept[0] = head->next->next->next;
}

CASE(double_list_long)
{
    link_back(list(50000));
}

static struct node *ring(int length)
{
    struct node *head = list(length), *last = head;

    while (last->next)
        last = last->next;
    last->next = head;
    return head;
}

CASE(ring_lost)
{
    ring(100);
}

CASE(ring_kept)
{
    kept[0] = ring(100);
}

static struct node *tree(int depth)
{
    struct node *node;

    if (depth == 0)
        return NULL;
    node = block(sizeof *node);
    node->next = tree(depth - 1);
    node->previous = tree(depth - 1);
    return node;
}

static void link_up(struct node *node, struct node *parent)
{
    if (!node)
        return;
    put(node, offsetof(struct node, payload), parent);
    link_up(node->next, node);
    link_up(node->previous, node);
}

CASE(tree_lost)
{
    tree(7);
}

CASE(tree_kept)
{
    kept[0] = tree(7);
}

CASE(tree_subtree_kept)
{
    kept[0] = tree(7)->next;
}

CASE(tree_with_parents_lost)
{
    link_up(tree(7), NULL);
}

CASE(tree_with_parents_kept_by_leaf)
{
    struct node *root = tree(7), *leaf = root;

    link_up(root, NULL);
    while (leaf->next)
        leaf = leaf->next;
    kept[0] = leaf;
}

/* Links point at the member that links, as in the list of a kernel. */
static void insert(void **head, size_t size)
{
    char *object = block(size);

    put(object, 16, *head);
    *head = object + 16;
}

CASE(intrusive_list_kept)
{
    void *head = NULL;

    for (int i = 0; i < 7; i++)
        insert(&head, 48);
    kept[0] = head;
}

CASE(intrusive_list_lost)
{
    void *head = NULL;

    for (int i = 0; i < 7; i++)
        insert(&head, 48);
}

CASE(xor_list)
{
    struct node *nodes[4];

    for (int i = 0; i < 4; i++)
        nodes[i] = block(sizeof *nodes[i]);
    for (int i = 0; i < 4; i++)
        nodes[i]->next = (struct node *)((i > 0 ? (uintptr_t)nodes[i - 1] : 0) ^
                                         (i < 3 ? (uintptr_t)nodes[i + 1] : 0));
    kept[0] = nodes[0];
}

/* A table of chains: 10 buckets of 5 nodes. */
static void *hash_table(void)
{
    void *table = block(10 * sizeof(void *));

    for (int i = 0; i < 10; i++)
        put(table, i * sizeof(void *), list(5));
    return table;
}

CASE(hash_table_kept)
{
    kept[0] = hash_table();
}

CASE(hash_table_lost)
{
    hash_table();
}

CASE(hash_table_bucket_lost)
{
    void *table = hash_table();

    put(table, 24, NULL);
    kept[0] = table;
}

static void *strings(int count)
{
    char *table = block((count + 1) * sizeof(void *));

    for (int i = 0; i < count; i++)
        put(table, i * sizeof(void *), strdup("twelve bytes"));
    return table;
}

CASE(strings_kept)
{
    kept[0] = strings(20);
}

CASE(strings_lost)
{
    strings(20);
}

/* A pool hands out parts of one block of malloc's. */
CASE(pool_kept_by_start)
{
    char *pool = block(4096);

    put(pool, 1000, block(40));
    kept[0] = pool;
}

CASE(pool_kept_by_object)
{
    char *pool = block(4096);

    put(pool, 1000, block(40));
    kept[0] = pool + 992;
}

CASE(pool_lost)
{
    char *pool = block(4096);

    put(pool, 1000, block(40));
    put(pool, 2000, pool + 1000);
}

/* A header before the data, and only pointers to the data: blocks that are owned so. */
CASE(header_before_data)
{
    char *table = block(200 * sizeof(void *));

    for (int i = 0; i < 200; i++)
        put(table, i * sizeof(void *), (char *)block(40 + i % 5) + 16);
    kept[0] = table;
}

CASE(header_before_data_lost)
{
    char *table = block(200 * sizeof(void *));

    for (int i = 0; i < 200; i++)
        put(table, i * sizeof(void *), (char *)block(40 + i % 5) + 16);
    put(table, 8, NULL);
    put(table, 80, NULL);
    kept[0] = table;
}

/* The size in the word before the data, as sqlite's allocator. */
CASE(size_before_data)
{
    uint64_t *memory = block(8 + 56);

    memory[0] = 56;
    kept[0] = memory + 1;
}
