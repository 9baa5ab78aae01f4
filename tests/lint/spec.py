#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""spec/format.md, the vectors and the code say the same: every requirement has a vector, or a
reason why it has none; every table has the offsets, values and limits of libtrace/src/layout.h.

spec.py ROOT
"""

import pathlib
import re
import sys

# Requirements that no single file can show, and what shows them.
WITHOUT_VECTOR = {
    23: 'says of all values what others say of each',
}

# Requirements of what a reader must accept: no file can be wrong by them.
WITHOUT_BAD_VECTOR = {
    26: 'a file that ends early is no error while it is read',
    58: 'a derived file that is ignored is intact',
    59: 'APIs that a reader does not know',
    61: 'minor versions that a reader does not know',
    70: 'values that a reader does not know',
    71: 'which of two names counts',
    80: 'a snapshot that was cut short is intact',
}

# Records whose fields have a table with types and ranges.
RECORDS = ('Stacks', 'Modules', 'Symbols', 'Threads', 'Heaps', 'Heap parents', 'User events', 'Losses',
           'Live blocks', 'Memory map', 'Snapshots', 'Regions', 'References', 'Packed references', 'Variables', 'Frames',
           'Classes', 'Block headers', 'Fatal signals', 'Metadata', 'States', 'Sums', 'Shapes', 'Trace', 'Index',
           'End')

problems = []


def check(condition, text):
    if not condition:
        problems.append(text)


def section(spec, title):
    """The text below a heading, up to the next one of its level or above."""
    level = re.search(rf'(?m)^(#+) {re.escape(title)}$', spec)
    if not level:
        problems.append(f'no section {title}')
        return ''
    rest = spec[level.end():]
    end = re.search(rf'(?m)^#{{1,{len(level[1])}}} ', rest)
    return rest[:end.start()] if end else rest


def tables(text):
    """Each table as rows of cells, without its head."""
    found = []
    for block in re.findall(r'(?m)(?:^\|.*\n)+', text):
        rows = [[cell.replace(r'\|', '|').strip() for cell in re.split(r'(?<!\\)\|', line)[1:-1]]
                for line in block.splitlines()]
        found.append(rows[2:])
    return found


# ---- Requirements ----

def requirements(root, spec):
    defined = [int(n) for n in re.findall(r'\[R-(\d+)\]', spec)]
    last = max(defined)
    check(sorted(defined) == list(range(1, last + 1)), 'requirements are not numbered once each')
    check(f'R-1 to R-{last}.' in spec, f'the introduction does not say R-1 to R-{last}')
    mentioned = {int(n) for n in re.findall(r'R-(\d+)', spec)}
    check(mentioned <= set(defined), f'mentioned, not defined: {mentioned - set(defined)}')
    readme = (root / 'tests/vectors/README.md').read_text()
    shown = {int(n) for n in re.findall(r'\bR-(\d+)', readme)}
    check(shown <= set(defined), f'vectors of no requirement: {shown - set(defined)}')
    for n in defined:
        check((n in shown) != (n in WITHOUT_VECTOR),
              f'R-{n} has {"both" if n in shown else "neither"} a vector and a reason for none')
    check(set(WITHOUT_VECTOR) <= set(defined), 'a reason for what does not exist')
    bad = {int(n) for line in re.findall(r'(?m)^\| (?:bad|unsupported)-.*', readme)
           for n in re.findall(r'\bR-(\d+)', line)}
    missing = set(defined) - bad - set(WITHOUT_VECTOR) - set(WITHOUT_BAD_VECTOR)
    check(not missing, f'no bad vector for {missing}')
    for paragraph in re.split(r'\n\n|\n(?=- )', spec):
        check('MUST' not in paragraph or re.search(r'\[R-\d+\]|RFC 2119', paragraph),
              f'a MUST without a number: {paragraph!r}')
    for title in RECORDS:
        check(re.search(r'(?m)^\|.*\bType\b.*\| Legal \|$', section(spec, title)),
              f'no table of fields: {title}')
    for vector in re.findall(r'(?m)^\| ((?:good|bad|unsupported)-\S+) \|', readme):
        check((root / f'tests/vectors/{vector}.trace').exists(), f'no file {vector}')
    files = {path.stem for path in (root / 'tests/vectors').glob('*.trace')}
    check(files == set(re.findall(r'(?m)^\| (\S+-\S+) \|', readme)), 'files that are not listed')
    return len(defined)


# ---- Layout ----

def constants(*paths):
    """Values of simple macros and enumerators."""
    found = {}
    for path in paths:
        text = re.sub(r'/\*.*?\*/', '', path.read_text(), flags=re.DOTALL).replace('\\\n', ' ')
        for name, value in re.findall(r'(?m)^#define (TTD_\w+) +(.+)$', text):
            found[name] = value.strip()
        for body in re.findall(r'enum \w+ \{(.*?)\}', text, flags=re.DOTALL):
            value = -1
            for item in body.split(','):
                name, _, given = (part.strip() for part in item.partition('='))
                if name:
                    value = int(given, 0) if given else value + 1
                    found[name] = str(value)
    return found


class Layout:
    def __init__(self, values):
        self.values = values
        self.used = set()

    def __call__(self, name):
        self.used.add(name)
        if name not in self.values:
            problems.append(f'no constant {name}')
            return 0
        text = re.sub(r'UINT(?:32|64)_C\((\w+)\)', r'\1', self.values[name])
        text = re.sub(r'TTD_\w+', lambda match: f'({self(match[0])})', text)
        text = re.sub(r'\b(0[xX][0-9a-fA-F]+|\d+)[uU]\b', r'\1', text)
        return eval(text, {'__builtins__': {}})     # our own header


def payload_of_events(spec):
    """From the second section of that name on; the first is of the model."""
    return spec[spec.index('\n## Events'):]


def fields(layout, spec, title, names, which=0, end=None):
    """A table of offsets: field names as in the document to constants."""
    rows = [row for row in tables(section(spec, title))[which] if row[0]]
    check(len(rows) == len(names), f'{title}: {len(rows)} rows in table {which}')
    for row, name in zip(rows, names):
        check(row[0] == str(layout(name)), f'{title}: {row} but {name} is {layout(name)}')
    sizes = {'u8': 1, 'u16': 2, 'u32': 4, 'u64': 8, 'i64': 8}
    for row, after in zip(rows, [*rows[1:], [str(layout(end)) if end else None]]):
        kind = re.fullmatch(r'(\w+)(?:\[(\d+)\])?', row[1])
        if kind and kind[1] in sizes and after[0]:
            check(int(row[0]) + sizes[kind[1]] * int(kind[2] or 1) == int(after[0]),
                  f'{title}: {row} does not end at {after[0]}')


def layouts(root, spec):
    layout = Layout(constants(root / 'libtrace/src/layout.h',
                              *(root / f'libtrace/include/ttdtrace/{name}.h'
                                for name in ('batch', 'definitions', 'event', 'heap_state',
                                             'snapshot', 'trace'))))

    def of(prefix, names):
        return [prefix + name for name in names.split()]

    fields(layout, spec, 'Chunk header', of(
        'TTD_HEADER_', 'MAGIC MAJOR KIND CODEC FLAGS MINOR STORED_SIZE RAW_SIZE TRACE_ID NUMBER '
        'OFFSET FIRST_RECORD RECORD_COUNT RESERVED FIRST_POSITION LAST_POSITION PAYLOAD_HASH HASH'),
        end='TTD_HEADER_SIZE')
    fields(layout, spec, 'Trace', of(
        'TTD_TRACE_', 'GROUP PARENT_TRACE_ID PARENT_POSITION START_TIME TIME_UNIT PROCESS_ID '
        'PARENT_PROCESS FLAGS ARCHITECTURE POINTER_SIZE RESERVED SOURCE_TRACE_ID SOURCE_SIZE '
        'SOURCE_HASH'), end='TTD_TRACE_SIZE')
    fields(layout, spec, 'End', of(
        'TTD_END_PAYLOAD_', 'REASON CODE WALL_TIME EVENTS LOST_EVENTS CHUNKS INDEX_OFFSET'),
        end='TTD_END_PAYLOAD_SIZE')
    fields(layout, spec, 'Index', of('TTD_INDEX_', 'LINK_COUNT RESERVED LINKS'))
    fields(layout, spec, 'Index', of('TTD_LINK_', 'OFFSET FIRST_EVENT POSITION'), which=1,
           end='TTD_LINK_SIZE')
    fields(layout, payload_of_events(spec), 'Events', of(
        'TTD_EVENTS_', 'CLASS_COUNT SHAPE_COUNT LENGTHS COLUMNS'))
    fields(layout, spec, 'Stacks', of('TTD_STACKS_', 'LENGTHS COLUMNS'))
    fields(layout, spec, 'Live blocks', of(
        'TTD_BLOCKS_', 'LIST LIST_ID FLAGS RESERVED POSITION LENGTHS COLUMNS'))
    fields(layout, spec, 'Pages', of('TTD_PAGES_', 'PAGE_SIZE RESERVED DATA'))
    fields(layout, spec, 'Memory map', of(
        'TTD_MAP_', 'SNAPSHOT FLAGS POSITION PAGE_SIZE RESERVED RUNS'))
    fields(layout, spec, 'Regions', of('TTD_REGIONS_', 'SNAPSHOT FIRST RECORDS'))
    fields(layout, spec, 'References', of('TTD_REFERENCES_', 'SNAPSHOT RESERVED LENGTHS COLUMNS'))
    fields(layout, spec, 'Packed references', of(
        'TTD_', 'REFERENCES_SNAPSHOT REFERENCES_RESERVED REFERENCES_LENGTHS '
        'PACKED_REFERENCES_COLUMNS'))
    fields(layout, spec, 'Classes', of('TTD_CLASSES_', 'SNAPSHOT RESERVED RECORDS'))
    fields(layout, spec, 'Block headers', of('TTD_BLOCK_HEADERS_', 'SNAPSHOT FLAGS BEGIN RECORDS'))
    return layout


def kinds(root, table):
    """The table of kinds has the numbers, names and properties of the code's."""
    source = (root / 'libtrace/include/ttdtrace/kinds.h').read_text().replace('\\\n', ' ')
    code = {number: (text, 'HAS_IDS' in properties, 'IS_CRITICAL' in properties)
            for number, text, properties in re.findall(
                r'(?:RECORDS|CHUNK)\(\w+, (\d+), "([^"]*)", \d+,\s+([\w |]+),', source)}
    document = {number: (text, first == 'id of the first', critical == 'yes')
                for number, text, first, critical in table if number.isdigit()}
    for number in code.keys() | document.keys():
        check(code.get(number) == document.get(number),
              f'kind {number}: {document.get(number)} but {code.get(number)}')


