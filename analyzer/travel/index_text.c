/* SPDX-License-Identifier: MIT */
#include "travel/index_text.h"

#define ACTIONS (TTD_ACTION_DESTROY + 1)

/* Numbers in records. */
#define KEYFRAME_NUMBERS (9 + ACTIONS)
#define SUMMARY_NUMBERS  (KEYFRAME_NUMBERS + 3)
#define PEAK_NUMBERS     5
#define SUMS_NUMBERS     10

/* ---- Numbers ---- */

/* Of a number. */
#define DIGITS_MAX 20

_Static_assert(SUMMARY_NUMBERS *(DIGITS_MAX + 1) <= HEAP_RECORD_MAX, "room for all numbers");

/* Returns its length. There are many of them: printf() would take most of the time. */
static size_t print_number(uint64_t number, char *text)
{
    char digits[DIGITS_MAX];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    for (size_t i = 0; i < count; i++)
        text[i] = digits[count - 1 - i];
    return count;
}

static size_t print_numbers(uint64_t *const *numbers, size_t count, char text[HEAP_RECORD_MAX])
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        if (i)
            text[size++] = ' ';
        size += print_number(*numbers[i], text + size);
    }
    return size;
}

static bool parse_number(struct ttd_string *text, uint64_t *number)
{
    uint64_t value = 0;
    size_t i = 0;
    for (; i < text->size && text->data[i] >= '0' && text->data[i] <= '9'; i++) {
        unsigned digit = (unsigned)(text->data[i] - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *text = (struct ttd_string){text->data + i, text->size - i};
    *number = value;
    return i;
}

static bool take_blank(struct ttd_string *text)
{
    if (!text->size || *text->data != ' ')
        return false;
    *text = (struct ttd_string){text->data + 1, text->size - 1};
    return true;
}

/* The numbers that a text consists of, and nothing else. */
static bool parse_numbers(struct ttd_string text, uint64_t *const *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if ((i && !take_blank(&text)) || !parse_number(&text, numbers[i]))
            return false;
    return !text.size;
}

/* ---- Keyframes ---- */

/* The numbers of a keyframe in their order; returns how many there are. */
static size_t list_numbers(struct heap_keyframe *keyframe, uint64_t *numbers[SUMMARY_NUMBERS])
{
    struct heap_counts *counts = &keyframe->counts;
    size_t n = 0;
    numbers[n++] = &keyframe->position.sequence;
    numbers[n++] = &keyframe->position.steps;
    numbers[n++] = &keyframe->blocks;
    numbers[n++] = &keyframe->next;
    numbers[n++] = &counts->events;
    numbers[n++] = &counts->failed;
    numbers[n++] = &counts->unfinished;
    numbers[n++] = &counts->unknown_releases;
    numbers[n++] = &counts->overlaps;
    for (size_t i = 0; i < ACTIONS; i++)
        numbers[n++] = &counts->actions[i];
    if (!keyframe->is_summary)
        return n;
    numbers[n++] = &keyframe->sums;
    numbers[n++] = &keyframe->end.sequence;
    numbers[n++] = &keyframe->end.steps;
    return n;
}

size_t heap_keyframe_print(const struct heap_keyframe *keyframe, char text[HEAP_RECORD_MAX])
{
    struct heap_keyframe copy = *keyframe;
    uint64_t *numbers[SUMMARY_NUMBERS];
    size_t count = list_numbers(&copy, numbers);
    return print_numbers(numbers, count, text);
}

/* Whether so much can come of so many events. */
static bool is_possible(const struct heap_keyframe *keyframe)
{
    const struct heap_counts *counts = &keyframe->counts;
    return counts->unknown_releases <= counts->events && counts->overlaps <= counts->events;
}

bool heap_keyframe_parse(struct ttd_string text, bool is_summary, struct heap_keyframe *keyframe)
{
    uint64_t *numbers[SUMMARY_NUMBERS];
    *keyframe = (struct heap_keyframe){.is_summary = is_summary};
    size_t count = list_numbers(keyframe, numbers);
    return parse_numbers(text, numbers, count) && ttd_position_is_valid(keyframe->position) &&
           is_possible(keyframe);
}

/* ---- The peak ---- */

static void list_peak_numbers(struct heap_peak *peak, uint64_t *numbers[PEAK_NUMBERS])
{
    numbers[0] = &peak->position.sequence;
    numbers[1] = &peak->position.steps;
    numbers[2] = &peak->bytes.high;
    numbers[3] = &peak->bytes.low;
    numbers[4] = &peak->blocks;
}

size_t heap_peak_print(const struct heap_peak *peak, char text[HEAP_RECORD_MAX])
{
    struct heap_peak copy = *peak;
    uint64_t *numbers[PEAK_NUMBERS];
    list_peak_numbers(&copy, numbers);
    return print_numbers(numbers, PEAK_NUMBERS, text);
}

bool heap_peak_parse(struct ttd_string text, struct heap_peak *peak)
{
    uint64_t *numbers[PEAK_NUMBERS];
    list_peak_numbers(peak, numbers);
    return parse_numbers(text, numbers, PEAK_NUMBERS) && ttd_position_is_valid(peak->position);
}

/* ---- Sums ---- */

/* Those of its numbers that are not of 64 bits. */
struct small_numbers {
    uint64_t table;
    uint64_t stack;
    uint64_t other;
    uint64_t api;
};

static void list_sums_numbers(struct heap_group *sum, struct small_numbers *small,
                              uint64_t *numbers[SUMS_NUMBERS])
{
    numbers[0] = &small->table;
    numbers[1] = &small->stack;
    numbers[2] = &small->other;
    numbers[3] = &small->api;
    numbers[4] = &sum->blocks;
    numbers[5] = &sum->bytes;
    numbers[6] = &sum->first.sequence;
    numbers[7] = &sum->first.steps;
    numbers[8] = &sum->last.sequence;
    numbers[9] = &sum->last.steps;
}

size_t heap_sums_print(size_t table, const struct heap_group *sum, char text[HEAP_RECORD_MAX])
{
    struct heap_group copy = *sum;
    /* Positions are told only by stack. */
    if (table) {
        copy.first = ttd_position_min();
        copy.last = ttd_position_min();
    }
    struct small_numbers small = {table, sum->key.stack, sum->key.other, sum->api};
    uint64_t *numbers[SUMS_NUMBERS];
    list_sums_numbers(&copy, &small, numbers);
    return print_numbers(numbers, SUMS_NUMBERS, text);
}

/* Whether blocks of a class of sizes can have so many bytes. */
static bool fits_class(const struct heap_group *sum)
{
    uint64_t first, last, least, most;
    if (sum->key.other > HEAP_CLASS_MAX)
        return false;
    heap_class_range(sum->key.other, &first, &last);
    if (__builtin_mul_overflow(first, sum->blocks, &least))
        least = UINT64_MAX;
    if (__builtin_mul_overflow(last, sum->blocks, &most))
        most = UINT64_MAX;
    return sum->bytes >= least && sum->bytes <= most;
}

/* Whether there can be such a sum. */
static bool is_sum(size_t table, const struct heap_group *sum)
{
    ttd_id unused = table == HEAP_BY_STACK ? sum->key.other : sum->key.stack;
    return sum->blocks && !unused && !heap_group_is_unknown(sum) &&
           (table != HEAP_BY_SIZE || fits_class(sum));
}

bool heap_sums_parse(struct ttd_string text, size_t *table, struct heap_group *sum)
{
    struct small_numbers small = {0};
    uint64_t *numbers[SUMS_NUMBERS];
    list_sums_numbers(sum, &small, numbers);
    if (!parse_numbers(text, numbers, SUMS_NUMBERS) || small.table >= HEAP_TABLES ||
        small.stack > UINT32_MAX || small.other > UINT32_MAX || small.api > UINT8_MAX)
        return false;
    sum->key = (struct heap_key){(ttd_id)small.stack, (ttd_id)small.other};
    sum->api = (uint8_t)small.api;
    *table = (size_t)small.table;
    return is_sum(*table, sum);
}
