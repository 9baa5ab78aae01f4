/* SPDX-License-Identifier: MIT */
/*
 * Measures the algorithms on graphs of blocks: graph [NODES]. Prints for graphs of several shapes,
 * with three edges a node, the seconds of the processor that each algorithm takes, and the largest
 * resident size of a process that holds the graph, the classes and the dominators.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "graph/dominators.h"

#define NODES 10000000

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)((random_state >> 32) * limit >> 32);
}

static void require(int is_done)
{
    if (is_done)
        return;
    fprintf(stderr, "graph: not enough memory\n");
    exit(1);
}

static void edge(struct graph *graph, uint32_t source, uint32_t target)
{
    require(graph_add_edge(graph, source, target, random_below(50) ? 0 : GRAPH_INTERIOR) == TTD_OK);
}

static void root(struct graph *graph, uint32_t target)
{
    require(graph_add_root(graph, target, 0, 0) == TTD_OK);
}

/* A table whose entries have a key, a value and a list of further blocks, which point back. */
static void make_tables(struct graph *graph)
{
    uint32_t count = graph->node_count / 4 * 4;
    uint32_t entries = count / 4;
    /* Blocks in order of their addresses, which is not the order of the entries. */
    for (uint32_t node = 0; node < count; node++) {
        uint32_t entry = node / 4;
        uint32_t place = node % 4;
        if (place == 0) {
            edge(graph, node, node + 1);
            edge(graph, node, node + 2);
            edge(graph, node, node + 3);
            edge(graph, node, (uint32_t)((uint64_t)(entry + 1) * 7919 % entries) * 4);
        } else {
            edge(graph, node, node - place);
            edge(graph, node, random_below(entries / 100 + 1) * 4);
            if (place < 3)
                edge(graph, node, node + 1);
        }
    }
    root(graph, 0);
}

static void make_random(struct graph *graph)
{
    for (uint32_t node = 0; node < graph->node_count; node++) {
        for (unsigned i = 0; i < 3; i++)
            edge(graph, node, random_below(graph->node_count));
    }
    for (unsigned i = 0; i < 1000; i++)
        root(graph, random_below(graph->node_count));
}

/* Doubly linked lists of a thousand blocks, scattered, each block with a further one; held at both
 * ends; of a tenth nothing is held. */
static void make_lists(struct graph *graph)
{
    uint32_t lists = graph->node_count / 1000;
    for (uint32_t node = 0; node < graph->node_count; node++) {
        if (node >= lists)
            edge(graph, node, node - lists);
        if (node + lists < graph->node_count)
            edge(graph, node, node + lists);
        edge(graph, node, node ^ 1u);
    }
    for (uint32_t list = 0; list < lists / 10 * 9; list++) {
        root(graph, list);
        root(graph, lists * 999 + list);
    }
}

static double seconds_since(struct timespec *begin)
{
    struct timespec end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    double seconds =
        (double)(end.tv_sec - begin->tv_sec) + (double)(end.tv_nsec - begin->tv_nsec) / 1e9;
    *begin = end;
    return seconds;
}

static void measure(const char *name, void (*make)(struct graph *), uint32_t nodes)
{
    struct graph graph;
    struct graph_classes classes;
    struct graph_dominators dominators;
    struct timespec begin;
    struct rusage usage;
    uint64_t *sizes = malloc((size_t)nodes * sizeof *sizes);
    require(sizes && graph_init(&graph, nodes) == TTD_OK);
    for (uint32_t node = 0; node < nodes; node++)
        sizes[node] = 16 + random_below(100);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    make(&graph);
    graph_finish(&graph);
    double making = seconds_since(&begin);
    require(graph_classify(&graph, &classes) == TTD_OK);
    double classifying = seconds_since(&begin);
    struct graph_dominators_query query = {.classes = &classes};
    require(graph_dominate(&graph, &query, sizes, &dominators) == TTD_OK);
    double dominating = seconds_since(&begin);
    getrusage(RUSAGE_SELF, &usage);
    printf("%-8s %9u %9llu %8.2f %8.2f %11.2f %8ld\n", name, nodes,
           (unsigned long long)graph.edge_count, making, classifying, dominating,
           usage.ru_maxrss / 1024);
    graph_dominators_free(&dominators);
    graph_classes_free(&classes);
    graph_free(&graph);
    free(sizes);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*make)(struct graph *);
    } shapes[] = {{"tables", make_tables}, {"random", make_random}, {"lists", make_lists}};
    uint32_t nodes = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) / 1000 * 1000 : NODES;
    if (nodes < 1000) {
        fprintf(stderr, "usage: graph [NODES]\n");
        return 2;
    }
    printf("shape        nodes     edges making s classes s dominators s      MB\n");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            measure(shapes[i].name, shapes[i].make, nodes);
            return 0;
        }
        int status;
        require(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
    return 0;
}
