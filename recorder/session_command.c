/* SPDX-License-Identifier: MIT */
#include "subcommands.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch.h"
#include "messages.h"
#include "options.h"
#include "session/client.h"
#include "session/daemon.h"
#include "session/session_messages.h"

/* The session of `ttdrecord enable`. */
#define ENABLED_SESSION "by-name"

enum { WORDS_MAX = SESSION_TEXT_MAX };

/* The arguments of a command: changes, and the rest for options_parse(). */
struct session_arguments {
    const char *session;
    char words[WORDS_MAX]; /* see struct session_request */
    size_t size;
    char **left;
    int left_count;
    bool has_output;
    bool watches, is_json;
};

static const char *const actions[] = {"start", "update", "status", "snapshot",
                                      "pause", "resume", "stop",   "list"};
enum {
    ACTION_START,
    ACTION_UPDATE,
    ACTION_STATUS,
    ACTION_SNAPSHOT,
    ACTION_PAUSE,
    ACTION_RESUME,
    ACTION_STOP,
    ACTION_LIST,
    ACTIONS
};

bool session_is_command(int argc, char **argv)
{
    return argc >= 2 && (strcmp(argv[1], "session") == 0 || strcmp(argv[1], "enable") == 0 ||
                         strcmp(argv[1], "query") == 0 || strcmp(argv[1], "disable") == 0);
}

static bool session_change_add(struct session_arguments *arguments, const char *prefix,
                               const char *value)
{
    size_t size = strlen(prefix) + strlen(value) + 1;
    if (size > sizeof arguments->words - arguments->size) {
        message("too many processes and names at a time");
        return false;
    }
    sprintf(arguments->words + arguments->size, "%s%s", prefix, value);
    arguments->size += size;
    return true;
}

static bool session_change_process(struct session_arguments *arguments, const char *prefix,
                                   const char *value)
{
    char *end;
    unsigned long pid = strtoul(value, &end, 10);
    if (strspn(value, "0123456789") != strlen(value) || pid == 0 || pid > INT32_MAX) {
        message("'%s' is no process id", value);
        return false;
    }
    if (prefix[0] == '+')
        suspend_await((uint32_t)pid);
    return session_change_add(arguments, prefix, value);
}

/* Adds a program, by the path of its file. One that is to be removed may be gone. */
static bool session_change_program(struct session_arguments *arguments, const char *prefix,
                                   const char *value, int *status)
{
    char path[LAUNCH_PATH_MAX];
    if (prefix[0] == '-' && value[0] == '/' && access(value, F_OK) != 0)
        return session_change_add(arguments, prefix, value);
    *status = launch_find(value, path, NULL);
    if (*status != 0)
        return false;
    char *resolved = realpath(path, NULL);
    bool is_added = resolved && session_change_add(arguments, prefix, resolved);
    free(resolved);
    return is_added;
}

/* Takes an option with a value of ours. Returns 1 if it is one, 0 if not, and -1 after a message.
 */
static int session_take_change(struct session_arguments *arguments, char ***argument,
                               const char *by_name, int *status)
{
    static const struct {
        const char *name, *prefix;
    } changes[] = {
        {"--pid", "+p"}, {"--remove-pid", "-p"}, {"--name", "+n"}, {"--remove-name", "-n"}};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        size_t length = strlen(changes[i].name);
        const char *text = **argument, *value = NULL;
        if (strncmp(text, changes[i].name, length) != 0)
            continue;
        if (text[length] == '=')
            value = text + length + 1;
        else if (text[length] == '\0')
            value = *++*argument;
        else
            continue;
        if (!value) {
            message("option '%s' needs an argument", changes[i].name);
            return -1;
        }
        bool is_taken = changes[i].prefix[1] == 'p'
                            ? session_change_process(arguments, changes[i].prefix, value)
                            : session_change_program(
                                  arguments, by_name ? by_name : changes[i].prefix, value, status);
        return is_taken ? 1 : -1;
    }
    return 0;
}

/* Splits the arguments behind the session's name. `by_name` is the change that --name asks for;
 * NULL for the usual one. Returns an exit status. */
static int session_split(struct session_arguments *arguments, char **argv, const char *by_name)
{
    int count = 0, status = EXIT_RECORDER;
    while (argv[count])
        count++;
    arguments->left = calloc((size_t)count + 3, sizeof *arguments->left);
    if (!arguments->left)
        return EXIT_MEMORY;
    arguments->left[arguments->left_count++] = (char *)(uintptr_t) "ttdrecord";
    for (char **argument = argv; *argument; argument++) {
        int taken = session_take_change(arguments, &argument, by_name, &status);
        if (taken < 0)
            return status;
        if (taken > 0)
            continue;
        arguments->has_output = arguments->has_output || strncmp(*argument, "-o", 2) == 0 ||
                                strncmp(*argument, "--output", 8) == 0;
        arguments->left[arguments->left_count++] = *argument;
    }
    return EXIT_SUCCESS;
}

