"""Ledgers of consumers, and the judge who reads them when all is over.

A ledger is what one process wrote, a line of JSON with one write for each thing that happened (the head of tests/tools/consumer.c has the words), so a
process that was killed leaves whole lines. All have the same clock. From them alone follows what the fleet did: who got which message when and under
which token, with which attempt counter, when its work began and ended, and what the server answered. The judge believes nobody else.

A message is named by its key and its number in it; numbers of a key go up from 0 without gaps."""
import collections
import json
from dataclasses import dataclass, field

ANSWERED_WELL = ("settled", "unsure", "sent")


@dataclass
class Delivery:
    """A message at a consumer; times in milliseconds."""
    consumer: "Ledger"
    key: str
    number: int
    token: int
    retry: int
    at: float
    begun_at: float = None
    done_at: float = None
    outcome: str = None
    closed_at: float = None

    @property
    def message(self):
        return self.key, self.number

    def __str__(self):
        return (f"{self.key}/{self.number} at {self.consumer.name}: token {self.token}, retry {self.retry}, came {self.at:.1f}, begun {self.begun_at}, "
                f"done {self.done_at}, {self.outcome} at {self.closed_at}")


@dataclass
class Ledger:
    """What one process did. `ended_by`: how it was made to end, "kill" or another word; `end_asked_at`: when that was."""
    name: str
    ended_by: str = ""
    end_asked_at: float = None
    deliveries: list = field(default_factory=list)
    lines: list = field(default_factory=list)    # those that are about no message
    open: dict = field(default_factory=dict)     # by id: deliveries without an outcome

    def take(self, line):
        what, at = line["what"], line["t"]
        if what == "event":
            delivery = Delivery(self, line["key"], line["revision"], line["token"], line["retry"], at)
            self.deliveries.append(delivery)
            self.open.setdefault(line["id"], []).append(delivery)
        elif what == "begin":
            self.open[line["id"]][-1].begun_at = at
        elif what == "done":
            self.open[line["id"]][-1].done_at = at
        elif what == "settled":
            self.close(line["id"], line["outcome"], at)
        else:
            self.lines.append(line)

    def close(self, name, outcome, at):
        """The answer is for the oldest one that was done, or else for the oldest."""
        waiting = self.open.get(name, [])
        if not waiting:
            return
        delivery = next((one for one in waiting if one.done_at is not None), waiting[0])
        waiting.remove(delivery)
        delivery.outcome, delivery.closed_at = outcome, at

    def first(self, what):
        return next((line for line in self.lines if line["what"] == what), None)


def read_ledger(path, name, ended_by="", end_asked_at=None):
    ledger = Ledger(name, ended_by, end_asked_at)
    with open(path, encoding="utf-8") as lines:
        for text in lines:
            if text.endswith("\n"):
                ledger.take(json.loads(text))
    return ledger


@dataclass
class Verdict:
    """Lists of what was found; empty is good, except where it says otherwise."""
    lost: list = field(default_factory=list)         # messages that nobody finished
    twice: list = field(default_factory=list)        # deliveries that were begun although an earlier one was finished, or ran on
    excused: list = field(default_factory=list)      # the same, after a kill in the middle of the work: this is allowed
    ahead: list = field(default_factory=list)        # deliveries begun while a lower number of the key was unfinished
    overcharged: list = field(default_factory=list)  # deliveries whose counter tells more than the work that was begun
    charged: list = field(default_factory=list)      # deliveries with a counter above 0: fair or not
    unasked: list = field(default_factory=list)      # deliveries after their consumer had its Stopped

    def faults(self):
        """Sentences, at most three of each kind."""
        kinds = ("lost", "twice", "ahead", "overcharged", "unasked")
        return [f"{kind}: {len(getattr(self, kind))}, such as {one}" for kind in kinds for one in getattr(self, kind)[:3]]


def by_message(ledgers):
    """Deliveries of each message, in the order in which they were given out."""
    found = collections.defaultdict(list)
    for ledger in ledgers:
        for delivery in ledger.deliveries:
            found[delivery.message].append(delivery)
    for deliveries in found.values():
        deliveries.sort(key=lambda one: (one.token, one.at))
    return found


def was_killed_in_the_middle(delivery):
    return delivery.consumer.ended_by == "kill" and delivery.begun_at is not None and delivery.closed_at is None


def judge_one(verdict, deliveries):
    """All deliveries of one message."""
    begun_count, innocent = 0, True
    for delivery in deliveries:
        if delivery.retry > 0:
            verdict.charged.append(delivery)
        if delivery.retry > begun_count:
            verdict.overcharged.append(delivery)
        if delivery.begun_at is None:
            continue
        if begun_count > 0:
            (verdict.excused if innocent else verdict.twice).append(delivery)
        begun_count += 1
        innocent = was_killed_in_the_middle(delivery)


def judge_order(verdict, messages, keys):
    """Along each key: a number is not begun before all lower ones are finished."""
    for key, count in keys.items():
        free_at = 0
        for number in range(count):
            deliveries = messages.get((key, number), [])
            verdict.ahead += [one for one in deliveries if one.begun_at is not None and one.begun_at < free_at]
            free_at = max(free_at, min((one.done_at for one in deliveries if one.done_at is not None), default=free_at))


def after_stopped(ledger):
    """What came after a Stopped in the same call, which must be nothing; a new call, or taking the stop back, begins anew."""
    shut_at, found = None, []
    spans = []
    for line in ledger.lines:
        if line["what"] == "stopped" and shut_at is None:
            shut_at = line["t"]
        elif line["what"] in ("connected", "resumed") and shut_at is not None:
            spans.append((shut_at, line["t"]))
            shut_at = None
    if shut_at is not None:
        spans.append((shut_at, float("inf")))
    for first, last in spans:
        found += [one for one in ledger.deliveries if first < one.at < last]
    return found


def judge(ledgers, keys):
    """keys: how many messages each key has."""
    verdict, messages = Verdict(), by_message(ledgers)
    for deliveries in messages.values():
        judge_one(verdict, deliveries)
    verdict.lost = [(key, number) for key, count in keys.items() for number in range(count)
                    if not any(one.done_at is not None for one in messages.get((key, number), []))]
    judge_order(verdict, messages, keys)
    verdict.unasked = [one for ledger in ledgers for one in after_stopped(ledger)]
    return verdict


@dataclass
class Waits:
    """How long messages waited for the next consumer after theirs was made to end, in milliseconds."""
    unstarted: list = field(default_factory=list)
    unstarted_behind: list = field(default_factory=list)   # behind a started one of the same key, which keeps its place
    started: list = field(default_factory=list)


def waits(ledgers, ended_by):
    """Of consumers that ended in one of these ways. What a consumer had finished waits for nobody."""
    messages, found = by_message(ledgers), Waits()
    for ledger in ledgers:
        if ledger.ended_by not in ended_by:
            continue
        held = [one for one in ledger.deliveries if one.done_at is None and (one.closed_at is None or one.closed_at >= ledger.end_asked_at)]
        busy = {one.key for one in held if one.begun_at is not None}
        for one in held:
            later = next((other for other in messages[one.message] if other.token > one.token), None)
            if later is None:
                continue
            kind = found.started if one.begun_at is not None else found.unstarted_behind if one.key in busy else found.unstarted
            kind.append(max(0.0, later.at - ledger.end_asked_at))
    return found
