# SPDX-License-Identifier: MIT
"""fleet/: ClickHouse and DuckDB load ten thousand generated digests and a hundred of traces, and
answer the ten questions as a model in Python does."""

import collections
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from support import Script, TestCase, npm_package

FLEET = pathlib.Path(os.environ["TTD_SOURCE"]) / "fleet"
GENERATED, SITES, REAL = 10000, 8, 100
PATIENCE = 120

CONFIG = """<yandex>
  <logger><level>warning</level><log>{0}/log</log><errorlog>{0}/errors</errorlog></logger>
  <tcp_port>{1}</tcp_port><listen_host>127.0.0.1</listen_host>
  <path>{0}/data/</path><tmp_path>{0}/tmp/</tmp_path><users_config>{0}/users.xml</users_config>
  <mark_cache_size>16777216</mark_cache_size><timezone>UTC</timezone>
  <default_profile>default</default_profile><default_database>default</default_database>
</yandex>"""
USERS = """<yandex>
  <profiles><default/></profiles><quotas><default/></quotas>
  <users><default>
    <password/><profile>default</profile><quota>default</quota>
    <networks><ip>127.0.0.1</ip></networks>
  </default></users>
</yandex>"""
# Prints the rows of each query as JSON.
DUCKDB = """
const {DuckDBInstance} = require(process.argv[1]);
const read = name => require('fs').readFileSync(process.argv[2] + '/' + name + '.sql', 'utf8');
(async () => {
    const connection = await (await DuckDBInstance.create(':memory:')).connect();
    await connection.run(read('schema'));
    await connection.run(read('load'));
    const answers = [];
    for (const query of read('queries').split(';').slice(0, -1))
        answers.push((await connection.runAndReadAll(query)).getRowsJson());
    console.log(JSON.stringify(answers));
})();
"""


def crafted(template):
    """Digests for which each part of each question matters: without it, another answer is right. They
    have two builds of a program that began at the same time; sums that are ten times what they were
    before, at most, or equal; functions that few or just enough blocks of are temporary; a function that
    loses at two places; sites on most hosts; unnamed sites with the largest sums; all ways to end."""
    trace_id = 0xc0000000

    def trace(build_id, sites, **others):
        nonlocal trace_id
        trace_id += 1
        return json.dumps({**template, "trace_id": f"0x{trace_id:x}", "program": "crafted",
                           "build_id": build_id, "start_time": "2027-01-01T00:00:00Z",
                           "sites": sites, **others})

    def site(fingerprint, function, lost=0, temporary=0, allocations=1):
        sums = dict.fromkeys(template["others"], 0)
        del sums["sites"]
        return {"fingerprint": fingerprint * 32, "function": function, "module": "crafted", **sums,
                "lost_blocks": int(lost > 0), "lost_bytes": lost, "temporary": temporary,
                "allocations": allocations}

    unnamed = {**site("0", ""), "sites": 1, "lost_bytes": 10**13, "temporary": 10**11,
               "allocations": 10**11, "lost_blocks": 1}
    for name in ("fingerprint", "function", "module"):
        del unnamed[name]
    before = [site("1", "tenfold", 10**11), site("2", "ninefold", 10**11)]
    now = [site("1", "tenfold", 10**12), site("2", "ninefold", 95 * 10**10),
           site("4", "twice", 10**12), site("3", "zero", 5 * 10**11), site("5", "twice", 10**12),
           site("6", "seldom", 0, 10**10, 10**11), site("7", "fifth", 0, 2 * 10**10, 10**11),
           site("9", "last", 0, 4 * 10**10, 10**11), site("8", "fourth", 0, 4 * 10**10, 10**11)]
    yield trace("aa", before, reasons=["z: a reason", "a: a reason"], certain=False)
    yield trace("bb", now, others=unnamed)
    yield trace("bb", [site("3", "one", 5 * 10**11)], others=unnamed)
    for code in range(60):
        spread = [site("b", f"from {code}", 7), site("a", f"from {code}", 7)]
        yield trace("bb", spread, end_reason="killed", end_code=code % 20, host=f"host {code}",
                    others=unnamed, lost_bytes=None)
        yield trace("bb", [], end_reason="detached", end_code=None)


def top(rows, *keys, limit=20):
    """Rows by keys, of which a number is the index of a column from the largest down."""
    for key in reversed(keys):
        rows = sorted(rows, key=lambda row: row[abs(key) - 1], reverse=key < 0)
    return rows[:limit]


