/* SPDX-License-Identifier: MIT */
/* Positions as text, and the names of values. */
#include <string.h>

#include <criterion/criterion.h>

#include <ttdtrace/reader.h>
#include <ttdtrace/version.h>

Test(text, of_a_position_is_parsed_as_that_position)
{
    static const struct {
        struct ttd_position position;
        const char *text;
    } good[] = {{{0, 0}, "0:0"},
                {{0x1A29, 0x3F7}, "1A29:3F7"},
                {{TTD_SEQUENCE_MAX, UINT64_MAX}, "FFFFFFFFFFFFFFFE:FFFFFFFFFFFFFFFF"}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char out[TTD_POSITION_TEXT];
        struct ttd_position position;
        cr_assert_eq(ttd_position_format(good[i].position, out), strlen(good[i].text));
        cr_assert_str_eq(out, good[i].text);
        cr_assert(ttd_position_parse(out, &position));
        cr_assert_eq(ttd_position_compare(position, good[i].position), 0);
    }
}

Test(text, that_is_no_position_is_refused_and_changes_nothing)
{
    static const char *const bad[] = {"",
                                      ":",
                                      "1",
                                      "1:",
                                      ":1",
                                      "1:2 ",
                                      " 1:2",
                                      "1:-2",
                                      "g:1",
                                      "0x1:2",
                                      "+1:2",
                                      "1:2:3",
                                      "FFFFFFFFFFFFFFFF:0",
                                      "10000000000000000:0",
                                      "0:10000000000000000",
                                      "Invalid"};
    struct ttd_position position = {7, 8};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_not(ttd_position_parse(bad[i], &position), "\"%s\"", bad[i]);
    cr_assert_eq(position.sequence, 7);
    cr_assert_eq(position.steps, 8);
}

Test(text, of_the_invalid_position_is_a_word)
{
    char out[TTD_POSITION_TEXT];
    cr_assert_eq(ttd_position_format(ttd_position_invalid(), out), 7);
    cr_assert_str_eq(out, "Invalid");
}

Test(text, of_a_value_is_its_name_and_that_of_an_unknown_one_says_so)
{
    cr_assert_str_eq(ttd_action_name(TTD_ACTION_REALLOC), "ReAlloc");
    cr_assert_str_eq(ttd_action_name((enum ttd_action)9), "?");
    cr_assert_str_eq(ttd_api_name(TTD_API_NEW_ARRAY), "operator new[]");
    cr_assert_str_eq(ttd_api_name(14), "?");
    cr_assert_str_eq(ttd_api_name(256), "?");
    cr_assert_str_eq(ttd_kind_name(TTD_KIND_EVENTS), "events");
    cr_assert_str_eq(ttd_kind_name(99), "?");
    cr_assert_str_eq(ttd_status_text(TTD_ERROR_CORRUPT), "corrupt");
    cr_assert_str_eq(ttd_status_text((enum ttd_status)99), "unknown status");
    cr_assert_str_eq(ttd_version(), TTD_VERSION_STRING);
}
