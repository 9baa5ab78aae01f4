/* SPDX-License-Identifier: MIT */
/* Writes a script with which a shell completes command lines of ttdanalyze, from its tables of
 * commands and options: `completion bash`, `completion zsh` or `completion fish`. Run at build
 * time.
 */
#include <stdio.h>
#include <string.h>

#include "cli/options/command.h"

/* Writes the values of an option that several commands have. False for a file, for a value of any
 * other kind, and for an option that the command has for itself. */
static bool completion_write_values(const struct command *command, const char *option)
{
    bool has_trees = command->shares & COMMAND_GROUPS;
    int count = command->shares & COMMAND_CLASSES ? VIEW_BY_CLASS + 1 : VIEW_BY_CLASS;
    if (strcmp(option, "format") == 0) {
        printf("text json csv%s", has_trees ? " folded" : "");
        return true;
    }
    if (strcmp(option, "tree") == 0 && has_trees) {
        printf("top-down bottom-up");
        return true;
    }
    if (strcmp(option, "by") != 0 || !(command->shares & COMMAND_KEYS))
        return false;
    for (int key = VIEW_BY_STACK; key < count; key++)
        printf("%s%s", key == VIEW_BY_STACK ? "" : " ", view_key_name((enum view_key)key));
    return true;
}

static void completion_write_commands(const char *separator)
{
    for (size_t i = 0; command_table[i].command; i++)
        printf("%s%s", i ? separator : "", command_table[i].command->name);
}

/* Writes the options of a command as words. */
static void completion_write_options(const struct command *command)
{
    struct option options[COMMAND_OPTIONS_MAX];
    size_t count = command_list_options(options, command);
    for (size_t i = 0; i < count; i++)
        printf("%s--%s", i ? " " : "", options[i].name);
}

/* Writes a text between single quotes, with `escaped` in place of a quote, and a backslash before a
 * colon, which zsh takes for the end of a name. */
static void completion_write_quoted(const char *text, const char *escaped, bool has_colons)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs(escaped, stdout);
        else
            printf("%s%c", *text == ':' && has_colons ? "\\" : "", *text);
    }
}

/* Writes a branch for each command, which sets the lists of its options and of their values, each
 * between `before` and `after`. */
static void completion_write_branches(const char *before, const char *after)
{
    static const char *const values[] = {"format", "by", "tree"};
    for (size_t i = 0; command_table[i].command; i++) {
        printf("    %s)\n        options=%s", command_table[i].command->name, before);
        completion_write_options(command_table[i].command);
        puts(after);
        for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
            printf("        %s=%s", values[k], before);
            completion_write_values(command_table[i].command, values[k]);
            puts(after);
        }
        puts("        ;;");
    }
}

static void completion_write_bash(void)
{
    fputs("# bash completion for ttdanalyze\n"
          "_ttdanalyze()\n"
          "{\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    local options= format= by= tree= words=\n"
          "    COMPREPLY=()\n"
          "    if [[ $word == '=' ]]; then\n"
          "        word=\n"
          "    elif [[ $before == '=' ]]; then\n"
          "        before=${COMP_WORDS[COMP_CWORD-2]}\n"
          "    fi\n"
          "    if [[ $COMP_CWORD -eq 1 ]]; then\n"
          "        COMPREPLY=($(compgen -W 'help ",
          stdout);
    completion_write_commands(" ");
    fputs("' -- \"$word\"))\n"
          "        return\n"
          "    fi\n"
          "    case ${COMP_WORDS[1]} in\n",
          stdout);
    completion_write_branches("'", "'");
    fputs("    esac\n"
          "    case $before in\n"
          "    -f|--format) words=$format ;;\n"
          "    --by) words=$by ;;\n"
          "    --tree) words=$tree ;;\n"
          "    esac\n"
          "    if [[ -z $words && $word == -* ]]; then\n"
          "        words=$options\n"
          "    fi\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
          "}\n"
          "complete -o bashdefault -o default -F _ttdanalyze ttdanalyze\n",
          stdout);
}

static void completion_write_zsh(void)
{
    fputs("#compdef ttdanalyze\n"
          "local -a commands options format by tree\n"
          "commands=(\n",
          stdout);
    for (size_t i = 0; command_table[i].command; i++) {
        printf("    '%s:", command_table[i].command->name);
        completion_write_quoted(command_table[i].command->summary, "'\\''", true);
        puts("'");
    }
    fputs(")\n"
          "if (( CURRENT == 2 )); then\n"
          "    _describe command commands\n"
          "    _files\n"
          "    return\n"
          "fi\n"
          "case $words[2] in\n",
          stdout);
    completion_write_branches("(", ")");
    fputs("esac\n"
          "case $words[CURRENT-1] in\n"
          "    -f|--format) compadd -a format; return ;;\n"
          "    --by) compadd -a by; return ;;\n"
          "    --tree) compadd -a tree; return ;;\n"
          "esac\n"
          "if [[ $PREFIX == -* ]]; then\n"
          "    compadd -a options\n"
          "else\n"
          "    _files\n"
          "fi\n",
          stdout);
}

/* Writes an option of a command, with its values if they are known. */
static void completion_write_fish_option(const struct command *command, const struct option *option)
{
    printf("complete -c ttdanalyze -n '__fish_seen_subcommand_from %s' -l %s", command->name,
           option->name);
    if (option->has_arg == no_argument) {
        puts("");
        return;
    }
    printf(" -r -a '");
    completion_write_values(command, option->name);
    puts("'");
}

static void completion_write_fish(void)
{
    puts("# fish completion for ttdanalyze");
    for (size_t i = 0; command_table[i].command; i++) {
        const struct command *command = command_table[i].command;
        struct option options[COMMAND_OPTIONS_MAX];
        size_t count = command_list_options(options, command);
        printf("complete -c ttdanalyze -n __fish_use_subcommand -a %s -d '", command->name);
        completion_write_quoted(command->summary, "\\'", false);
        puts("'");
        for (size_t k = 0; k < count; k++)
            completion_write_fish_option(command, &options[k]);
    }
}

int main(int count, char **arguments)
{
    const char *shell = count == 2 ? arguments[1] : "";
    if (strcmp(shell, "bash") == 0)
        completion_write_bash();
    else if (strcmp(shell, "zsh") == 0)
        completion_write_zsh();
    else if (strcmp(shell, "fish") == 0)
        completion_write_fish();
    else
        return 2;
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