class Model:
    """The referee: the ten answers, from the digests themselves."""

    def __init__(self, digests):
        self.traces = digests
        self.sites = [(trace, {name: int(value) if name.endswith(("bytes", "blocks", "allocations",
                                                                  "temporary")) and
                                     value is not None else value or ""
                               for name, value in site.items()})
                      for trace in digests for site in trace["sites"]]

    def sums(self, key, *values, of=None):
        """By key, the sums of functions of traces."""
        groups = collections.defaultdict(lambda: [0] * len(values))
        for trace in self.traces if of is None else of:
            for i, value in enumerate(values):
                groups[key(trace)][i] += value(trace)
        return groups

    def newest(self):
        newest = {}
        for trace in sorted(self.traces, key=lambda trace: (trace["start_time"] or
                            "1970-01-01T00:00:00Z", trace["trace_id"])):
            newest[trace["program"]] = trace["build_id"]
        return newest

    def lost(self, key):
        """By key, of sites that lose: sets of traces and hosts, blocks and bytes."""
        groups = {}
        for trace, site in self.sites:
            if not site["lost_bytes"]:
                continue
            group = groups.setdefault(key(trace, site), [set(), set(), 0, 0])
            group[0].add(trace["trace_id"])
            group[1].add(trace["host"])
            group[2] += site["lost_blocks"]
            group[3] += site["lost_bytes"]
        return groups

    def newly_lost(self):
        newest, names = self.newest(), {}
        sums = collections.defaultdict(lambda: [0, 0])
        for trace, site in self.sites:
            key = trace["program"], site["fingerprint"]
            names[key] = min(names.get(key, site["function"]), site["function"])
            is_before = trace["build_id"] != newest[trace["program"]]
            sums[key][is_before] += site["lost_bytes"] or 0
        return top([(*key, names[key], *lost) for key, lost in sums.items()
                    if lost[0] > 10 * lost[1]], -4, 2)

    def functions(self):
        return top([(name, len(group[0]), group[2], group[3]) for name, group in
                    self.lost(lambda _, site: site["function"]).items() if name], -4, 1)

    def reasons(self):
        groups = collections.defaultdict(list)
        for trace in self.traces:
            for reason in trace["reasons"]:
                groups[reason].append(trace["host"])
        return top([(reason, len(hosts), len(set(hosts))) for reason, hosts in groups.items()],
                   -2, 1, limit=None)

    def ends(self):
        ends = collections.Counter((trace["program"], trace["end_reason"] or "",
                                    trace["end_code"] or 0) for trace in self.traces)
        return top([(*key, count) for key, count in ends.items() if key[1] != "exited" or key[2]],
                   -4, 1, 2, 3)

    def peaks(self):
        groups = collections.defaultdict(list)
        for trace in self.traces:
            groups[trace["program"], trace["build_id"] or ""].append(trace)
        rows = [(program, min(trace["start_time"] or "" for trace in group), build, len(group),
                 sum(trace["peak_bytes"] for trace in group) // len(group),
                 max(trace["peak_bytes"] for trace in group))
                for (program, build), group in groups.items()]
        return [(row[0], *row[2:]) for row in sorted(rows)]

    def hosts(self):
        sums = self.sums(lambda trace: trace["host"], lambda trace: 1,
                         lambda trace: trace["lost_bytes"] or 0)
        return top([(host, *counts) for host, counts in sums.items()], -3, 1)

    def temporary(self):
        sums = collections.defaultdict(lambda: [0, 0])
        for _, site in self.sites:
            sums[site["function"]][0] += site["temporary"]
            sums[site["function"]][1] += site["allocations"]
        return top([(name, part, 100 * part // whole) for name, (part, whole) in sums.items()
                    if name and 100 * part // whole >= 20], -2, 1)

    def everywhere(self):
        names = {}
        for _, site in self.sites:
            if site["lost_bytes"]:
                key = site["fingerprint"]
                names[key] = min(names.get(key, site["function"]), site["function"])
        lost = self.lost(lambda trace, site: (trace["program"], site["fingerprint"]))
        return top([(*key, names[key[1]], len(group[1]), group[3])
                    for key, group in lost.items()], -4, -5, 2)

    def days(self):
        sums = self.sums(lambda trace: (trace["start_time"][:10], trace["program"]),
                         lambda trace: 1, lambda trace: trace["live_bytes"])
        return sorted((*key, count, live // count) for key, (count, live) in sums.items())

    def errors(self):
        sums = self.sums(lambda trace: (trace["program"], trace["build_id"] or ""),
                         lambda trace: trace["errors"] > 0, lambda trace: trace["errors"])
        return top([(*key, *counts) for key, counts in sums.items() if counts[1]], -4, 1, 2,
                   limit=None)

    def answers(self):
        return [[[str(value) for value in row] for row in question()] for question in (
            self.newly_lost, self.functions, self.reasons, self.ends, self.peaks, self.hosts,
            self.temporary, self.everywhere, self.days, self.errors)]


class Fleet(TestCase):
    maxDiff = 2000
    # The rows of load.py, and the answers; made once.
    rows = expected = None

    def digests(self):
        """Generated ones, and the digests of a hundred traces, one of which has two digests."""
        paths = []
        for number in range(REAL):
            script = Script(id=number + 1, pid=number + 2,
                            start_time=(1767225600 + 600 * number) * 10**9)
            script.add("module", path=f"/opt/program{number % 3}", bias=1 << 24, begin=1 << 24,
                       end=2 << 24, position="0:0", build_id=f"{number % 7:02x}" * 20)
            script.add("metadata", key="host", value=f"machine{number % 11}")
            script.add("thread", os=1, position="0:0").add("heap", name="malloc")
            for site in range(20):
                script.add("stack", parent=0, module=1, offset=0x10 * (site + 1))
                script.add("symbol", module=1, offset=0x10 * (site + 1), frames=f"make{site}@a.c@7")
                for block in range(1 + (number + site) % 4):
                    script.alloc(0x1000 * (8 * site + block + 1), 100 + number, stack=site + 1)
                    if (number * site + block) % 3:
                        script.free(0x1000 * (8 * site + block + 1))
            if number % 10 == 0:
                script.add("loss", reason=1, first="0:0", last="9:0", count=3)
                script.free(0x7000000)
            paths.append(self.write(script.close(), f"{number}.ttd"))
        lines = self.run_ok("digest", "--sites", "10", *paths, paths[0]).text.splitlines()
        self.assertEqual(len(lines), REAL + 1)
        generated = subprocess.run([sys.executable, FLEET / "generate.py", str(GENERATED),
                                    str(SITES)], capture_output=True, text=True, check=True)
        lines += generated.stdout.splitlines()
        self.assertEqual(len(lines), REAL + 1 + GENERATED)
        return lines + list(crafted(json.loads(lines[0])))

    def setUp(self):
        super().setUp()
        if not Fleet.expected:
            holder = tempfile.TemporaryDirectory()
            self.addClassCleanup(holder.cleanup)
            Fleet.rows = pathlib.Path(holder.name)
            lines = self.digests()
            subprocess.run([sys.executable, FLEET / "load.py", self.rows], input="\n".join(lines),
                           text=True, check=True)
            Fleet.expected = Model([json.loads(line) for line in
                                    lines[:REAL] + lines[REAL + 1:]]).answers()

    def check(self, database, answers):
        queries = (FLEET / database / "queries.sql").read_text().split(";")[:-1]
        self.assertEqual((len(queries), len(answers)), (10, 10))
        for query, found, expected in zip(queries, answers, self.expected):
            self.assertGreater(len(found), 1, query)
            self.assertEqual(found, expected, query)

    def test_duckdb(self):
        package = npm_package("@duckdb/node-api")
        if not package:
            self.skipTest("the npm package @duckdb/node-api is not installed")
        result = subprocess.run(["node", "-e", DUCKDB, str(package), str(FLEET / "duckdb")],
                                cwd=self.rows, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.check("duckdb", [[[str(value) for value in row] for row in answer]
                              for answer in json.loads(result.stdout)])

    def client(self, *arguments, **options):
        return subprocess.run(["clickhouse-client", "--port", str(self.port), *arguments],
                              capture_output=True, text=True, timeout=PATIENCE, **options)

    def start_server(self):
        """Starts a server, on a port that was free a moment ago. Returns whether it answers."""
        folder = pathlib.Path(self.path(f"clickhouse{self.port}"))
        folder.mkdir()
        (folder / "config.xml").write_text(CONFIG.format(folder, self.port))
        (folder / "users.xml").write_text(USERS)
        server = subprocess.Popen(["clickhouse-server", f"--config-file={folder}/config.xml"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        end = time.monotonic() + PATIENCE
        while server.poll() is None and time.monotonic() < end:
            if self.client("--query", "SELECT 1").returncode == 0:
                return True
            time.sleep(0.2)
        return False

    def test_clickhouse(self):
        for name in ("clickhouse-server", "clickhouse-client"):
            if not shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin"):
                self.skipTest(f"{name} is not installed")
        for _ in range(3):
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.port = free.getsockname()[1]
            if self.start_server():
                break
        else:
            self.fail("no server started")
        result = self.client("--multiquery", input=(FLEET / "clickhouse/schema.sql").read_text())
        self.assertEqual(result.returncode, 0, result.stderr)
        for table in ("traces", "sites"):
            with open(self.rows / f"{table}.json", encoding="utf-8") as rows:
                result = self.client("--query", f"INSERT INTO {table} FORMAT JSONEachRow",
                                     stdin=rows)
            self.assertEqual(result.returncode, 0, result.stderr)
        answers = []
        for query in (FLEET / "clickhouse/queries.sql").read_text().split(";")[:-1]:
            result = self.client("--format", "TabSeparatedRaw", "--query", query)
            self.assertEqual(result.returncode, 0, result.stderr)
            answers.append([line.split("\t") for line in result.stdout.splitlines()])
        self.check("clickhouse", answers)


if __name__ == "__main__":
    unittest.main()
