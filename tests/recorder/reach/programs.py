# SPDX-License-Identifier: MIT
"""Real programs: what is lost of their blocks by our account, and by memcheck's.

Prints both, for each process that did not begin with its parent's blocks, and fails if they differ
for another reason than is known. `meson compile reach-programs` runs it; arguments select programs.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from answers import CLASSES, ENVIRONMENT, equal_environments, parse_log, read_classes, text_of
from differences import judge

PATIENCE = int(os.environ.get('PATIENCE', 300))
# In valgrind, GLib asks malloc for each of its slices.
GLIB = {'G_SLICE': 'always-malloc'}
# The allocator overwrites what it takes back, and keeps nothing for a thread: no block has words
# that are older.
OVERWRITTEN = {**GLIB, 'GLIBC_TUNABLES': 'glibc.malloc.tcache_count=0:glibc.malloc.perturb=165'}
PERL = 'my %h; $h{$_} = [1..3] for 1..5000; my $s = join ",", sort keys %h; $s =~ s/(\\d+)/<$1>/g;'
LUA = 'local t = {} for i = 1, 20000 do t[i] = {i, tostring(i)} end table.sort(t, function(a, b) ' \
      'return a[2] < b[2] end) print(#t) os.exit(0)'
SQL = ('create table t(a, b text); with recursive n(i) as (select 1 union all select i + 1 from n '
       "where i < 5000) insert into t select i, 'text ' || i from n; create index x on t(b); "
       'select count(*) from t;')
PYTHON = 'import json, re, decimal; json.loads(json.dumps([{"a": i} for i in range(5000)]))'
RUBY = 'h = {}; 5000.times { |i| h["k#{i}"] = [i, i.to_s * 3] }; puts h.keys.sort.join.size'
VIM = ['-u', 'NONE', '-i', 'NONE', '-es', '+%s/int/long/g', '+sort', '+normal ggdG', '+qa!']
GRAPH = ' '.join(f'n{i} -> n{i * 7 % 60} [label="e{i}"];' for i in range(60))
OCTAVE = 'a = magic(60); b = inv(a + eye(60)); s = struct("x", {1, 2, 3}); c = cell(20, 3); ' \
         'for i = 1:200 c{mod(i, 20) + 1, 2} = sprintf("%d", i); end; ' \
         'disp(numel(regexprep(strjoin(c(:, 2)\', ","), "1", "<1>")))'
PHP = '$h = []; for ($i = 0; $i < 5000; $i++) $h["k$i"] = [$i, str_repeat("$i", 3)]; ksort($h); ' \
      'echo strlen(preg_replace("/1/", "<1>", json_encode($h))), PHP_EOL;'
LISP = '(let ((h (make-hash-table))) (dotimes (i 5000) (setf (gethash i h) (list i))) ' \
       '(print (hash-table-count h)))'
NGINX = '''daemon off; master_process off; pid {0}/nginx.pid; error_log {0}/error.log;
events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path {0}/a; proxy_temp_path {0}/b; fastcgi_temp_path {0}/c;
uwsgi_temp_path {0}/d; scgi_temp_path {0}/e; server {{ listen unix:{0}/socket; root {0}; }} }}
'''


class Program:
    """A command, what ends it if it does not end by itself, and what runs ttdrecord if anything."""

    def __init__(self, name, *command, end=None, environment=None, prepare=None, runner=()):
        self.name, self.command, self.end, self.runner = name, command, end, runner
        self.environment, self.prepare = environment or {}, prepare


def wait_for(path):
    deadline = time.monotonic() + PATIENCE
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.1)


def end_redis(directory):
    wait_for(directory / 'redis')
    client = ['redis-cli', '-s', str(directory / 'redis')]
    subprocess.run([*client, 'debug', 'populate', '2000', 'key', '20'], capture_output=True,
                   timeout=PATIENCE, check=False)
    subprocess.run([*client, 'eval', 'for i = 1, 300 do redis.call("lpush", "l" .. i % 9, i) end',
                    '0'], capture_output=True, timeout=PATIENCE, check=False)
    subprocess.run([*client, 'shutdown', 'nosave'], capture_output=True, timeout=PATIENCE,
                   check=False)


def end_nginx(directory):
    wait_for(directory / 'socket')
    for _ in range(3):
        subprocess.run(['curl', '-s', '--unix-socket', str(directory / 'socket'),
                        'http://localhost/nginx.conf'], capture_output=True, timeout=PATIENCE,
                       check=False)
    wait_for(directory / 'nginx.pid')
    os.kill(int((directory / 'nginx.pid').read_text()), 3)


def prepare_nginx(directory):
    (directory / 'nginx.conf').write_text(NGINX.format(directory))


def programs(directory):
    large = directory / 'large.c'
    large.write_text('#include <stdio.h>\n#include <stdlib.h>\n#include <pthread.h>\n' +
                     '\n'.join(f'int f{i}(int a) {{ return a * {i} + printf("%d", a); }}'
                               for i in range(300)))
    (directory / 'in.json').write_text('[' + ','.join(f'{{"a": {i}}}' for i in range(500)) + ']')
    (directory / 'in.dot').write_text(f'digraph {{ rankdir=LR; {GRAPH} }}')
    tmux = ['tmux', '-L', f'reach{os.getpid()}', '-f', '/dev/null']
    gdb = ['gdb', '-nx', '-batch', '-ex', 'maintenance set worker-threads 0', '-ex',
           f'file {directory}/large.o', '-ex', 'info line f299', '-ex', 'ptype f0']
    octave = ['octave-cli', '--norc', '--no-history', '--eval', OCTAVE]
    return [
        Program('bash', 'bash', '-c', 'declare -A a; for i in {1..500}; do a[$i]=x$i; done; '
                'f() { local b=$1; echo "${b//x/y}"; }; f "${a[*]}" | wc -c'),
        Program('git', 'git', '-C', str(directory / 'repository'), 'log', '--stat', '--oneline',
                prepare=prepare_git),
        Program('sqlite3', 'sqlite3', ':memory:', SQL),
        Program('sqlite3-error', 'sqlite3', '-bail', ':memory:', SQL + 'select * from nothing;'),
        Program('lua', 'lua5.4', '-e', LUA),
        Program('lua-closed', 'lua5.4', '-e', LUA.replace('os.exit(0)', '')),
        Program('ruby', 'ruby', '-e', RUBY, runner=['setarch', '--addr-compat-layout']),
        Program('vim', 'vim', *VIM, str(large)),
        Program('perl', 'perl', '-e', PERL, environment={'PERL_HASH_SEED': '0'}),
        Program('bc', 'bc', '-l', '-q', str(directory / 'in.bc'), prepare=prepare_bc),
        Program('jq', 'jq', 'map(.a * 2) | add', str(directory / 'in.json')),
        Program('tmux', *tmux, 'new-session', '-d', 'sleep 1', ';', 'list-sessions', ';',
                'kill-server;', 'list-keys'),
        Program('nginx', 'nginx', '-c', str(directory / 'nginx.conf'), '-e',
                str(directory / 'error.log'), prepare=prepare_nginx, end=end_nginx),
        Program('redis-server', 'redis-server', '--port', '0', '--save', '', '--unixsocket',
                str(directory / 'redis'), '--enable-debug-command', 'yes', end=end_redis),
        Program('python3', '/usr/bin/python3', '-c', PYTHON,
                environment={'PYTHONMALLOC': 'malloc', 'PYTHONHASHSEED': '0'}),
        Program('gdb', *gdb, prepare=prepare_gdb, environment=GLIB),
        Program('gdb-overwritten', *gdb, prepare=prepare_gdb, environment=OVERWRITTEN),
        Program('octave', *octave),
        Program('octave-overwritten', *octave, environment=OVERWRITTEN),
        Program('dot', 'dot', '-Tsvg', str(directory / 'in.dot'), environment=GLIB),
        Program('php', 'php', '-n', '-r', PHP),
        Program('sbcl', 'sbcl', '--non-interactive', '--no-userinit', '--eval', LISP),
        Program('convert', 'convert-im6.q16', '-size', '64x64', 'gradient:', '-blur', '0x2',
                str(directory / 'out.png'), environment={**GLIB, 'MAGICK_THREAD_LIMIT': '1'}),
        Program('clang', 'clang', '-cc1', '-O1', '-emit-obj', '-o', str(directory / 'large.o'),
                '-internal-isystem', '/usr/lib/clang/14/include', '-internal-isystem',
                '/usr/include/x86_64-linux-gnu', '-internal-isystem', '/usr/include', str(large)),
    ]


def prepare_git(directory):
    repository = directory / 'repository'
    if repository.exists():
        return
    run = ['git', '-C', str(repository), '-c', 'user.name=a', '-c', 'user.email=a@b']
    subprocess.run(['git', 'init', '-q', str(repository)], check=True)
    for i in range(20):
        (repository / 'file').write_text('\n'.join(str(j * i) for j in range(100)))
        subprocess.run([*run, 'add', 'file'], check=True)
        subprocess.run([*run, 'commit', '-q', '-m', f'change {i}'], check=True)


def prepare_gdb(directory):
    subprocess.run(['cc', '-g', '-c', '-o', directory / 'large.o', directory / 'large.c'],
                   check=True)


def prepare_bc(directory):
    (directory / 'in.bc').write_text('scale = 200\ndefine f(x) { if (x < 2) return (1); '
                                     'return (x * f(x - 1)); }\nf(200) / 3\ne(1)\nquit\n')


def run(command, program, directory, added):
    """Runs the program under a tool. `added` variables make environments of the same size."""
    environment = {**ENVIRONMENT, 'HOME': str(directory), 'TERM': 'xterm', **added,
                   **program.environment}
    if program.prepare:
        program.prepare(directory)
    with subprocess.Popen([*command, *program.command], env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        if program.end:
            program.end(directory)
        process.wait(timeout=PATIENCE)


def by_memcheck(program, directory, added):
    """Returns answers by number of the process: 0 for the first, and the texts of what is lost."""
    logs = directory / 'logs'
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir()
    run(['valgrind', '--leak-check=full', '--show-leak-kinds=definite', '--num-callers=40',
         '--run-libc-freeres=no', '--run-cxx-freeres=no', '--default-suppressions=no',
         '--soname-synonyms=somalloc=*jemalloc*', f'--log-file={logs}/%p'], program, directory,
        added)
    answers = []
    for log in sorted(logs.iterdir(), key=lambda log: int(log.name)):
        text = log.read_text(encoding='utf-8', errors='replace')
        if 'LEAK SUMMARY' in text or 'All heap blocks were freed' in text:
            answers.append((parse_log(text), direct_losses(text)))
    return answers


def direct_losses(text):
    """Blocks and bytes of each record of definitely lost blocks, without what hangs below."""
    found = re.findall(r'== ([\d,]+) (?:\(([\d,]+) direct, [\d,]+ indirect\) )?bytes in ([\d,]+) '
                       r'blocks are definitely lost', text)
    return sorted((int(blocks.replace(',', '')), int((direct or size).replace(',', '')))
                  for size, direct, blocks in found)


def by_us(program, directory, added, tools):
    traces = directory / 'traces'
    shutil.rmtree(traces, ignore_errors=True)
    traces.mkdir()
    run([*program.runner, tools['TTDRECORD'], '-q', '-o', str(traces / 'trace.bin'), '--'], program,
        directory, added)
    answers = []
    for trace in sorted(traces.iterdir(), key=lambda path: (len(path.name), path.name)):
        try:
            leaks, pairs = read_classes(trace, tools, '--limit', '0')
        except AssertionError as problem:
            print(f'  {trace.name}: {str(problem)[:200]}')
            continue
        if inherits(trace, tools):
            print(f'  {trace.name} began with blocks of its parent, and is not compared: '
                  f'{text_of(pairs)}')
            continue
        answers.append((pairs[:4], [(group['blocks'], group['bytes']) for group in leaks['groups']
                                if group.get('class') == 'definitely_lost']))
    return answers


def inherits(trace, tools):
    info = subprocess.run([tools['TTDANALYZE'], 'info', '--format', 'json', trace],
                          capture_output=True, timeout=PATIENCE, check=True)
    return json.loads(info.stdout)['trace']['inherits']


def compare(program, tools):
    # Numbers of processes are in the environment: those of the same moment are of one length.
    added = equal_environments(tools)
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        # Lists of commands name files of this directory.
        chosen = next(item for item in programs(directory) if item.name == program)
        if shutil.which(chosen.command[0]) is None:
            print(f'{program}: not here')
            return True
        ours = by_us(chosen, directory, added['us'], tools)
        theirs = by_memcheck(chosen, directory, added['memcheck'])
    for number, ((pairs, lost), (wanted, wanted_lost)) in enumerate(zip(ours, theirs)):
        same = judge(program, pairs, wanted)
        print(f'{program:14} {number}  us        {text_of(pairs)}\n'
              f'{"":14}    memcheck  {text_of(wanted)}  {same}')
        if lost and lost[0] not in wanted_lost:
            print(f'{"":17} first is {lost[0]}, memcheck has {wanted_lost[:9]}')
    return bool(ours) and all(not judge(program, pairs, wanted).endswith('?')
                              for (pairs, _), (wanted, _) in zip(ours, theirs))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--build', type=pathlib.Path, required=True)
    parser.add_argument('names', nargs='*', metavar='PROGRAM')
    arguments = parser.parse_args()
    tools = {'TTDRECORD': arguments.build / 'recorder' / 'ttdrecord',
             'TTDANALYZE': arguments.build / 'analyzer' / 'ttdanalyze'}
    with tempfile.TemporaryDirectory() as directory:
        known = [program.name for program in programs(pathlib.Path(directory))]
    print(f'Blocks/bytes: {", ".join(CLASSES)}'.replace('_', ' '))
    right = [compare(name, tools) for name in arguments.names or known]
    return 0 if all(right) else 1


if __name__ == '__main__':
    sys.exit(main())
