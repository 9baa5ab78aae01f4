/* SPDX-License-Identifier: MIT */
/* Writes a script with which a shell completes command lines of ttdrecord, from its table of
 * options: `record_completion bash`, `record_completion zsh` or `record_completion fish`. Run at
 * build time.
 */
#include <stdio.h>
#include <string.h>

#include "options.h"

#define COMMANDS                                                                                   \
    "attach detach suspend resume status snapshot pause mark snapshots session enable disable "    \
    "query symbolize"
#define SESSION_WORDS "start update status snapshot pause resume stop"

/* Returns the words that an option takes; "" for a value of another kind. */
static const char *completion_values(const char *option)
{
    static const char *const values[][2] = {
        {"stacks", "alloc realloc free all none"},
        {"when-full", "wait lose"},
        {"snapshot", "references blocks memory"},
        {"snapshot-at-exit", "references blocks memory none"},
        {"fail-on", "leaks errors leaks,errors"},
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        if (strcmp(option, values[i][0]) == 0)
            return values[i][1];
    return "";
}

static bool completion_takes_file(const char *option)
{
    return strcmp(option, "output") == 0;
}

/* Writes the names of the options, or of those only that take an argument. */
static void completion_put_options(bool has_arguments_only)
{
    const char *separator = "";
    for (const struct option *option = options_long; option->name; option++) {
        if (has_arguments_only && option->has_arg == no_argument)
            continue;
        printf("%s--%s", separator, option->name);
        separator = has_arguments_only ? "|" : " ";
    }
}

/* Sets `first` to the index of the first word that is no option. Bash splits "--option=value" into
 * three words. */
static void completion_put_bash_search(void)
{
    fputs("    while [[ $first -lt $COMP_CWORD ]]; do\n"
          "        case ${COMP_WORDS[first]} in\n"
          "        --) ((first++)); break ;;\n"
          "        -o|",
          stdout);
    completion_put_options(true);
    fputs(")\n"
          "            ((first++))\n"
          "            if [[ ${COMP_WORDS[first]} == '=' ]]; then ((first++)); fi\n"
          "            ;;\n"
          "        -*) ;;\n"
          "        *) break ;;\n"
          "        esac\n"
          "        ((first++))\n"
          "    done\n",
          stdout);
}

/* Completes the words behind a command, and the words of the program. */
static void completion_put_bash_operands(void)
{
    fputs("    if [[ $first -lt $COMP_CWORD ]]; then\n"
          "        case $first,${COMP_WORDS[1]} in\n"
          "        1,attach|1,enable) ;;\n"
          "        1,session)\n"
          "            if [[ $COMP_CWORD -eq 2 ]]; then\n"
          "                COMPREPLY=($(compgen -W '" SESSION_WORDS "' -- \"$word\"))\n"
          "                return\n"
          "            fi\n"
          "            ;;\n"
          "        1,symbolize|1,status|1,snapshot|1,pause|1,resume|1,detach|1,mark|1,snapshots"
          "|1,disable|1,query)\n"
          "            return\n"
          "            ;;\n"
          "        *)\n"
          "            if declare -F _command_offset >/dev/null; then\n"
          "                _command_offset $first\n"
          "            fi\n"
          "            return\n"
          "            ;;\n"
          "        esac\n"
          "    fi\n",
          stdout);
}

/* Completes options, their values, and the first word. */
static void completion_put_bash_words(void)
{
    fputs("    if [[ $word == '=' ]]; then\n"
          "        word=\n"
          "    elif [[ $before == '=' ]]; then\n"
          "        before=${COMP_WORDS[COMP_CWORD-2]}\n"
          "    fi\n"
          "    case $before in\n",
          stdout);
    for (const struct option *option = options_long; option->name; option++)
        if (*completion_values(option->name))
            printf("    --%s) words='%s' ;;\n", option->name, completion_values(option->name));
    fputs("    -o|", stdout);
    completion_put_options(true);
    fputs(") return ;;\n"
          "    *)\n"
          "        if [[ $word == -* ]]; then\n"
          "            words=$options\n"
          "        elif [[ $first -eq $COMP_CWORD ]]; then\n"
          "            COMPREPLY=($(compgen -c -- \"$word\"))\n"
          "            if [[ $first -eq 1 ]]; then words='" COMMANDS "'; fi\n"
          "        fi\n"
          "        ;;\n"
          "    esac\n"
          "    COMPREPLY+=($(compgen -W \"$words\" -- \"$word\"))\n",
          stdout);
}

static void completion_put_bash(void)
{
    fputs("# bash completion for ttdrecord\n"
          "_ttdrecord()\n"
          "{\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    local options='",
          stdout);
    completion_put_options(false);
    fputs("' first=1 words=\n"
          "    COMPREPLY=()\n",
          stdout);
    completion_put_bash_search();
    completion_put_bash_operands();
    completion_put_bash_words();
    fputs("}\n"
          "complete -o bashdefault -o default -F _ttdrecord ttdrecord\n",
          stdout);
}

static void completion_put_zsh(void)
{
    fputs("#compdef ttdrecord\n"
          "local -a options\n"
          "options=(\n",
          stdout);
    for (const struct option *option = options_long; option->name; option++) {
        const char *values = completion_values(option->name);
        printf("    '--%s%s", option->name, option->has_arg == no_argument ? "" : "=:value:");
        if (completion_takes_file(option->name))
            fputs("_files", stdout);
        else if (*values)
            printf("(%s)", values);
        else if (option->has_arg != no_argument)
            fputs(" ", stdout);
        puts("'");
    }
    fputs(")\n"
          "case $words[2] in\n"
          "session)\n"
          "    if (( CURRENT == 3 )); then compadd " SESSION_WORDS "; fi\n"
          "    return ;;\n"
          "attach|enable) _arguments $options ; return ;;\n"
          "symbolize) _files; return ;;\n"
          "esac\n"
          "if (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then\n"
          "    compadd " COMMANDS "\n"
          "fi\n"
          "_arguments -A '-*' $options '-o:file:_files' '(-)1:program:_command_names -e' "
          "'*::argument:_normal'\n",
          stdout);
}

static void completion_put_fish(void)
{
    puts("# fish completion for ttdrecord\n"
         "complete -c ttdrecord -n __fish_use_subcommand -a '" COMMANDS "'\n"
         "complete -c ttdrecord -n __fish_use_subcommand -a '(__fish_complete_command)'\n"
         "complete -c ttdrecord -n '__fish_seen_subcommand_from session' -a '" SESSION_WORDS "'");
    for (const struct option *option = options_long; option->name; option++) {
        printf("complete -c ttdrecord -l %s", option->name);
        if (option->has_arg != no_argument)
            printf(completion_takes_file(option->name) ? " -r" : " -x -a '%s'",
                   completion_values(option->name));
        puts("");
    }
}

int main(int count, char **arguments)
{
    const char *shell = count == 2 ? arguments[1] : "";
    if (strcmp(shell, "bash") == 0)
        completion_put_bash();
    else if (strcmp(shell, "zsh") == 0)
        completion_put_zsh();
    else if (strcmp(shell, "fish") == 0)
        completion_put_fish();
    else
        return 2;
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
