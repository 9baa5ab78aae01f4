#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures the page of `ttdanalyze report`: how long it takes to make, how large it is beside its
trace, how soon a browser shows it, and the time of a step of the cursor. Prints a report.

The trace is recorded of a real program: Python, with malloc for its own objects. The browser is
Debian's Chromium without a window, which draws without a graphics processor.
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

import record
from usage import usage_of

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'tests' / 'viewer'))
import browser  # pylint: disable=wrong-import-position

STEPS = 300

# Resolves to the milliseconds from the navigation to the first picture with data.
SHOWN = """new Promise((done) => {
  const look = () => (document.body.dataset.state === 'ready'
    ? requestAnimationFrame(() => setTimeout(() => done(performance.now()), 0))
    : requestAnimationFrame(look));
  look();
})"""

# Resolves to the milliseconds of one step: all that a tick shows is computed, drawn and laid out. Each
# begins behind a picture: a browser keeps the drawing of canvases without one, and then a step pays
# for the pictures of fifty.
STEP = """(async () => {
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  heapPage.state.values.at = %d;
  const begin = performance.now();
  heapPage.draw();
  document.body.offsetHeight;
  return performance.now() - begin;
})()"""

# Resolves to the milliseconds from the navigation until an exact page answers at every call.
ANSWERS = """(async () => {
  while (document.body.dataset.state !== 'ready') await new Promise((done) => setTimeout(done, 5));
  await heapPage.exact.done;
  return performance.now();
})()"""


def measure_page(page, rounds):
    """Returns the seconds to the first picture, and of steps to neighbours and to any tick."""
    chromium = browser.start('chromium')
    shown = []
    try:
        for _ in range(rounds):
            chromium.open('about:blank')
            chromium.open(page.as_uri())
            shown.append(chromium.evaluate(SHOWN) / 1e3)
        last = chromium.evaluate('heapPage.heap.last')
        near = [chromium.evaluate(STEP % (i % (last + 1))) / 1e3 for i in range(STEPS)]
        far = [chromium.evaluate(STEP % random.randrange(last + 1)) / 1e3 for _ in range(STEPS)]
    finally:
        chromium.close()
    return {'shown': statistics.median(shown), 'ticks': last + 1,
            'step_median': statistics.median(near), 'step_worst': max(near),
            'jump_median': statistics.median(far), 'jump_worst': max(far)}


def measure_exact(page, rounds):
    """Returns the seconds to the first picture of an exact page, and until it answers."""
    chromium = browser.start('chromium')
    try:
        shown, answers = [], []
        for _ in range(rounds):
            chromium.open('about:blank')
            chromium.open(page.as_uri())
            shown.append(chromium.evaluate(SHOWN) / 1e3)
            answers.append(chromium.evaluate(ANSWERS) / 1e3)
    finally:
        chromium.close()
    return {'exact_shown': statistics.median(shown), 'exact_answers': statistics.median(answers)}


def measure(analyzer, trace, rounds):
    info = json.loads(subprocess.check_output([analyzer, 'info', '--format', 'json', trace]))
    page = trace.with_suffix('.html')
    runs = [usage_of([analyzer, 'report', '-o', page, trace]) for _ in range(rounds)]
    result = {'events': info['events'], 'trace_bytes': info['file_bytes'],
              'seconds': statistics.median(usage.seconds for usage in runs),
              'processor_seconds': statistics.median(usage.processor for usage in runs),
              'resident': max(usage.resident for usage in runs),
              'page_bytes': page.stat().st_size}
    exact = trace.with_suffix('.exact.html')
    subprocess.run([analyzer, 'report', '--exact', '-o', exact, trace], check=True)
    result['exact_bytes'] = exact.stat().st_size
    lacking = browser.missing('chromium')
    if lacking:
        print(f'not installed: {lacking}; nothing is measured in a browser', file=sys.stderr)
        return result
    return result | measure_page(page, rounds) | measure_exact(exact, rounds)


def report(result):
    goal = 0.03 * result['trace_bytes'] + 300e3
    print(f"{result['events']:,} events, {result['trace_bytes'] / 1e6:.1f} MB")
    print(f"  report  {result['seconds']:.2f} s, "
          f"{result['events'] / result['seconds'] / 1e6:.1f} M events/s, "
          f"{result['processor_seconds']:.2f} s of processor time, "
          f"{result['resident'] / 1e6:.0f} MB resident")
    print(f"  page    {result['page_bytes'] / 1e3:.0f} kB; 3 % of the trace and 300 kB are "
          f'{goal / 1e3:.0f} kB')
    goal = 1.1 * result['trace_bytes'] + 300e3
    print(f"  exact   {result['exact_bytes'] / 1e6:.2f} MB; 1.1 times the trace and 300 kB are "
          f'{goal / 1e6:.2f} MB')
    if 'shown' in result:
        print(f"  browser first picture after {result['shown']:.2f} s; of {result['ticks']} ticks the "
              f"next takes {result['step_median'] * 1e3:.1f} ms, {result['step_worst'] * 1e3:.1f} at "
              f"worst, any other {result['jump_median'] * 1e3:.1f} ms, "
              f"{result['jump_worst'] * 1e3:.1f} at worst; an exact page shows its first picture "
              f"after {result['exact_shown']:.2f} s and answers after {result['exact_answers']:.2f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', default='build', help='the build directory (release) to measure')
    parser.add_argument('--documents', type=int, default=100, help='the length of the workload')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--json', action='store_true', help='machine-readable results')
    options = parser.parse_args()
    build = pathlib.Path(options.build).resolve()
    random.seed(1)
    with tempfile.TemporaryDirectory() as temporary:
        trace = pathlib.Path(temporary) / 'python.bin'
        subprocess.run([build / 'recorder' / 'ttdrecord', '--no-children', '-q', '-o', trace, '--',
                        '/usr/bin/python3', record.WORKLOADS / 'documents.py',
                        str(options.documents)], check=True, stdout=subprocess.DEVNULL,
                       env=dict(os.environ, PYTHONMALLOC='malloc'))
        result = measure(build / 'analyzer' / 'ttdanalyze', trace, options.rounds)
    if options.json:
        json.dump(result, sys.stdout, indent=2)
        return
    record.print_machine(f'median of {options.rounds} rounds')
    report(result)


if __name__ == '__main__':
    main()
