"""bench/rolling: a rolling deploy, a kill of every consumer and a restart of the server, on our server and on others.

    bench-rolling [--quick] [--runs N] [--peers sluice,redis] [--messages N] [--keep FOLDER]

10,000 messages of 256 bytes and 100 keys, in turns, are there before anybody consumes. 8 consumer processes with a window of 10, four messages at a time,
20 ms of work for each; all keep the order of a key inside of one process. Three runs: each process is ended by SIGTERM and replaced three times; the same with
SIGKILL; and a restart of the server in the middle, under consumers that stay. What happened is read from the ledgers of the processes by the judge
of tests/rolling. It is an error when our server loses a message, does one twice or charges for what was not begun; others are only told of."""
import argparse
import pathlib
import shutil
import signal
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass

from systems import SYSTEMS          # also makes the next two found
from fleet import Member, wait_until
from ledger import by_message, judge, waits

SEATS, ROUNDS = 8, 3
END_S_MAX = 240


@dataclass
class Workload:
    messages: int = 10_000
    keys: int = 100
    window: int = 10
    slots: int = 4
    work_ms: int = 20
    lease_ms: int = 30_000

    def in_turns(self):
        return ((f"stream-{number % self.keys}", number // self.keys) for number in range(self.messages))

    def key_sizes(self):
        return {f"stream-{key}": len(range(key, self.messages, self.keys)) for key in range(self.keys)}


class Run:
    """A system with its consumers, from an empty folder to the last message."""

    def __init__(self, kind, workload, folder):
        self.folder, self.workload = folder, workload
        folder.mkdir(parents=True)
        self.system, self.members, self.seats = kind(folder, workload), [], [None] * SEATS

    def seat(self, seat, name):
        path = self.folder / f"{len(self.members):03}-{name}.ledger"
        self.seats[seat] = Member(self.system.consumer(name), path, name)
        self.members.append(self.seats[seat])

    def done_count(self):
        return sum(member.count("done") for member in self.members)

    def replace_all(self, number, how):
        """In turns, spread over the work."""
        for nth in range(ROUNDS * SEATS):
            share = self.workload.messages * (nth + 1) // (ROUNDS * SEATS + 4)
            wait_until(lambda: self.done_count() >= share, f"{share} messages done on {self.system.name}", END_S_MAX)
            old = self.seats[nth % SEATS]
            wait_until(lambda: old.count("settled") >= 3 or self.done_count() >= self.workload.messages, f"work of {old.name}", END_S_MAX)
            old.end(number, how)
            self.seat(nth % SEATS, f"seat{nth % SEATS}-{nth // SEATS}")

    def restart_server(self):
        wait_until(lambda: self.done_count() >= self.workload.messages // 3, "a third of the messages", END_S_MAX)
        self.system.restart()

    def is_over(self):
        if self.done_count() < self.workload.messages:
            return False
        time.sleep(0.3)              # ledgers are long: not too often
        done = {one.message for member in self.members for one in member.ledger().deliveries if one.done_at is not None}
        return len(done) >= self.workload.messages

    def whole(self, event):
        try:
            self.system.start()
            self.system.fill()
            for seat in range(SEATS):
                self.seat(seat, f"seat{seat}")
            event(self)
            deadline = time.monotonic() + END_S_MAX
            while not self.is_over() and time.monotonic() < deadline:
                time.sleep(0.05)
            for member in self.seats:
                member.process.send_signal(signal.SIGTERM)
                member.process.wait(timeout=60)
        finally:
            self.end()
        ledgers = [member.ledger() for member in self.members]
        return ledgers, judge(ledgers, self.workload.key_sizes())

    def end(self):
        for member in self.members:
            if member.process.poll() is None:
                member.process.kill()
                member.process.wait()
        self.system.stop()


def charged(ledgers):
    """Raised counters without work that was begun, message by message."""
    total = 0
    for deliveries in by_message(ledgers).values():
        begun, most = 0, 0
        for one in deliveries:
            most = max(most, one.retry - begun)
            begun += one.begun_at is not None
        total += most
    return total


def longest_s(numbers):
    return max(numbers, default=0) / 1000


def drain_ms(ledgers):
    """From SIGTERM until it has left; how long an interpreter takes to end after that is not its system's fault."""
    ends = [(ledger.first("ended"), ledger.end_asked_at) for ledger in ledgers if ledger.ended_by == "term"]
    return statistics.median(end["t"] - asked_at for end, asked_at in ends if end)


def graceful(run):
    ledgers, verdict = run.whole(lambda _: run.replace_all(signal.SIGTERM, "term"))
    found = waits(ledgers, ("term",))
    return {"twice": len(verdict.twice), "charged": charged(ledgers), "ahead": len(verdict.ahead), "lost": len(verdict.lost),
            "wait_s": longest_s(found.unstarted + found.unstarted_behind), "drain_ms": drain_ms(ledgers)}


def killed(run):
    ledgers, verdict = run.whole(lambda _: run.replace_all(signal.SIGKILL, "kill"))
    found = waits(ledgers, ("kill",))
    return {"kill_charged": charged(ledgers), "kill_twice": len(verdict.twice), "lost": len(verdict.lost), "kill_ahead": len(verdict.ahead),
            "unstarted_s": longest_s(found.unstarted), "started_s": longest_s(found.started)}


def restarted(run):
    ledgers, verdict = run.whole(Run.restart_server)
    return {"restart_twice": len(verdict.twice), "restart_charged": charged(ledgers), "lost": len(verdict.lost)}


def measure(kind, workload, folder, runs):
    """Medians; of `lost` the sum."""
    found = []
    for nth in range(runs):
        one = {"lost": 0}
        for part in (graceful, killed, restarted):
            result = part(Run(kind, workload, folder / f"{kind.name}-{part.__name__}-{nth}"))
            one["lost"] += result.pop("lost")
            one.update(result)
            print(f"# {kind.name} {part.__name__}: " + ", ".join(f"{name} {value:.3g}" for name, value in result.items()), flush=True)
        found.append(one)
    return {name: sum(one[name] for one in found) if name == "lost" else statistics.median(one[name] for one in found) for name in found[0]}


COLUMNS = (("lost", "lost", "d"), ("twice", "twice", ".0f"), ("charged", "charged", ".0f"), ("ran ahead", "ahead", ".0f"), ("longest wait s", "wait_s", ".2f"),
           ("drain ms", "drain_ms", ".0f"), ("kill: charged", "kill_charged", ".0f"), ("unstarted after s", "unstarted_s", ".2f"),
           ("started after s", "started_s", ".2f"), ("kill: ran ahead", "kill_ahead", ".0f"), ("restart: twice", "restart_twice", ".0f"))


def print_table(results):
    print("\n" + " | ".join([f"{'':<17}", *(title for title, _, _ in COLUMNS)]))
    for name, result in results.items():
        print(" | ".join([f"{name:<17}", *(f"{result[key]:>{len(title)}{form}}" for title, key, form in COLUMNS)]))
    print()
    ours = results.get("sluice")
    for name, theirs in results.items():
        if ours and name != "sluice":
            print(f"ratio kill.unstarted {name} {max(theirs['unstarted_s'], 0.001) / max(ours['unstarted_s'], 0.001):.2f}")
            print(f"ratio drain {name} {theirs['drain_ms'] / max(ours['drain_ms'], 0.001):.2f}")


def complaints(ours):
    wanted = ("lost", "twice", "charged", "ahead", "kill_twice", "kill_charged", "kill_ahead", "restart_twice", "restart_charged")
    return [f"{name} {ours[name]}" for name in wanted if ours[name] != 0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2,500 messages, a lease of 5 s: shows that everything works")
    parser.add_argument("--runs", type=int, default=1, help="medians of so many")
    parser.add_argument("--messages", type=int)
    parser.add_argument("--peers", default=",".join(kind.name for kind in SYSTEMS))
    parser.add_argument("--keep", help="ledgers and logs stay in this folder")
    options = parser.parse_args()
    workload = Workload(messages=options.messages or (2_500 if options.quick else 10_000), lease_ms=5_000 if options.quick else 30_000)
    kinds = [kind for kind in SYSTEMS if kind.name in options.peers.split(",")]
    folder, results = pathlib.Path(options.keep or tempfile.mkdtemp(prefix="bench-rolling-")), {}
    try:
        for kind in kinds:
            if kind.is_there():
                results[kind.name] = measure(kind, workload, folder, options.runs)
            else:
                print(f"# {kind.name} is not installed (tools/setup bench) and is left out", flush=True)
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    print_table(results)
    bad = complaints(results["sluice"]) if "sluice" in results else []
    if bad:
        sys.exit(f"bench-rolling: our server has faults: {', '.join(bad)}")


if __name__ == "__main__":
    main()
