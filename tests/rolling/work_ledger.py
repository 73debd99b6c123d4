"""What handlers of `sluice work` wrote, and the judge who reads it when all is over.

The side effect is what counts, so those who have it write: an HTTP destination, or handler processes. A line is one write, so that nobody leaves half
a line, whoever is killed:

    MILLISECONDS begin|done ID TOKEN ATTEMPT WORKER

All have the same clock. "done" is written before the answer is given: what has none was not answered. Which messages there were is read from the stream,
and how each worker ended is known by whoever ended it. The judge believes nobody else, least of all the reports of the workers.

A run that was finished is sure when its worker has said so to somebody who does not forget: to the server, or to its ack file. It takes a worker a
moment to do that, so of each worker that was killed the judge is told up to which time everything it had finished must not be done again.

Handlers that outlive their worker are orphans. One that has its message already, in a pipe or a process that only starts, may begin when somebody else has
begun that message, or even finished it. So the runs of a message are judged in the order of their tokens, and only an orphan may begin out of it."""
import collections
from dataclasses import dataclass, field

CLOCK_STEP_MS = 10      # a handler that is a shell knows the time no better

@dataclass
class Run:
    """A message at a handler; times in milliseconds."""
    id: str
    token: int
    attempt: int
    worker: str
    begun_at: float
    done_at: float = None

    def __str__(self):
        return f"{self.id} at {self.worker}: token {self.token}, attempt {self.attempt}, begun {self.begun_at:.1f}, done {self.done_at}"


@dataclass
class Kill:
    """The end of a worker; times as those of the runs."""
    at: float
    sure_at: float      # what it had finished until then must not be done again


@dataclass
class Verdict:
    """Lists of what was found."""
    lost: list = field(default_factory=list)         # messages that nobody finished
    unknown: list = field(default_factory=list)      # runs of messages that nobody appended
    twice: list = field(default_factory=list)        # runs after one that was finished for sure, or that nobody cut off
    stale: list = field(default_factory=list)        # runs that began after one with a later token, or have the same
    excused: list = field(default_factory=list)      # runs after one that a kill cut off: these are allowed
    charged: list = field(default_factory=list)      # runs whose attempt is not the first
    overcharged: list = field(default_factory=list)  # runs whose attempt tells more than the runs before it

    def faults(self):
        """Sentences, at most three of each kind."""
        kinds = ("lost", "unknown", "twice", "stale")
        return [f"{kind}: {len(getattr(self, kind))}, such as {one}" for kind in kinds for one in getattr(self, kind)[:3]]


def read_runs(lines):
    """A run without a beginning, or with two ends, is a fault of the handler: it is not overlooked."""
    runs, by_name = [], {}
    for line in lines:
        at, what, name, token, attempt, worker = line.split()
        key = (name, token, worker)
        if what == "begin":
            by_name[key] = Run(name, int(token), int(attempt), worker, float(at))
            runs.append(by_name[key])
        elif by_name[key].done_at is not None:
            raise ValueError(f"a second end of the same run: {line}")
        else:
            by_name[key].done_at = float(at)
    return runs


def was_cut_off(run, killed):
    """Nobody can be sure that it is finished: its worker was killed before it could tell."""
    kill = killed.get(run.worker)
    return kill is not None and (run.done_at is None or run.done_at > kill.sure_at)


def is_orphan(run, killed):
    """It began when its worker was dead."""
    kill = killed.get(run.worker)
    return kill is not None and run.begun_at > kill.at - CLOCK_STEP_MS


def is_stale(run, before, after, killed):
    if any(one.token == run.token for one in before):
        return True
    return any(one.begun_at < run.begun_at for one in after) and not is_orphan(run, killed)


def judge_one(verdict, runs, killed):
    """All runs of one message, in the order of their tokens."""
    for count, run in enumerate(runs):
        before, after = runs[:count], runs[count + 1:]
        if run.attempt > 1:
            verdict.charged.append(run)
        if run.attempt > count + 1:
            verdict.overcharged.append(run)
        if is_stale(run, before, after, killed):
            verdict.stale.append(run)
        if before:
            is_excused = all(was_cut_off(one, killed) for one in before)
            (verdict.excused if is_excused else verdict.twice).append(run)


def by_message(runs):
    """The runs of each, in the order of their tokens."""
    found = collections.defaultdict(list)
    for run in sorted(runs, key=lambda run: run.token):
        found[run.id].append(run)
    return found


def judge(runs, messages, killed):
    """messages: the ids of all there are. killed: the Kill of each worker that was, by its name."""
    verdict, messages_run = Verdict(), by_message(runs)
    for runs_of_one in messages_run.values():
        judge_one(verdict, runs_of_one, killed)
    verdict.lost = [name for name in messages if not any(run.done_at is not None for run in messages_run.get(name, []))]
    known = set(messages)
    verdict.unknown = [run for run in runs if run.id not in known]
    return verdict
