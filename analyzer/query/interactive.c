/* SPDX-License-Identifier: MIT */
#include "query/query.h"

#include <signal.h>
#include <locale.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef HAS_LIBEDIT
#include <histedit.h>
#endif

#include "cli/process/limits.h"
#include "cli/process/message.h"

/** Lines that can be recalled; and the largest statement, as SQLite's limit. */
#define INTERACTIVE_LINES 200
#define INTERACTIVE_MAX   100000

static const char interactive_help[] =
    "A statement is one SELECT and ends with a semicolon; it may have several lines.\n"
    "  .schema  the tables with their columns\n"
    "  .help    this text\n"
    "  .quit    leave, as the end of the input does\n"
    "Control-C ends a statement that takes too long, and drops one that is being typed.\n";

struct interactive {
    bool is_terminal;
    /** The statement so far, and its size without the NUL. */
    char *statement;
    size_t size;
    char *line;
    size_t line_capacity;
#ifdef HAS_LIBEDIT
    EditLine *edit;
    History *history;
    HistEvent event;
#endif
};

static const char *interactive_prompt(const struct interactive *input)
{
    return input->size ? "   ...> " : "query> ";
}

#ifdef HAS_LIBEDIT

static char *interactive_edit_prompt(EditLine *edit)
{
    static char prompt[16];
    void *input = NULL;
    el_get(edit, EL_CLIENTDATA, &input);
    snprintf(prompt, sizeof prompt, "%s", interactive_prompt(input));
    return prompt;
}

/* Reads a key; a signal ends the line. */
static int interactive_key(EditLine *edit, wchar_t *key)
{
    mbstate_t state = {0};
    char bytes[8];
    FILE *in = NULL;
    el_get(edit, EL_GETFP, 0, &in);
    for (size_t count = 0; count < sizeof bytes;) {
        ssize_t got = read(fileno(in), bytes + count, 1);
        if (got <= 0)
            return got < 0 ? -1 : 0;
        size_t used = mbrtowc(key, bytes + count, 1, &state);
        count++;
        if (used != (size_t)-2 && used != (size_t)-1)
            return 1;
        if (used == (size_t)-1)
            break;
    }
    *key = L'?';
    return 1;
}

/* Prepares editing for a terminal. The user's file of key bindings is not read. */
static void interactive_init(struct interactive *input)
{
    /* The characters of the terminal; numbers keep their form. */
    setlocale(LC_CTYPE, "");
    input->edit = el_init("ttdanalyze", stdin, stdout, stderr);
    input->history = history_init();
    if (!input->edit)
        return;
    el_set(input->edit, EL_CLIENTDATA, input);
    el_set(input->edit, EL_PROMPT, interactive_edit_prompt);
    el_set(input->edit, EL_EDITOR, "emacs");
    el_set(input->edit, EL_GETCFN, interactive_key);
    if (!input->history)
        return;
    history(input->history, &input->event, H_SETSIZE, INTERACTIVE_LINES);
    el_set(input->edit, EL_HIST, history, input->history);
}

static void interactive_free_editor(struct interactive *input)
{
    if (input->edit)
        el_end(input->edit);
    if (input->history)
        history_end(input->history);
}

static const char *interactive_edited(struct interactive *input, int *count)
{
    const char *line = el_gets(input->edit, count);
    if (line && *count > 1 && input->history)
        history(input->history, &input->event, H_ENTER, line);
    return line;
}

static bool interactive_edits(const struct interactive *input)
{
    return input->edit != NULL;
}

#else

static void interactive_init(struct interactive *input)
{
    (void)input;
}

static void interactive_free_editor(struct interactive *input)
{
    (void)input;
}

static const char *interactive_edited(struct interactive *input, int *count)
{
    (void)input;
    (void)count;
    return NULL;
}

static bool interactive_edits(const struct interactive *input)
{
    (void)input;
    return false;
}

#endif

