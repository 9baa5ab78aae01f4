/* SPDX-License-Identifier: MIT */
#ifndef REACH_MODULE_H
#define REACH_MODULE_H

enum module_place { MODULE_GLOBAL, MODULE_INITIALIZED, MODULE_THREAD_LOCAL };

struct module_functions {
    void (*keep)(enum module_place place, void *value);
};

extern const struct module_functions module_functions;

#endif
