/* SPDX-License-Identifier: MIT */
/* Objects of C++ classes, for tests in C. */
#ifndef TESTS_SNAPSHOT_SHAPES_H
#define TESTS_SNAPSHOT_SHAPES_H

#ifdef __cplusplus
extern "C" {
#endif

/* Objects whose classes have type_info, by the mangled name of the class. */
struct shape {
    const char *name;
    void *object;
};
enum { SHAPES = 7 };
struct shape shape(unsigned number);

/* The second part of an object of class 4Both, which has a table of its own. */
void *second_part(void);

/* An object of a class without type_info. */
void *plain_shape(void);

#ifdef __cplusplus
}
#endif
#endif
