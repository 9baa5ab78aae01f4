# SPDX-License-Identifier: MIT
"""Chunks of events: spec, "Events" and "APIs"."""

from columns import INVALID, MASK, Cursor, require, rotl4, swap, unzigzag

ALLOC, REALLOC, FREE, CREATE, PROTECT = 1, 2, 3, 4, 5
TEMPLATES = dict(enumerate(
    'S XQ BS BXQ B B XS XXS XS S S BS BXS'.split(), 1))
TEMPLATES.update(enumerate(
    'S S SX SX S S SX SX B B BS BX BX BSX B B BS BX BX BSX'.split(), 16))
TEMPLATES.update(enumerate('XFS XFBS XFB FCR XP X X X RC S BS B P'.split(), 48))
TEMPLATES.update(enumerate('SX BSX BSXX BX BSX SX XQX BSX BXQX BS BS BX X X'.split(), 64))
FIELDS = {'S': 'size', 'B': 'base', 'F': 'flags', 'R': 'reserve', 'C': 'commit', 'P': 'read_only'}
GAP_MAX = 65536


class Class:
    def __init__(self, column):
        self.action, self.api, self.form, self.count = (column.u8() for _ in range(4))
        self.heap = column.id()
        self.flags = column.varint()
        self.outcome = self.form & 3
        self.address, self.base, self.size = (bool(self.form & bit) for bit in (4, 8, 16))
        self.parameters = self.form >> 5 & 3
        self.template = TEMPLATES.get(self.api)
        self.check()

    def check(self):
        require(1 <= self.action <= 8, 'action')
        allocates = self.action in (ALLOC, REALLOC)
        releases = self.action in (FREE, REALLOC)
        require(not self.address or (allocates and self.outcome in (1, 2)), 'address')
        require(not self.base or releases, 'base address')
        require(not self.size or allocates or releases, 'size')
        require(self.size or not allocates, 'no size')
        require(self.form < 0x80 and self.parameters < 3 and self.count <= 8, 'form')
        if self.parameters == 0:
            require(self.count == 0, 'parameters')
        if self.parameters == 1:
            require(self.template is not None and len(self.template) == self.count, 'template')

    def releases(self):
        if self.action == FREE:
            return self.outcome != 0
        return self.outcome in (1, 2)


class Shape:
    def __init__(self, of, stack):
        self.of = of
        self.stack = stack
        self.size = 0
        stored = of.count
        if of.parameters == 1:
            stored = of.template.count('X')
        self.stored = [0] * stored


def effect_position(event):
    acquires = event['action'] in (ALLOC, CREATE) and event['end'][0] != INVALID
    return event['end'] if acquires else event['start']


class Times:
    def __init__(self, gaps, forms, values):
        self.gaps, self.forms, self.values = gaps, forms, values
        self.threads = []
        self.known = set()
        self.ends = []
        self.thread = None
        self.effect = (0, 0)
        self.gap = self.next_gap()

    def next_gap(self):
        return self.gaps.varint(GAP_MAX) if self.gaps.left() else None

    @staticmethod
    def add(position, steps):
        require(position[1] + steps <= MASK, 'steps overflow')
        return position[0], position[1] + steps

    def explicit(self, sequence):
        sequence = (sequence + unzigzag(self.values.varint())) & MASK
        return sequence, self.values.varint()

    def read_thread(self):
        index = self.values.varint()
        require(index <= len(self.threads), 'thread')
        if index == len(self.threads):
            number = self.values.id()
            require(number not in self.known, 'thread twice')
            self.known.add(number)
            self.threads.append(number)
            self.ends.append((self.effect[0], 0))
        self.thread = index

    def exception(self):
        form = self.forms.u8()
        require(form and form < 0x40, 'form of times')
        if form & 1:
            self.read_thread()
        require(self.thread is not None, 'no thread')
        sequence = self.effect[0]
        last = self.ends[self.thread]
        kind = form >> 1 & 3
        if kind == 0:
            start = self.add(last, 1)
        elif kind == 1:
            start = ((sequence + 1) & MASK, 0)
        elif kind == 2:
            start = self.add(last, self.values.varint())
        else:
            start = self.explicit(sequence)
        return start, self.read_end(form >> 3, max(sequence, start[0]), start)

    def read_end(self, kind, sequence, start):
        require(kind <= 4, 'form of an end')
        if kind == 0:
            return self.add(start, 1)
        if kind == 1:
            return (sequence + 1) & MASK, 0
        if kind == 2:
            return self.add(start, self.values.varint())
        if kind == 3:
            return self.explicit(sequence)
        return None

    def next(self, never):
        if self.gap == 0:
            start, end = self.exception()
            self.gap = self.next_gap()
        else:
            require(self.thread is not None, 'no thread')
            if self.gap is not None:
                self.gap -= 1
            start = self.add(self.ends[self.thread], 1)
            end = self.add(start, 1)
        require(never == (end is None), 'end of a call that never returned')
        require(start[0] != INVALID, 'invalid start')
        require(end is None or (end[0] != INVALID and start <= end), 'end')
        self.ends[self.thread] = end or start
        return self.threads[self.thread], start, end or (INVALID, MASK)