/* Whether nothing is left that is no change. */
static bool session_has_no_more(const struct session_arguments *arguments)
{
    if (arguments->left_count == 1)
        return true;
    message("'%s' is not an option of this command", arguments->left[1]);
    return false;
}

static int start_session(struct session_arguments *arguments, bool ends_unused)
{
    struct options options;
    arguments->left[arguments->left_count] = (char *)(uintptr_t)arguments->session;
    options_parse(arguments->left_count + 1, arguments->left, false, &options);
    return session_start(arguments->session,
                         arguments->has_output ? options.output : arguments->session, &options,
                         ends_unused);
}

static bool begins_recorders(const struct session_arguments *arguments)
{
    for (const char *word = arguments->words; word < arguments->words + arguments->size;
         word += strlen(word) + 1)
        if (strncmp(word, "+p", 2) == 0 || strncmp(word, "+n", 2) == 0)
            return true;
    return false;
}

/* Makes the changes in the words, and waits until the recorders are ready. */
static int session_make_changes(const struct session_arguments *arguments)
{
    if (arguments->size == 0)
        return EXIT_SUCCESS;
    int connected = client_connect(arguments->session);
    if (connected < 0)
        return EXIT_NO_SESSION;
    int status = client_update(connected, arguments->words, arguments->size);
    if (begins_recorders(arguments)) {
        int refused = client_await(connected, arguments->words, arguments->size);
        status = status == EXIT_SUCCESS ? refused : status;
    }
    close(connected);
    return status;
}

static int session_run_start(struct session_arguments *arguments)
{
    if (!launch_is_possible())
        return EXIT_RECORDER;
    int status = start_session(arguments, false);
    return status == EXIT_SUCCESS ? session_make_changes(arguments) : status;
}

/* Changes of recordings that run: of the interval of snapshots, and of stacks. */
struct session_changes {
    bool has_interval, has_stacks;
    uint64_t interval, stacks; /* see CONTROL_SNAPSHOTS, CONTROL_STACKS */
};

/* Returns the value of an option that stands at `*argument`, which is moved to it if it stands by
 * itself; NULL if it is another option, or has none. */
static const char *session_option_value(char ***argument, const char *name)
{
    size_t length = strlen(name);
    const char *text = **argument;
    if (strncmp(text, name, length) != 0)
        return NULL;
    if (text[length] == '=')
        return text + length + 1;
    return text[length] == '\0' && (*argument)[1] ? *++*argument : NULL;
}

/* Takes the options that can be changed, and adds them to the changes. Returns false after a
 * message. */
static bool session_take_changes(struct session_arguments *arguments,
                                 struct session_changes *changes)
{
    char text[32];
    for (char **argument = arguments->left + 1; *argument; argument++) {
        const char *value;
        if ((value = session_option_value(&argument, "--snapshot-every"))) {
            changes->interval = strcmp(value, "off") == 0 ? 0 : options_seconds(value);
            changes->has_interval = true;
        } else if ((value = session_option_value(&argument, "--stacks"))) {
            changes->stacks = changes->stacks >> 32 << 32 | options_stackless(value);
            changes->has_stacks = true;
        } else if ((value = session_option_value(&argument, "--stack-depth"))) {
            uint64_t depth = strcmp(value, "off") == 0 ? 0 : options_stack_depth(value);
            changes->stacks = depth << 32 | (uint32_t)changes->stacks;
            changes->has_stacks = true;
        } else {
            message("'update' needs --pid, --remove-pid, --name, --remove-name, --snapshot-every "
                    "SECONDS, --stacks KINDS or --stack-depth N, and has no other options");
            return false;
        }
    }
    snprintf(text, sizeof text, "%llu", (unsigned long long)changes->interval);
    if (changes->has_interval && !session_change_add(arguments, "+s", text))
        return false;
    snprintf(text, sizeof text, "%llu", (unsigned long long)changes->stacks);
    return !changes->has_stacks || session_change_add(arguments, "+k", text);
}

static int session_run_update(struct session_arguments *arguments)
{
    struct session_changes changes = {.has_interval = false};
    if (arguments->left_count == 1 && arguments->size == 0)
        arguments->left[1] = (char *)(uintptr_t) "";
    if (!session_take_changes(arguments, &changes))
        return EXIT_RECORDER;
    int status = session_make_changes(arguments);
    if (status == EXIT_NO_SESSION)
        return status;
    int changed = EXIT_SUCCESS;
    if (changes.has_interval)
        changed = status_each(arguments->session, CONTROL_SNAPSHOTS, &changes.interval);
    if (changes.has_stacks && changed == EXIT_SUCCESS)
        changed = status_each(arguments->session, CONTROL_STACKS, &changes.stacks);
    return status == EXIT_SUCCESS ? changed : status;
}

