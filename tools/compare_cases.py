# SPDX-License-Identifier: MIT
"""The traces and the command lines of compare-builds."""

import pathlib

SOURCE = pathlib.Path(__file__).resolve().parent.parent
FORMATS = ('text', 'json', 'csv', 'folded')

PYTHON = ('import json,threading\n'
          'def work(n):\n'
          '    for i in range(n): kept[n, i] = json.dumps(list(range(i % 150)))\n'
          'kept = {{}}\n'
          'threads = [threading.Thread(target=work, args=(n,)) for n in ({0}, {1})]\n'
          '[t.start() for t in threads]; [t.join() for t in threads]\n')
PERL = 'for (1..2000) { push @l, "line $_"; $t .= $l[-1]; $h{$_} = [1, 2] }'
SQL = ('create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from c where'
       ' x < 400) insert into t select x, hex(x) from c; select count(*) from t group by a % 10;')
RECORDED = {
    'python': ['/usr/bin/python3', '-c', PYTHON.format(300, 0)],
    'python-threads': ['/usr/bin/python3', '-c', PYTHON.format(500, 450)],
    'git': ['git', '-C', str(SOURCE), 'log', '--oneline', '-30'],
    'git-more': ['git', '-C', str(SOURCE), 'log', '--stat', '-5'],
    'sqlite3': ['sqlite3', ':memory:', SQL],
    'perl': ['perl', '-e', PERL],
    'shell-children': ['sh', '-c', 'perl -e "print 1"; git --version; sqlite3 :memory: "select 1"'],
}
# Programs of the recorder's tests.
PROGRAMS = ('leaks_c', 'leaks_cxx', 'growing', 'every_api', 'double_free', 'overrun', 'children',
            'running_threads', 'many_threads')
# Events and live blocks. Of the last, commands make the index themselves.
GENERATED = {'generated': ('300000', '20000'), 'generated-summaries': ('900000', '200000'),
             'generated-long': ('4200000', '30000')}
SCRIPT_BEGIN = '''trace pid=77 events_per_chunk=500
metadata key=command value=demo
module path=/opt/app/bin/demo bias=0x400000 begin=0x400000 end=0x500000 build_id=00ff12
module path=/usr/lib/libwork.so bias=0x7000000 begin=0x7000000 end=0x7100000
thread os=1000 name=main
thread os=1001 name=worker position=1:0
heap name=malloc
heap handle=0xb00000 name=private
stack module=1 offset=0x100
stack parent=1 module=1 offset=0x200
stack parent=1 module=2 offset=0x300
stack parent=3 offset=0xdead
symbol module=1 offset=0x100 frames=main@main.c@10
symbol module=1 offset=0x200 frames=_Z1gi@g.h@5,_ZN1f3runEv@f.cc@20
'''
SCRIPTS = {
    'tracegen-churn': SCRIPT_BEGIN + 'churn count=20000 slots=300 position=1:0\nclose reason=1\n',
    'tracegen-losses': SCRIPT_BEGIN + '''churn count=3000 slots=200 position=1:0 seed=7
loss reason=1 thread=1 count=5 last_good=BB8:0 first_good=BD0:0
churn count=3000 slots=200 position=BD0:0 seed=9
loss reason=2 last_good=1900:0 first_good=1A00:0
close reason=2 code=3
''',
    'tracegen-errors': SCRIPT_BEGIN + '''event action=Create start=1:0 end=1:1 heap=2 api=0
event action=Alloc address=0x9000 size=64 stack=2 api=1 start=2:0 end=2:1 parameters=64,1 wall=5
event action=Alloc address=0x9100 size=32 stack=3 heap=2 thread=2 api=1 start=2:2 end=2:3
event action=Alloc size=99999 result=0 stack=4 api=1 start=3:0 end=3:1
event action=Free base=0x9000 stack=1 api=5 start=4:0 end=4:1 wall=900
event action=Free base=0x9000 stack=2 api=5 start=5:0 end=5:1
event action=Free base=0x9110 stack=2 heap=2 api=5 start=5:2 end=5:3
event action=Protect heap=2 read_only=1 start=6:0 end=6:1
event action=Lock heap=2 thread=1 start=6:2 end=6:3
event action=Destroy heap=2 start=7:0 end=7:1
event action=Alloc address=0xA000 size=10 stack=2 api=7 start=7:2 end=7:3
event action=ReAlloc base=0xA000 address=0xB000 size=500 stack=2 api=3 start=8:0 end=8:1
event action=Alloc address=0xC000 size=72704 stack=3 api=1 start=9:0 end=9:1
blocks blocks=0xC000:72704:10 position=9:2
user client=demo data=hello position=9:2 thread=1
event action=Free base=0xB000 stack=1 api=5 start=A:0 end=never
close reason=3 code=6
''',
    'tracegen-unclosed': SCRIPT_BEGIN + 'churn count=9000 slots=5000 position=1:0\nclose\n',
}
VECTORS = ('good-program', 'good-chunks', 'good-extremes', 'good-kinds-lz4', 'good-derived',
           'good-unclosed', 'bad-chunk-missing', 'bad-payload-hash', 'bad-lz4',
           'unsupported-codec-zstd')