/* Reads a line with its end. NULL at the end of the input, and after a key that interrupts. */
static const char *interactive_line(struct interactive *input, size_t *size)
{
    int count = 0;
    if (interactive_edits(input)) {
        const char *line = interactive_edited(input, &count);
        *size = line && count > 0 ? (size_t)count : 0;
        return *size ? line : NULL;
    }
    if (input->is_terminal) {
        fputs(interactive_prompt(input), stdout);
        fflush(stdout);
    }
    ssize_t got = getline(&input->line, &input->line_capacity, stdin);
    *size = got > 0 ? (size_t)got : 0;
    if (got < 0 && !feof(stdin))
        clearerr(stdin);
    return got > 0 ? input->line : NULL;
}

/* Adds a line to the statement. False if it becomes too long. */
static bool interactive_add(struct interactive *input, const char *line, size_t size)
{
    if (input->size + size > INTERACTIVE_MAX)
        return false;
    char *longer = realloc(input->statement, input->size + size + 1);
    if (!longer)
        return false;
    input->statement = longer;
    memcpy(longer + input->size, line, size);
    input->size += size;
    longer[input->size] = '\0';
    return true;
}

static bool interactive_is_blank(const char *text)
{
    return !text[strspn(text, " \t\r\n;")];
}

/* Obeys a line with a command. False for `.quit`. */
static bool interactive_command(char *line, interactive_answer *answer, void *context)
{
    line[strcspn(line, " \t\r\n")] = '\0';
    if (strcmp(line, ".quit") == 0 || strcmp(line, ".exit") == 0)
        return false;
    if (strcmp(line, ".schema") == 0)
        answer(context, line);
    else if (strcmp(line, ".help") == 0)
        fputs(interactive_help, stdout);
    else
        message("query: no such command: %s; '.help' lists them", line);
    fflush(stdout);
    return true;
}

/* Answers a complete statement. False to leave. */
static bool interactive_obey(struct interactive *input, interactive_answer *answer, void *context)
{
    bool goes_on = true;
    if (input->statement[0] == '.')
        goes_on = interactive_command(input->statement, answer, context);
    else if (!interactive_is_blank(input->statement) && !sqlite3_complete(input->statement))
        return true;
    else if (!interactive_is_blank(input->statement))
        answer(context, input->statement);
    input->size = 0;
    return goes_on;
}

/* Reads a line while a key can interrupt it. */
static const char *interactive_wait(struct interactive *input, size_t *size, bool *is_interrupted)
{
    interrupt_begin(&(struct interrupt_work){.is_for_user = true});
    const char *line = interactive_line(input, size);
    *is_interrupted = interrupt_cause() == INTERRUPT_USER;
    interrupt_end();
    return line;
}

static void interactive_loop(struct interactive *input, interactive_answer *answer, void *context)
{
    bool goes_on = true, is_interrupted = false;
    while (goes_on) {
        size_t size = 0;
        const char *line = interactive_wait(input, &size, &is_interrupted);
        if (is_interrupted) {
            input->size = 0;
            fputs("\n", stdout);
        } else if (!line) {
            break;
        } else if (!interactive_add(input, line, size)) {
            message("query: the statement is too long");
            input->size = 0;
        } else {
            goes_on = interactive_obey(input, answer, context);
        }
    }
    /* The last statement of a file may lack its semicolon. */
    if (goes_on && input->size && !interactive_is_blank(input->statement))
        answer(context, input->statement);
    if (goes_on && input->is_terminal)
        fputs("\n", stdout);
}

int interactive_read(interactive_answer *answer, void *context)
{
    struct interactive input = {.is_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)};
    struct sigaction ignored = {.sa_handler = SIG_IGN}, before;
    sigemptyset(&ignored.sa_mask);
    /* Between two pieces of work. */
    sigaction(SIGINT, &ignored, &before);
    if (input.is_terminal)
        interactive_init(&input);
    interactive_loop(&input, answer, context);
    interactive_free_editor(&input);
    sigaction(SIGINT, &before, NULL);
    free(input.statement);
    free(input.line);
    return output_end_standard();
}
