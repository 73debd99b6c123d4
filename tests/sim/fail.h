/* tests/sim/fail.h — how a run ends early: the first broken rule, an assert() of the core, or a call without end.
 *
 * A judge in the middle of a callback of the core cannot return an error through the core. So a failure jumps:
 * out of the callback, out of the core, back to sim_guard(). The group's memory is the simulator's own and is
 * thrown away, so nothing is left behind. */
#ifndef SIM_FAIL_H
#define SIM_FAIL_H

#include <stdbool.h>
#include <stdint.h>

/* 1 to 10 are the invariants of core/group.h; the others are what the delivery rules promise besides. */
#define SIM_RULE_MAP(XX) /* name, number, requirements, text */                                              \
    XX(ONE_LEASE, 1, "S4.2", "at most one live lease for a message, DELIVER follows its LEASE")              \
    XX(GATE, 2, "S1.11 S1.12", "no DELIVER after STOPPED")                                                   \
    XX(FENCING, 3, "S4.11", "what is not the current holder's changes nothing and is LOST")                  \
    XX(STOP_ONCE, 4, "S1.9 S1.10", "Stop is idempotent and a consumer leaves the strategy once")             \
    XX(ORDER, 5, "S1.24 S1.25", "what comes back goes out first, in order; a release charges nothing")       \
    XX(ROOM, 6, "S1.14", "windows and limits hold")                                                          \
    XX(STALL, 7, "S1.14", "nothing waits while somebody could take it")                                      \
    XX(RECORDS, 8, "S4.6", "the records alone give exactly what was left")                                   \
    XX(PINNED, 9, "S1.32", "a key with a live lease stays with its holder")                                  \
    XX(LIVENESS, 10, "S1.14", "without faults every message ends settled or parked")                         \
    XX(CHARGE, 11, "S1.25 S4.14", "only started work is charged, once for a delivery")                       \
    XX(ANSWER, 12, "S1.16 S1.17 S1.18", "every answer comes once, in its place, with the right numbers")     \
    XX(STRATEGY, 13, "S1.30", "the strategy names the consumer")                                             \
    XX(TIME, 14, "S4.1 S4.13", "what is due happens, and tick says when; no busy loop")                      \
    XX(STATUS, 15, "S1.35", "what is shown is what is")                                                      \
    XX(CHECKPOINT, 16, "S1.14", "the checkpoint covers only what is settled, and moves")                     \
    XX(CODE, 17, "S1.15", "each call returns the code that it promises")                                     \
    XX(ASSERTION, 18, "-", "an assertion in the core")                                                       \
    XX(NO_END, 19, "-", "a run must end")

typedef enum sim_rule {
#define XX(name, number, requirements, text) SIM_RULE_##name = (number),
    SIM_RULE_MAP(XX)
#undef XX
} sim_rule;

typedef struct sim_failure {
    sim_rule rule;
    uint32_t step;
    char text[600];
} sim_failure;

const char *sim_rule_text(sim_rule rule);
const char *sim_rule_requirements(sim_rule rule);

typedef void sim_run_fn(void *ctx);

/* Calls run(ctx). Returns true when it came back by itself; otherwise *ret_failure says what broke. */
bool sim_guard(sim_run_fn *run, void *ctx, sim_failure *ret_failure);

/* Where the run is, for the message of a later failure. */
void sim_fail_at(uint32_t step);

/* Ends the run that sim_guard() started. Does not return. */
_Noreturn void sim_fail(sim_rule rule, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
