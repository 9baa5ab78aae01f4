/* SPDX-License-Identifier: MIT */
#include "collect/trace/variables.h"

#include <stdlib.h>

#include "arrays.h"

void variables_free(struct variables *variables)
{
    free(variables->words);
    free(variables->known);
    *variables = (struct variables){0};
}

void variables_add(struct variables *variables, ttd_id module, uint64_t offset)
{
    if (variables->count == VARIABLE_WORDS_MAX)
        return;
    void *words = array_grow(variables->words, variables->count, &variables->capacity,
                             sizeof *variables->words);
    if (!words)
        return;
    variables->words = words;
    variables->words[variables->count++] = (struct variable_word){module, offset};
    variables->is_sorted = false;
}

void variables_know(struct variables *variables, ttd_id module, uint64_t begin, uint64_t size)
{
    void *grown = array_grow(variables->known, variables->known_count, &variables->known_capacity,
                             sizeof *variables->known);
    if (!grown)
        return;
    variables->known = grown;
    variables->known[variables->known_count++] = (struct known_variable){module, begin, size};
    variables->is_sorted = false;
}

static int variables_compare(ttd_id a_module, uint64_t a, ttd_id b_module, uint64_t b)
{
    if (a_module != b_module)
        return a_module < b_module ? -1 : 1;
    return a < b ? -1 : a > b;
}

static int variables_compare_words(const void *left, const void *right)
{
    const struct variable_word *a = left, *b = right;
    return variables_compare(a->module, a->offset, b->module, b->offset);
}

static int variables_compare_known(const void *left, const void *right)
{
    const struct known_variable *a = left, *b = right;
    return variables_compare(a->module, a->begin, b->module, b->begin);
}

static bool variables_has(const struct known_variable *variable, const struct variable_word *word)
{
    return variable->module == word->module && word->offset - variable->begin < variable->size;
}

void variables_sort(struct variables *variables)
{
    if (variables->is_sorted || variables->count == 0)
        return;
    qsort(variables->words, variables->count, sizeof *variables->words, variables_compare_words);
    if (variables->known_count > 0)
        qsort(variables->known, variables->known_count, sizeof *variables->known,
              variables_compare_known);
    size_t kept = 0, next = 0; /* the first variable that begins above the word */
    for (size_t i = 0; i < variables->count; i++) {
        const struct variable_word *word = &variables->words[i];
        while (next < variables->known_count &&
               variables_compare(variables->known[next].module, variables->known[next].begin,
                                 word->module, word->offset) <= 0)
            next++;
        bool is_known = next > 0 && variables_has(&variables->known[next - 1], word);
        bool is_same = kept > 0 && variables_compare_words(&variables->words[kept - 1], word) == 0;
        if (!is_known && !is_same)
            variables->words[kept++] = *word;
    }
    variables->count = kept;
    variables->is_sorted = true;
}