static int session_run_status(const struct session_arguments *arguments)
{
    bool watches = false, is_json = false;
    for (int i = 1; i < arguments->left_count; i++) {
        const char *option = arguments->left[i];
        if (strcmp(option, "--watch") == 0)
            watches = true;
        else if (strcmp(option, "--format=json") == 0)
            is_json = true;
        else if (strcmp(option, "--format") == 0 && i + 1 < arguments->left_count &&
                 strcmp(arguments->left[i + 1], "json") == 0)
            is_json = ++i > 0;
        else {
            message("'%s' is not an option of this command: it has --watch and --format json",
                    option);
            return EXIT_RECORDER;
        }
    }
    return status_print(arguments->session, watches, is_json);
}

/* Asks for a command that every process's recorder gets. */
static int session_run_each(const struct session_arguments *arguments, enum control_command command)
{
    return session_has_no_more(arguments) ? status_each(arguments->session, command, NULL)
                                          : EXIT_RECORDER;
}

static int session_run_action(int action, struct session_arguments *arguments)
{
    switch (action) {
    case ACTION_START:
        return session_run_start(arguments);
    case ACTION_UPDATE:
        return session_run_update(arguments);
    case ACTION_STATUS:
        return session_run_status(arguments);
    case ACTION_SNAPSHOT:
        return session_run_each(arguments, CONTROL_SNAPSHOT);
    case ACTION_PAUSE:
        return session_run_each(arguments, CONTROL_PAUSE);
    case ACTION_RESUME:
        return session_run_each(arguments, CONTROL_RESUME);
    default:
        return session_has_no_more(arguments) ? client_stop(arguments->session) : EXIT_RECORDER;
    }
}

static int run_session(char **argv)
{
    static struct session_arguments arguments;
    int action = 0;
    while (action < ACTIONS && (!argv[0] || strcmp(argv[0], actions[action]) != 0))
        action++;
    if (action == ACTIONS) {
        message("'session' needs start, update, status, snapshot, pause, resume, stop or list");
        return EXIT_RECORDER;
    }
    if (action == ACTION_LIST)
        return client_list();
    if (!argv[1] || !place_is_name(argv[1])) {
        message("a session needs a name of letters, digits and '+-_.'");
        return EXIT_RECORDER;
    }
    arguments.session = argv[1];
    int status = session_split(&arguments, argv + 2, NULL);
    if (status == EXIT_SUCCESS)
        status = session_run_action(action, &arguments);
    free(arguments.left);
    return status;
}

/* Says how a program can be recorded by name without the permission. */
static void session_print_advice(const struct session_arguments *arguments)
{
    char self[LAUNCH_PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    self[size > 0 ? size : 0] = '\0';
    for (const char *word = arguments->words; word < arguments->words + arguments->size;
         word += strlen(word) + 1)
        printf("# Instead, start it by the recorder, as in a drop-in of its systemd service:\n"
               "[Service]\nExecStart=\nExecStart=%s -q -o %%t/%%N.bin -- %s ARGUMENTS\n",
               self, word + 2);
}

static int session_run_enable(struct session_arguments *arguments)
{
    struct names names;
    if (!launch_is_possible())
        return EXIT_RECORDER;
    int error = names_open(&names);
    names_close(&names);
    if (error != 0) {
        message("programs cannot be recorded by name here: %s%s", strerror(error),
                error == EPERM ? "; that needs root, with CAP_SYS_ADMIN" : "");
        session_print_advice(arguments);
        return EXIT_DENIED;
    }
    int status = start_session(arguments, true);
    if (status == EXIT_EXISTS && arguments->left_count > 1) {
        message("programs are recorded by name already, with options of their own: without "
                "options the program is added; or 'ttdrecord disable' first");
        return status;
    }
    if (status != EXIT_SUCCESS && status != EXIT_EXISTS)
        return status;
    return session_make_changes(arguments);
}

static int session_run_disable(struct session_arguments *arguments)
{
    if (!session_has_no_more(arguments))
        return EXIT_RECORDER;
    return arguments->size == 0 ? client_stop(ENABLED_SESSION) : session_make_changes(arguments);
}

static int session_run_by_name(const char *command, char **argv)
{
    static struct session_arguments arguments = {.session = ENABLED_SESSION};
    int status = session_split(&arguments, argv, strcmp(command, "enable") == 0 ? "+e" : "-n");
    if (status == EXIT_SUCCESS && arguments.size > 0 && strcmp(command, "query") == 0) {
        message("'query' has no names");
        status = EXIT_RECORDER;
    } else if (status == EXIT_SUCCESS && strcmp(command, "query") == 0)
        status = session_run_status(&arguments);
    else if (status == EXIT_SUCCESS && strcmp(command, "disable") == 0)
        status = session_run_disable(&arguments);
    else if (status == EXIT_SUCCESS && arguments.size == 0) {
        message("'enable' needs --name PROGRAM");
        status = EXIT_RECORDER;
    } else if (status == EXIT_SUCCESS)
        status = session_run_enable(&arguments);
    free(arguments.left);
    return status;
}

int session_command(int argc, char **argv)
{
    (void)argc;
    return strcmp(argv[1], "session") == 0 ? run_session(argv + 2)
                                           : session_run_by_name(argv[1], argv + 2);
}