POSITIONS = ('start', '25%', '#100', '+1ms', '7:3', '1F4:1', '97%')
VIEWS = ('--by function', '--by file', '--by module', '--by thread', '--by heap',
         '--tree top-down', '--tree bottom-up --depth 4', '--tree top-down --by file',
         '--tree bottom-up --by thread', '--include main', '--include m*n --exclude *.so*',
         '--skip *alloc*', '--limit 2', '--limit 0 --full-stacks')
KNOWN = ('--suppressions rules.txt', '--write-baseline known-{c}.txt',
         '--baseline known-{c}.txt --fail-on-growth', '--error-exitcode 9', '--baseline rules.txt',
         '--suppressions rules.txt --error-exitcode 7 --include nothing-has-this')
RULES = '''leak:perl
leak:^main$
{
   one
   Memcheck:Leak
   fun:malloc
   ...
   fun:PyObject*
}
'''
# Further arguments of two commands.
NEEDED = {'history': '--address {a}', 'recover': '-o recovered-{f}.ttd',
          'redact': '-o redacted-{f}.ttd', 'memory': '--address {a}',
          'referrers': '--address {a}', 'find': '--pointer-to {a}'}
# Options of each command: "{a}" and "{b}" are addresses of the trace, "{c}" is the command, "{t}"
# the trace. Each is run in one format, another with each trace; without options, in all four.
COMMANDS = {
    'summary': [],
    'digest': ['--sites 2'],
    'info': ['--group'],
    'events': ['--limit 5 --stacks', '--limit 50 --parameters', '--from 25% --to 30%', '--thread 2',
               '--action Alloc,Free --limit 40', '--address {a}', '--address {a}+0x100 --stacks',
               '--size 1K-', '--heap malloc --limit 9', '--stack *main* --limit 30',
               '--stack #3 --limit 4', '--thread os:1', '--from #50 --limit 3'],
    'leaks': [*VIEWS, *KNOWN, '--show-runtime', '--show all', *(f'--at {p}' for p in POSITIONS)],
    'state': [*VIEWS, '--show-runtime', '--blocks', '--address {a}', '--address {b} --at 60%',
              '--blocks --at #77', '--by file --at 50%', *(f'--at {p}' for p in POSITIONS)],
    'history': ['--address {b} --size 4096', '--address {b} --limit 1',
                '--address 0x10'],
    'peak': [*VIEWS, '--show-runtime'],
    'diff': [*VIEWS, '--changes', '--from 25% --to 75%', '--from 7:3 --to 1F4:1 --by function',
             '--changes --from 10% --to 90%', '--changes --tree top-down',
             '--quadrant aofi --tree bottom-up',
             '--quadrant aifi --tree top-down', '--show-runtime', '{t} other.ttd',
             '{t} other.ttd --tree bottom-up', '{t} other.ttd --by function', 'other.ttd {t}'],
    'hot': [*VIEWS, '--sort calls', '--sort lifetime'],
    'temporary': [*VIEWS, '--steps 3'],
    'lifetimes': ['--include main', '--exclude *a*'],
    'timeline': ['--over position', '--points 7', '--plot allocations', '--plot allocated',
                 '--include main', '--over position --points 33 --plot allocations'],
    'report': ['-o report.html --title T', '-o report.html --from 25% --to 75%'],
    'fragmentation': ['--at 50%', '--gap 4K', '--limit 3 --gap 64', '--at #100'],
    'moves': [*VIEWS, '--chains 2'],
    'errors': [*KNOWN, '--limit 1', '--remember 2', '--include main', '--limit 0 --full-stacks'],
    'verify': ['-o verified.txt'],
    'recover': ['', '-o recovered-text.ttd'],
    'redact': ['', '--strings'],
    'roots': ['--limit 2'],
    'retained': ['--by stack', '--by function', '--by class', '--by root', '--tree'],
    'marks': ['--from 25% --to 75%', '--thread 0', '--limit 1'],
    'snapshots': [],
    'memory': ['--address {a} --length 4K', '--address {b} --at 50%'],
    'query': ['select*from"sites"', 'select(number)from"events"limit(5)'],
    'import': [],
    'find': ['--string a --limit 3', '--address {b} --at 50%'],
    'referrers': ['--address {b} --depth 3', '--address {a} --limit 2 --at 50%'],
    'index': ['--no-index'],
    'export': [f'{format} -o exported.{format}' for format in ('pprof', 'massif', 'heaptrack', 'chrome')]
              + ['folded --at 50% -o exported.folded'],
    'slice': ['--from 25% --to 75% -o sliced.ttd'],
    'merge': ['other.ttd -o merged.ttd'],
    'repack': ['-o repacked.ttd'],
}
# Commands that an index may change, run once more with one, and with one that does not fit.
INDEXED = [f'state --at {p}' for p in POSITIONS] + [
    'leaks --at 66% -f json', 'leaks', 'peak -f json', 'peak --by function', 'state -f csv',
    'diff --from 40% --to 90%', 'diff --changes --from 30% --to 80%', 'diff --changes -f json',
    'state --address {a} --at 70%', 'state --blocks --at 80% -f json', 'history --address {b}',
    'fragmentation --at 45%', 'events --from 90% --limit 20', 'state --no-index --at 50%',
    'timeline', 'info', 'verify', 'state --by thread --at 99% -f json', 'errors', 'index']
