/* SPDX-License-Identifier: MIT */
/* Allocates at each of many call sites of one function, "few" or "many" of them. Each call passes
 * arguments on the stack, so that each site has call frame information of its own. */
#include <stdlib.h>
#include <string.h>

static void *volatile kept;

__attribute__((noinline)) static void take(long a, long b, long c, long d, long e, long f, long g,
                                           long h)
{
    kept = malloc((size_t)(a + b + c + d + e + f + g + h));
}

#define ONE()      take(1, 2, 3, 4, 5, 6, 7, 8);
#define FOUR()     ONE() ONE() ONE() ONE()
#define SIXTEEN()  FOUR() FOUR() FOUR() FOUR()
#define FEW()      SIXTEEN() SIXTEEN() SIXTEEN() SIXTEEN() SIXTEEN() SIXTEEN() SIXTEEN() SIXTEEN()
#define FOUR_FEW() FEW() FEW() FEW() FEW()

__attribute__((noinline)) static void few(void)
{
    FEW()
}

__attribute__((noinline)) static void many(void)
{
    FOUR_FEW() FOUR_FEW() FOUR_FEW() FOUR_FEW()
}

int main(int count, char **arguments)
{
    if (count == 2 && strcmp(arguments[1], "many") == 0)
        many();
    else if (count == 2)
        few();
    return 0;
}
