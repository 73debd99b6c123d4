"""What the kills of workers have in common, whatever their handler is: who is killed when, what may be done again then, and what the ack file has to hold."""
import signal
import time

from work_fleet import now_ms, wait_until
from work_ledger import by_message
from work_rolling_case import NOTED_MS, SEATS, SLOTS, SURE_MS, WorkRollingCase, round_count

RECONNECT_MS = 300      # of those that are killed and do not come back


class KillCase(WorkRollingCase):
    """Workers are killed at any moment and followed by others; only what they had begun and the server had no answer for may be done again."""

    def begun_at_server(self, seat):
        """What the server knows to be begun there and has no answer for. Nobody may write to it any more; what was on its way when it was asked for
        the first time has been read when it answers for the second time."""
        for _ in range(2):
            rows = [row for row in self.fleet.rows("consumer", "list") if row["name"] == seat.name]
        return sum(row["started"] for row in rows)

    def kill_or_interrupt(self, seat, nth):
        """One in three is killed while it drains, as by an orchestrator that has lost its patience. It may be gone by then. The end comes with
        SIGSTOP: so it can be asked for what the server knew at that moment."""
        old = self.fleet.seats[seat]
        if nth % 3 == 2:
            old.work.send(signal.SIGTERM)
            time.sleep(self.random.uniform(0, 10) / 1000)
        frozen_at = now_ms()
        old.work.send(signal.SIGSTOP)
        begun = self.begun_at_server(old)
        if self.fleet.kill(old, SURE_MS, frozen_at):
            self.unanswered[old.name] = begun

    def kill_again_and_again(self, handler):
        self.make_fleet(handler, words=("--reconnect", f"{RECONNECT_MS}ms"), is_named=True)
        self.unanswered = {}
        self.start_all()
        count = (round_count() + 1) * SEATS
        for nth in range(count):
            self.progress(nth, count)
            self.at_some_moment()
            seat = self.random.randrange(SEATS)
            self.kill_or_interrupt(seat, nth)
            self.fleet.start(seat, f"seat{seat}")
        verdict, _ = self.finish()
        self.expect_only_begun_work_again(verdict)

    def repeated(self):
        """Runs that were not the last of their message."""
        return [run for runs in by_message(self.fleet.runs()).values() for run in runs[:-1]]

    def expect_only_begun_work_again(self, verdict):
        self.assertGreater(len(verdict.excused), 0, "nobody was killed in the middle of work, so nothing was tried")
        for worker, count in self.unanswered.items():
            again = [str(run) for run in self.repeated() if run.worker == worker]
            self.assertLessEqual(len(again), count, f"more was done again than {worker} had begun and not answered: {again}")
        attempts = {}
        for run in verdict.charged:
            attempts[run.id] = max(run.attempt - 1, attempts.get(run.id, 0))
        self.assertGreater(sum(attempts.values()), 0, "B2: work that was begun and died is charged")
        # What a handler never saw may have been begun all the same; but never more than there are slots, of all that fits into the window.
        self.assertLessEqual(len(verdict.overcharged), len(self.unanswered) * SLOTS, "B2: more was charged than was begun")
        finished = sum(run.done_at is not None and run.done_at < self.fleet.killed[run.worker].at for run in self.repeated())
        self.report(f"{len(self.unanswered)} killed, {self.fleet.message_count} messages, lost 0, twice 0 but for {len(verdict.excused)} that a kill cut off ({finished} of them finished and not "
                    f"confirmed; the server knew of {sum(self.unanswered.values())}), charged {sum(attempts.values())} ({len(verdict.overcharged)} of them begun and not seen by a handler)")


class AckFileCase(WorkRollingCase):
    """The same with ack files: what was finished is not done again either."""

    def file_words(self, seat):
        return ("--ack-file", self.folder / f"seat{seat}.acks")

    def sit_down(self, seat, *words, is_ready=True):
        self.fleet.start(seat, f"seat{seat}", *self.file_words(seat), *words, is_ready=is_ready)

    def die_before_connecting(self, seat):
        """A successor that has read the file and can tell nobody: what it found must be there for the next one."""
        self.sit_down(seat, is_ready=False)
        wait_until(lambda: '"cannot reach ' in self.fleet.seats[seat].work.log(), "a try to connect", 30)
        self.fleet.kill(self.fleet.seats[seat], 0)

    def unconfirmed(self, seat):
        """When the server answers nobody: waits until the worker has nothing left to work on, and tells how many ends it could not get rid of."""
        counts = {}

        def is_dry():
            counts.update(seat.counts())  # of one moment
            return counts["running"] + counts["waiting"] == 0
        wait_until(is_dry, f"{seat.name} to run dry")
        return counts["settling"]

    def kill_with_server_frozen(self, seats, server_dies):
        """What was said and not confirmed is then known: all of it, and what the successors have to find. Tells how many that is for each seat."""
        self.fleet.server.process.send_signal(signal.SIGSTOP)
        unconfirmed = {seat: self.unconfirmed(self.fleet.seats[seat]) for seat in seats}
        for seat in seats:
            self.fleet.kill(self.fleet.seats[seat], 0)
        if server_dies:
            self.fleet.server.end(signal.SIGKILL)
            self.die_before_connecting(seats[0])
            self.fleet.start_server()
        else:
            self.fleet.server.process.send_signal(signal.SIGCONT)
        return unconfirmed

    def kill_in_the_middle(self, seat, noted_ms):
        """What it says to have finished is noted."""
        self.noted[seat.name] = seat.counts()["finished"]
        self.fleet.kill(seat, noted_ms)

    def expect_noted_work_once(self):
        runs = self.fleet.runs()
        repeated = [run for runs_of_one in by_message(runs).values() for run in runs_of_one[:-1]]
        for worker, noted in self.noted.items():
            begun, again = (sum(run.worker == worker for run in some) for some in (runs, repeated))
            self.assertLessEqual(again, begun - noted, f"{worker} had begun {begun} and finished at least {noted}")

    def kill_with_ack_files(self, handler, noted_ms=NOTED_MS):
        """One in two is killed in the middle of everything; with the others the server is frozen first, and half of these times killed, too."""
        self.make_fleet(handler, words=("--reconnect", "60s"))
        self.start_all(self.file_words)
        self.noted = {}
        count, recalled = round_count() * SEATS, 0
        for nth in range(count):
            self.progress(nth, count)
            self.at_some_moment()
            seats = self.random.sample(range(SEATS), 1 + nth % 2)
            if nth % 2 == 0:
                self.kill_in_the_middle(self.fleet.seats[seats[0]], noted_ms)
                self.sit_down(seats[0])
                continue
            unconfirmed = self.kill_with_server_frozen(seats, nth % 4 == 3)
            for seat in seats:
                self.sit_down(seat)
                self.assertEqual(self.fleet.seats[seat].recalled(), unconfirmed[seat], f"the ack file of seat {seat}")
                recalled += unconfirmed[seat]
        verdict, _ = self.finish()
        self.expect_noted_work_once()
        self.assertGreater(recalled, 0, "everything was confirmed before the kills, so nothing was tried")
        self.report(f"{len(self.fleet.killed)} killed, {self.fleet.message_count} messages, {recalled} ends known to be unconfirmed then, lost 0, finished work repeated 0, "
                    f"cut off and repeated {len(verdict.excused)}")