def kinds_and_columns(root, layout, spec):
    table = tables(section(spec, 'Chunk header'))[1]
    kinds(root, table)
    private = layout('TTD_KIND_PRIVATE')
    check(table[-1][0] == f'0x{private:X} and up', 'private kinds')
    columns = tables(section(payload_of_events(spec), 'Events'))[1]
    check(len(columns) == layout('TTD_COLUMN_COUNT'), 'number of columns')
    for number, name, _ in columns:
        check(str(layout('TTD_COLUMN_' + name)) == number, f'column {name}')
    magic = re.search(r'magic \| `([^`]*)`', spec)[1]
    check(layout.values['TTD_MAGIC_BYTES'].replace('0x', '').replace(',', '') == magic, 'magic')


def limits(layout, spec):
    found = dict(tables(section(spec, 'Limits'))[0])
    expected = {
        'stored_size, raw_size': f'{layout("TTD_PAYLOAD_MAX") >> 20} MiB each',
        'raw_size of codec 1': '255 × stored_size + 64',
        'record_count': f'{layout("TTD_RECORDS_MAX")}, and raw_size: every record costs at least one byte',
        'string, data of a user event': f'{layout("TTD_STRING_MAX")} bytes',
        'depth of a stack': f'{layout("TTD_STACK_DEPTH_MAX")} frames',
        'frames of a symbol': str(layout('TTD_SYMBOL_FRAME_MAX')),
        'addresses of frames': str(layout('TTD_FRAMES_MAX')),
        'registers of a fatal signal': str(layout('TTD_REGISTERS_MAX')),
        'parameters of an event': str(layout('TTD_PARAMETERS_MAX')),
        'build-id': f'{layout("TTD_BUILD_ID_MAX")} bytes',
    }
    check(found == expected, f'limits: {found}')
    for text in (f'at most {layout("TTD_VARINT_MAX")} bytes',
                 f'a power of two from {layout("TTD_PAGE_SIZE_MIN")} to {layout("TTD_PAGE_SIZE_MAX")}',
                 f'link_count, 1 to {layout("TTD_INDEX_LINKS_MAX")}',
                 f'1 to {layout("TTD_INDEX_ENTRIES_MAX")}',
                 f'newest\n{layout("TTD_PLACE_MAX")} can be named',
                 f'{layout("TTD_END_CHUNK_SIZE")} with its header',
                 f'multiple of {layout("TTD_ALIGNMENT")} bytes',
                 f'by {layout("TTD_ADDRESS_ROTATION")} bits to the right',
                 f'b < 0x{layout("TTD_SHAPE_ONE_BYTE"):X}:', f'b < 0x{layout("TTD_SHAPE_ESCAPE"):X}:',
                 f'0x{layout("TTD_SHAPE_TWO_BYTES"):X} + (next 2 bytes'):
        check(text in spec, f'not in the document: {text!r}')