class Chunk:
    def __init__(self, payload, first, count, unit):
        cursor = Cursor(payload)
        classes = cursor.u32()
        shapes = cursor.u32()
        require(classes <= 65536 and shapes <= 65536, 'number of classes or shapes')
        self.columns = cursor.columns(15)
        self.classes = [Class(self.columns[0]) for _ in range(classes)]
        self.shapes = [None]
        self.read_shapes(shapes)
        require(self.columns[3].left() == count, 'number of events')
        self.first, self.count, self.unit = first, count, unit
        self.following = [0] * (shapes + 1)
        self.last = 0
        self.times = Times(*self.columns[10:13])
        self.freed = []
        self.allocated = []
        self.released = self.acquired = 0
        self.clock = 0
        self.until_clock = self.next_clock()

    def read_shapes(self, count):
        stack = 0
        for _ in range(count):
            index = self.columns[1].varint()
            stack = (stack + unzigzag(self.columns[2].varint())) & MASK
            require(index < len(self.classes) and stack < 1 << 32, 'shape')
            self.shapes.append(Shape(self.classes[index], stack))

    def next_shape(self):
        symbol = self.columns[3].u8()
        if symbol == 0xFF:
            symbol = 0x1FE0 + self.columns[4].fixed(2)
        elif symbol >= 0xE0:
            symbol = 0xE0 + (symbol - 0xE0) * 256 + self.columns[4].u8()
        symbol = symbol or self.following[self.last]
        require(1 <= symbol < len(self.shapes), 'shape of an event')
        self.following[self.last] = self.last = symbol
        return self.shapes[symbol]

    def next_clock(self):
        return self.columns[13].varint(GAP_MAX) if self.columns[13].left() else None

    def wall_time(self):
        if self.until_clock == 0:
            self.clock = (self.clock + unzigzag(self.columns[13].varint())) & MASK
            require(self.clock * self.unit < MASK, 'wall time')
            self.until_clock = self.next_clock()
        elif self.until_clock is not None:
            self.until_clock -= 1
        return self.clock * self.unit

    def base_address(self, releases):
        place = self.columns[6].u8()
        require(place <= len(self.allocated), 'place')
        if place == 0:
            self.released = (self.released + unzigzag(self.columns[8].varint())) & MASK
            address = rotl4(self.released)
            require(address, 'address 0')
        else:
            address = self.allocated[-place]
        if releases:
            if place:
                del self.allocated[-place]
            self.freed.append(address)
        return address

    def address(self):
        place = self.columns[7].u8()
        require(place <= len(self.freed), 'place')
        if place == 0:
            self.acquired = (self.acquired + unzigzag(self.columns[9].varint())) & MASK
            address = rotl4(self.acquired)
            require(address, 'address 0')
        else:
            address = self.freed.pop(-place)
        self.allocated.append(address)
        return address

    def extra(self, event, shape):
        column = self.columns[14]
        of = shape.of
        if of.outcome == 2:
            event['result'] = column.varint()
            require(event['result'] >= 2, 'result')
        if of.action == CREATE:
            event['reserve'] = column.varint()
            event['commit'] = column.varint()
        elif of.action == PROTECT:
            event['read_only'] = column.varint()
        for i, last in enumerate(shape.stored if of.parameters else ()):
            shape.stored[i] = swap(column.varint(), last)
        if of.parameters == 2:
            event['parameters'] = list(shape.stored)
        elif of.parameters == 1:
            event['parameters'] = by_template(of.template, event, list(shape.stored))
            require(event['parameters'] is not None, 'quotient')
        else:
            template = of.template
            if template and 'X' not in template:
                event['parameters'] = by_template(template, event, []) or []

    def next(self, number):
        shape = self.next_shape()
        of = shape.of
        event = {'number': number, 'action': of.action, 'api': of.api, 'heap': of.heap,
                 'stack': shape.stack, 'flags': of.flags, 'result': int(of.outcome == 1),
                 'address': 0, 'base': 0, 'size': 0, 'reserve': 0, 'commit': 0, 'read_only': 0,
                 'parameters': []}
        event['thread'], event['start'], event['end'] = self.times.next(of.outcome == 3)
        position = effect_position(event)
        require(position >= self.times.effect, 'order')
        self.times.effect = position
        event['wall'] = self.wall_time()
        if of.size:
            event['size'] = shape.size = swap(self.columns[5].varint(), shape.size)
        if of.base:
            event['base'] = self.base_address(of.releases())
        if of.address:
            event['address'] = self.address()
        self.extra(event, shape)
        return event

    def read(self):
        events = [self.next(self.first + i) for i in range(self.count)]
        for column in self.columns:
            column.finish()
        return events


def by_template(template, event, stored):
    parameters = []
    for letter in template:
        if letter == 'X':
            parameters.append(stored.pop(0))
        elif letter == 'Q':
            if parameters[-1] == 0 or event['size'] % parameters[-1]:
                return None
            parameters.append(event['size'] // parameters[-1])
        else:
            parameters.append(event[FIELDS[letter]])
    return parameters


def line(event):
    text = ('event n={number:x} action={action:x} api={api:x} thread={thread:x} heap={heap:x} '
            'stack={stack:x} start={start[0]:x}:{start[1]:x} end={end[0]:x}:{end[1]:x} '
            'wall={wall:x} address={address:x} previous={previous:x} base={base:x} size={size:x} '
            'flags={flags:x} result={result:x} reserve={reserve:x} commit={commit:x} '
            'read_only={read_only:x}')
    previous = event['base'] if event['action'] == REALLOC else 0
    text = text.format(previous=previous, **event)
    if event['parameters']:
        text += ' parameters=' + ','.join(f'{value:x}' for value in event['parameters'])
    return text
