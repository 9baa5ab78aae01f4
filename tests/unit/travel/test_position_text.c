/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "travel/position_text.h"

Test(position_text, parses_percent)
{
    static const struct {
        const char *text;
        double percent;
    } cases[] = {{"0%", 0},
                 {"50%", 50},
                 {"33.3%", 33.3},
                 {".5%", .5},
                 {"1.%", 1},
                 {"99.99999999999999999999999%", 100},
                 {"0.1000000000000000000000000000000000000000%", .1},
                 {"0000000000000000000000000000100%", 100}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct position_spec spec;
        cr_assert(position_spec_parse(cases[i].text, &spec), "%s", cases[i].text);
        cr_assert_eq(spec.kind, POSITION_SPEC_PERCENT, "%s", cases[i].text);
        cr_assert_float_eq(spec.percent, cases[i].percent, 1e-12, "%s", cases[i].text);
    }
}

Test(position_text, parses_times)
{
    static const struct {
        const char *text;
        uint64_t time;
    } cases[] = {{"+0", 0},
                 {"+1.5s", 1500000000},
                 {"+0.25", 250000000},
                 {"+12ms", 12000000},
                 {"+1.5us", 1500},
                 {"+7ns", 7},
                 {"+2min", UINT64_C(120000000000)},
                 {"+1h", UINT64_C(3600000000000)}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct position_spec spec;
        cr_assert(position_spec_parse(cases[i].text, &spec), "%s", cases[i].text);
        cr_assert_eq(spec.kind, POSITION_SPEC_TIME, "%s", cases[i].text);
        cr_assert_eq(spec.time, cases[i].time, "%s", cases[i].text);
    }
}

/* A decimal comma, as strtod() takes one where the locale has it, and other forms of its own. */
Test(position_text, refuses_other_forms)
{
    static const char *const texts[] = {
        "",     "%",     ".%",   "1,5%", "+1,5s",  "1e1%",   "0x10%",   "-1%",
        "+-1s", "inf%",  "nan%", "+inf", "1.2.3%", "100.5%", "+1e400s", "+99999999999s",
        "+1 s", "mark:", "#",    "#-1",  "+",      "1.5"};
    struct position_spec spec = {.kind = POSITION_SPEC_MARK};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        cr_assert_not(position_spec_parse(texts[i], &spec), "%s", texts[i]);
    cr_assert_eq(spec.kind, POSITION_SPEC_MARK);
}

Test(position_text, has_no_number_beyond_all)
{
    char text[1024];
    struct position_spec spec;
    memset(text, '9', sizeof text);
    text[0] = '+';
    text[sizeof text - 1] = '\0';
    cr_assert_not(position_spec_parse(text, &spec));
    text[500] = '.';
    cr_assert_not(position_spec_parse(text, &spec));
}