def values(layout, spec):
    """Values in running text: `name number` in lists."""
    def each(prefix, names, form='{name} {value}'):
        for constant, name in names.items():
            text = form.format(name=name, value=layout(prefix + constant))
            check(text in spec, f'not in the document: {text!r}')

    each('TTD_ACTION_', {name.upper(): name for name in (
        'Alloc', 'ReAlloc', 'Free', 'Create', 'Protect', 'Lock', 'Unlock', 'Destroy')})
    each('TTD_TRACE_', {'DERIVED': 'derived', 'INHERITS': "inherits the parent's live blocks",
                        'RECOVERED': 'recovered', 'ATTACHED': 'attached'}, '{value} {name}')
    each('TTD_ARCH_', {'UNKNOWN': 'unknown', 'X86_64': 'x86-64', 'AARCH64': 'AArch64', 'X86': 'x86',
                       'ARM': 'ARM', 'RISCV64': 'RISC-V 64'}, '{value} {name}')
    each('TTD_END_REASON_', {'UNKNOWN': 'unknown', 'EXITED': 'exited', 'SIGNALED': 'killed by a signal',
                      'DETACHED': 'recorder detached', 'NOT_RECORDED': 'not recorded'},
         '{value} {name}')
    each('TTD_LOSS_', {'UNKNOWN': 'unknown', 'OVERFLOW': 'overflow of buffers',
                       'REENTRANT': 'reentrant call', 'NOT_RECORDING': 'recording was off',
                       'DAMAGE': 'damage'}, '{value} {name}')
    each('TTD_BLOCKS_', {'KEYFRAME': 'keyframe', 'SNAPSHOT': 'snapshot',
                         'RUNTIME': 'kept by the runtimes'}, '{value} {name}')
    each('TTD_MEMORY_', {'READ': 'read', 'WRITE': 'write', 'EXECUTE': 'execute',
                         'SHARED': 'shared'}, '{value} {name}')
    each('TTD_SNAPSHOT_', {'BLOCKS': 'blocks', 'REFERENCES': 'references', 'MEMORY': 'memory',
                           'STOPPED': 'all threads were stopped', 'INCOMPLETE': 'incomplete',
                           'COPIED': 'read from a copy',
                           'UNKNOWN': 'unknown', 'REQUESTED': 'asked for from outside',
                           'INTERVAL': 'interval', 'PROGRAM': 'the program asked',
                           'EXIT': 'end of the program', 'SIGNAL': 'a fatal signal'},
         '{value} {name}')
    each('TTD_REGION_', {'HEAP': 'heap (memory', 'MODULE': 'data of a module', 'STACK': 'stack',
                         'REGISTERS': 'registers', 'TLS': 'thread-local storage',
                         'ANONYMOUS': 'anonymous mapping', 'FILE': 'shared mapping'},
         '{value} {name}')
    each('TTD_CODEC_', {'RAW': 'raw', 'LZ4': 'LZ4 block', 'ZSTD': 'zstd frame'}, '{value} {name}')
    masks = {'TTD_TRACE_FLAGS_MASK': 15, 'TTD_CHUNK_FLAGS_MASK': 1, 'TTD_CHUNK_CRITICAL': 1,
             'TTD_SNAPSHOT_CONTENTS_MASK': 7, 'TTD_SNAPSHOT_FLAGS_MASK': 7,
             'TTD_REFERENCE_ROTATION': 3, 'TTD_REFERENCE_COLUMN_COUNT': 3,
             'TTD_PACKED_REFERENCE_COLUMN_COUNT': 4, 'TTD_REFERENCE_LOW_BITS': 7,
             'TTD_REFERENCE_SIZE': 8, 'TTD_HEADERS_FLAGS_MASK': 7, 'TTD_HEADERS_BROKEN': 1,
             'TTD_HEADERS_BUSY': 2, 'TTD_HEADERS_DERIVED': 4,
             'TTD_MEMORY_MASK': 15, 'TTD_BLOCKS_LAST': 1, 'TTD_MAP_LAST': 1,
             'TTD_USER_EVENT_KEYFRAME': 1, 'TTD_FORM_OUTCOME': 3, 'TTD_FORM_ADDRESS': 1 << 2,
             'TTD_FORM_BASE': 1 << 3, 'TTD_FORM_SIZE': 1 << 4, 'TTD_FORM_PARAMETERS': 3 << 5,
             'TTD_FORM_MASK': 127, 'TTD_TIME_THREAD': 1, 'TTD_TIME_START': 3 << 1,
             'TTD_TIME_END': 7 << 3, 'TTD_TIME_MASK': 63, 'TTD_TIME_END_NEVER': 4,
             'TTD_PAGE_FIRST': 3, 'TTD_PAGE_ZERO': 0, 'TTD_PAGE_UNREADABLE': 1,
             'TTD_PAGE_NOT_CAPTURED': 2}
    for name, value in masks.items():
        check(layout(name) == value, f'{name} is {layout(name)}, in the document {value}')


