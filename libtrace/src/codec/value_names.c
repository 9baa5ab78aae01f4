/* SPDX-License-Identifier: MIT */
#include <ttdtrace/model.h>
#include <ttdtrace/reader.h>

const char *ttd_action_name(enum ttd_action action)
{
    static const char *const names[] = {"?",       "Alloc", "ReAlloc", "Free",   "Create",
                                        "Protect", "Lock",  "Unlock",  "Destroy"};
    return (unsigned)action < sizeof names / sizeof *names ? names[action] : "?";
}

const char *ttd_kind_name(unsigned kind)
{
    static const char *const names[] = {"?",
                                        "trace",
                                        "strings",
                                        "stacks",
                                        "modules",
                                        "symbols",
                                        "threads",
                                        "heaps",
                                        "events",
                                        "user events",
                                        "losses",
                                        "live blocks",
                                        "pages",
                                        "memory map",
                                        "metadata",
                                        "index",
                                        "end",
                                        "states",
                                        "sums",
                                        "snapshots",
                                        "regions",
                                        "references",
                                        "variables",
                                        "frames",
                                        "classes",
                                        "fatal signals",
                                        "heap parents",
                                        "packed references",
                                        "block headers"};
    return kind < sizeof names / sizeof *names ? names[kind] : "?";
}
