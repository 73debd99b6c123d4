/* tests/simserver/report.h — what a run has to tell: which rule was broken, what clients saw before, what happened at all.
 *
 * The first broken rule ends a run. The lines before it are what a person needs, so the last of them are kept and printed with
 * it; a run of one seed prints all. */
#ifndef SIMSERVER_REPORT_H
#define SIMSERVER_REPORT_H

#include <stdbool.h>
#include <stdint.h>

/* number, requirements, text */
#define REPORT_RULE_MAP(XX)                                                                                  \
    XX(AFTER_STOPPED, 1, "S1.2 S1.11 S1.12 S1.17, invariant 2", "an event after Stopped")                    \
    XX(SETTLED_AGAIN, 2, "B4, invariant 8", "delivered again though it was settled")                         \
    XX(TWO_LEASES, 3, "B5, invariant 1", "two live leases, or a token that does not grow")                   \
    XX(ANSWERS, 4, "S1.4 S1.5 S1.21", "an ack, nack or release is not answered exactly once")                \
    XX(STOP, 5, "S1.9 S1.16 S1.18, invariant 4", "Stopped or Drained is missing, twice, early or wrong")     \
    XX(WINDOW, 6, "invariant 6", "more in flight than the window")                                           \
    XX(CHARGED, 7, "S1.25 B2, invariant 5", "the retry count is not what was charged")                       \
    XX(KEYS, 8, "S1.32 S1.24, invariants 5 and 9", "a pinned key at two consumers, or out of order")         \
    XX(LOST, 9, "S1.22 B5, invariant 3", "a settle is lost that must count, or counts that must be lost")    \
    XX(LIVENESS, 10, "S1.14, invariants 7 and 10", "a message was lost")                                     \
    XX(HANG, 11, "S3.24", "the server comes to no rest")                                                     \
    XX(WRONG, 12, "S1.28", "what came is nothing that may come")

typedef enum report_rule {
#define XX(name, number, requirements, text) REPORT_##name = number,
    REPORT_RULE_MAP(XX)
#undef XX
} report_rule;

/* Counted, so that nobody believes in a simulation that never does anything. */
#define REPORT_SITUATION_MAP(XX)                                                                             \
    XX(DELIVERED, "events delivered")                                                                        \
    XX(REDELIVERED, "events delivered again")                                                                \
    XX(CHARGED, "deliveries with a retry count")                                                             \
    XX(SETTLED, "ids answered as settled")                                                                   \
    XX(LOST, "ids answered as lost")                                                                         \
    XX(STOPPED, "Stopped that a consumer asked for")                                                         \
    XX(STOPPED_BY_OPERATOR, "Stopped by an operator")                                                        \
    XX(STOPPED_BY_SERVER, "Stopped by the server")                                                           \
    XX(STOPPED_AGAIN, "Stopped a second time")                                                               \
    XX(STOPPED_HOLDING, "Stopped with something outstanding")                                                \
    XX(DRAINED, "Drained")                                                                                   \
    XX(DRAINED_LATE, "Drained with something lost")                                                          \
    XX(HANDED_BACK, "stops that hand back")                                                                  \
    XX(WISH_GRANTED, "releases that an operator wished for")                                                 \
    XX(HALF_CLOSED, "half-closed calls")                                                                     \
    XX(CANCELLED, "cancelled calls")                                                                         \
    XX(CUT, "connections cut")                                                                               \
    XX(CUT_LOST_BYTES, "connections cut with bytes on the way to the client")                                \
    XX(STALLED, "connections that stalled")                                                                  \
    XX(RESUMED, "messages resumed")                                                                          \
    XX(ACK_BY_HEIR, "acks by another call of the name")                                                      \
    XX(ACK_UNKNOWN, "acks of what was never delivered")                                                      \
    XX(ACK_TWICE, "acks sent twice")                                                                         \
    XX(ACK_LATE, "acks after the lease")                                                                     \
    XX(EXTENDED, "leases extended")                                                                          \
    XX(EXTENSION_PROVEN, "extended leases that held another off")                                            \
    XX(OPERATOR_STOP, "stops by operators")                                                                  \
    XX(OPERATOR_RESUME, "stops taken back")                                                                  \
    XX(RESUMED_DELIVERY, "events after a stop that was taken back")                                          \
    XX(UPDATED, "groups updated")                                                                            \
    XX(RECREATED, "groups deleted and created")                                                              \
    XX(REPLAYED, "parked messages replayed")                                                                 \
    XX(REPLAY_DELIVERED, "replayed messages delivered")                                                      \
    XX(PARKED, "messages found parked")                                                                      \
    XX(SHUTDOWN, "servers shut down")                                                                        \
    XX(KILLED, "servers killed")                                                                             \
    XX(POWER_CUT, "power cuts")                                                                              \
    XX(DISK_FAILED, "disks that failed a call")                                                              \
    XX(LEASES_KEPT, "leases held over a restart")                                                            \
    XX(WALL_JUMP, "jumps of the wall clock")                                                                 \
    XX(TIME_JUMP, "long waits")                                                                              \
    XX(STORE_SLOW, "batches that waited for the disk")                                                       \
    XX(STORE_FULL, "batches refused for room")                                                               \
    XX(APPENDED, "events appended")                                                                          \
    XX(APPEND_UNKNOWN, "appends whose end nobody knows")

typedef enum report_situation {
#define XX(name, text) SITUATION_##name,
    REPORT_SITUATION_MAP(XX)
#undef XX
    SITUATION_COUNT_
} report_situation;

enum {
    REPORT_LINES = 80,
    REPORT_LINE_BYTES = 240,
};

typedef struct report {
    uint64_t seed, turn, mono_ns;
    bool shows_all;
    bool failed;
    report_rule rule;
    uint64_t failed_turn;
    char text[REPORT_LINE_BYTES];
    char lines[REPORT_LINES][REPORT_LINE_BYTES];
    uint32_t line_count;
    uint64_t situations[SITUATION_COUNT_];
} report;

void report_begin(report *r, uint64_t seed, bool shows_all);

/* A line of the trace. */
void report_say(report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The first one counts. */
void report_fail(report *r, report_rule rule, const char *format, ...) __attribute__((format(printf, 3, 4)));

void report_count(report *r, report_situation situation);

/* The line of a failed seed and what clients saw before. */
void report_print_failure(const report *r);
void report_print_situations(const uint64_t totals[SITUATION_COUNT_]);

#endif