def apis(root, spec):
    """The table of APIs has the values and templates of the code."""
    source = (root / 'libtrace/include/ttdtrace/apis.h').read_text()
    code = {int(value): (text, template or 'none') for value, text, template in re.findall(
        r'ROW\(\w+, (\d+), "([^"]*)",[\s\\]+(?:"\w+"|NULL), (?:"(\w+)"|NULL),', source)}
    document = {}
    for row in tables(section(spec, 'APIs'))[0]:
        for number, name, template in (row[:3], row[3:]):
            document[int(number)] = (name.replace('\\', ''), template)
    check(document.keys() == code.keys(), 'numbers of APIs')
    for number, (name, template) in document.items():
        mine = code.get(number, ('', ''))
        check((mine[0].replace('operator ', ''), mine[1]) == (name, template),
              f'API {number}: {name}, {template} but {mine}')
    return len(document)


def main():
    root = pathlib.Path(sys.argv[1])
    spec = (root / 'spec/format.md').read_text()
    count = requirements(root, spec)
    layout = layouts(root, spec)
    kinds_and_columns(root, layout, spec)
    limits(layout, spec)
    values(layout, spec)
    functions = apis(root, spec)
    print(*problems, sep='\n')
    print(f'{count} requirements, {len(layout.used)} constants, {functions} APIs, '
          f'{len(problems)} problems')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