SHORT = ('info', 'verify -f json', 'events -f json', 'leaks', 'state --at 50% --no-index',
         'errors -f csv', 'recover -o recovered-{t}')
MISUSE = (
    '', '--help', '-h', '-V', 'stat', 'leaks --bogus', 'leaks --at', 'leaks --at nowhere',
    'leaks .', 'leaks nothing.ttd', 'leaks -f xml', 'state --at 9x%', 'leaks --limit x',
    'hot --sort size', 'peak --tree up', 'leaks a b', 'timeline --points 0', 'history', 'history --address',
    'history trace.ttd', 'events --action Eat', 'events --size 9-3', 'recover', 'recover trace.ttd',
    'recover -o trace.ttd trace.ttd', 'leaks --depth 2 trace.ttd', 'leaks -o trace.ttd trace.ttd',
    'leaks --suppressions none.txt trace.ttd', 'leaks --max-memory 1K trace.ttd',
    'leaks --max-memory x', 'leaks --by colour trace.ttd', 'diff trace.ttd', 'diff a b c',
    'diff trace.ttd none.ttd', 'leaks --error-exitcode 300', 'leaks -o /dev/full trace.ttd',
    'leaks -', 'leaks - < trace.ttd', 'info - -f json < trace.ttd',
    'leaks -o out.json -f json trace.ttd', 'state -o out.csv -f csv trace.ttd', 'leaks out.csv')
TERMINAL = ('leaks', 'state --at 50%', 'events --limit 20', 'timeline', 'errors', 'verify', 'info')
DAMAGED = {f'{name}-{kind}': (kind, name) for kind in ('cut', 'flips', 'zeros', 'hole')
           for name in ('python', 'perl')}
COUNTED_TRACES = ('python', 'generated-summaries')
COUNTED = ('leaks', 'index', 'state --at 50%', 'state --at 50% --no-index', 'info', 'verify')


def damage(kind, sound):
    data = bytearray(sound)
    size = len(data)
    if kind == 'cut':
        return data[:size * 6 // 10]
    if kind == 'flips':
        for place in (size // 5, size // 2, size * 4 // 5):
            data[place] ^= 16
    elif kind == 'zeros':
        data[size // 3:size // 3 + 4096] = bytes(4096)
    elif kind == 'hole':
        del data[size // 2:size // 2 + 5000]
    return data


def lines_of(name, number, is_large, addresses):
    """The lines of a case with trace.ttd: the first word is a command or, see run_line(), another.
    `number` is the number of the case, and decides which options go with which format."""
    for command, options in COMMANDS.items() if name != 'generated-long' else ():
        formats = FORMATS if VIEWS[0] in options else FORMATS[:3]
        needed = NEEDED.get(command, '')
        lines = [f'-f {f} {needed}'.rstrip().replace('{f}', f) for f in FORMATS]
        lines += [f'-f {formats[(number + i) % len(formats)]} {o}' for i, o in enumerate(options)]
        for line in lines:
            if command != 'events' or not is_large or '--limit' in line:
                line = f'{command} {line}' + ('' if '{t}' in line else ' {t}')
                yield line.format(t='trace.ttd', c=command, **addresses)
    if not is_large:
        yield from ('dumptrace trace.ttd', 'dumptrace -t trace.ttd', 'verify recovered-json.ttd')
    yield from (f'terminal {line} trace.ttd' for line in TERMINAL)
    yield from (f'{line} trace.ttd'.format(**addresses) for line in INDEXED)
    yield 'keep-index'
    for change in ('foreign', 'flipped', 'cut'):
        yield from (f'{change}-index', 'state --at 50% trace.ttd', 'peak trace.ttd')


def writers():
    """Lines that write traces: with libtrace's writer, and with the recorder."""
    yield 'make_vectors .'
    yield from (f'make_trace {seed} made-{seed}.ttd' for seed in range(1, 13))
    yield from (f'generate {n} {n // 10 + 1} generated-{n}.ttd' for n in (0, 1, 5000, 70000))
    yield from (f'tracegen {name}.ttd < {name}.txt' for name in SCRIPTS)
    for name in PROGRAMS:
        yield f'ttdrecord -q -o .{name}.ttd --no-children -- ./{name}'
        yield from (f'{command} .{name}.ttd' for command in (
            'hot -f folded', 'leaks -f csv', 'moves -f csv', 'errors -f csv'))
