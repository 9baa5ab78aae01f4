# SPDX-License-Identifier: MIT
"""ttdanalyze leaks against a model of the heap"""

import random

import support
from support import Script, TestCase


class Model(TestCase):
    """Random traces through the file format, against a model, at every position."""

    def random_script(self, chance):
        events = []
        for _ in range(chance.randrange(1, 25)):
            start = chance.randrange(60)
            end = None if chance.random() < 0.1 else start + chance.randrange(10)
            action = chance.choice(["Alloc"] * 3 + ["Free"] * 2 + ["ReAlloc"] * 3 + ["Destroy"])
            event = {"action": action, "start": start, "end": end, "thread": chance.choice([1, 2]),
                     "result": int(end is not None and chance.random() < 0.9),
                     "heap": chance.choice([1, 2]), "stack": chance.randrange(5)}
            if action in ("Free", "ReAlloc"):
                event["base"] = chance.choice([0, 1, 2, 3, 4]) * 0x1000
            if action in ("Alloc", "ReAlloc"):
                event["size"] = chance.randrange(1, 100)
                event["address"] = chance.choice([0, 1, 2, 3, 4]) * 0x1000 * event["result"]
            if action == "Alloc" and not event["address"]:
                event["result"] = 0
            events.append(event)
        for event in events:
            acquires = event["action"] == "Alloc" and event["end"] is not None
            event["effect"] = event["end"] if acquires else event["start"]
        events.sort(key=lambda event: event["effect"])
        return events

    def live_at(self, events, moment):
        live = {}
        steps = []
        for number, event in enumerate(events):
            if event["action"] == "ReAlloc" and event["result"] and event["address"]:
                at_once = event["end"] == event["start"]
                steps.append((event["end"], 1 if at_once else 0, number, "acquire"))
            steps.append((event["effect"], 1, number, ""))
        for when, _, number, what in sorted(steps, key=lambda s: (s[0], s[1], s[2], s[3])):
            event = events[number]
            action, result, returned = event["action"], event["result"], event["end"] is not None
            if when > moment:
                continue
            if what == "acquire" or (action == "Alloc" and result):
                live[event["heap"], event["address"]] = event
            elif action == "Destroy" and (result or not returned):
                live = {key: e for key, e in live.items() if e["heap"] != event["heap"]}
            elif (action == "Free" and (result or not returned)) or (action == "ReAlloc" and result):
                live.pop((event["heap"], event["base"]), None)
        return live

    def write_events(self, events, name):
        script = Script(events_per_chunk=7).basics()
        for event in events:
            fields = dict(event)
            del fields["effect"]
            fields["start"] = f"{fields['start']:X}:0"
            fields["end"] = "never" if fields["end"] is None else f"{fields['end']:X}:0"
            script.event(**fields)
        return self.write(script.close(), name)

    def test_model(self):
        chance = random.Random(4711)
        for round_number in range(20):
            events = self.random_script(chance)
            path = self.write_events(events, f"trace{round_number}")
            for moment in sorted(chance.sample(range(72), 8)):
                found = self.json_of("leaks", path, "--limit", "0", "--at", f"{moment:X}:7")
                live = self.live_at(events, moment)
                groups = {}
                for event in live.values():
                    blocks, size = groups.get(event["stack"], (0, 0))
                    groups[event["stack"]] = (blocks + 1, size + event["size"])
                self.assertEqual({g["stack_id"]: (g["blocks"], g["bytes"])
                                  for g in found["groups"]}, groups, (round_number, moment))


if __name__ == "__main__":
    support.main()
