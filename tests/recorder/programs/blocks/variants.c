/* SPDX-License-Identifier: MIT */
/* Allocates in one of 64 functions, of the number that is given. */
#include <stdlib.h>

static void *volatile kept;

#define FUNCTION(i)                                                                                \
    __attribute__((noinline)) static void function##i(void)                                        \
    {                                                                                              \
        kept = malloc(i + 1);                                                                      \
    }
#define EIGHT(do, tens)                                                                            \
    do                                                                                             \
    (tens##0) do(tens##1) do(tens##2) do(tens##3) do(tens##4) do(tens##5) do(tens##6) do(tens##7)
#define ALL(do)                                                                                    \
    EIGHT(do, 1)                                                                                   \
    EIGHT(do, 2) EIGHT(do, 3) EIGHT(do, 4) EIGHT(do, 5) EIGHT(do, 6) EIGHT(do, 7) EIGHT(do, 8)
ALL(FUNCTION)

#define NAME(i) function##i,
static void (*const functions[])(void) = {ALL(NAME)};

int main(int count, char **arguments)
{
    size_t number = count == 2 ? strtoul(arguments[1], NULL, 10) : 0;
    if (number < sizeof functions / sizeof *functions)
        functions[number]();
    return !kept;
}
