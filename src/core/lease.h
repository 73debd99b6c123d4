/* core/lease.h — the life of one delivery of one message to one consumer: the only delivery state there is.
 *
 *      unset --take--> live --time passes--> ended --take--> live, for another holder
 *        ^               |                     |
 *        +-----drop------+---------------------+
 *
 * None of these words is stored: they follow from {token, holder, until} and the time that is passed in, so
 * nothing can disagree and there is nothing to sweep. This is the one place that says so in C (S4.1, S4.2).
 *
 * Why a token: a consumer that stalls past the end of its lease may still answer. If another has taken the
 * message meanwhile, the token is a newer one and the late answer is refused (S4.11); if nobody has, the work
 * is done and may count. */
#ifndef SL_CORE_LEASE_H
#define SL_CORE_LEASE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct sl_lease {
    uint64_t token;    /* 0: unset */
    uint64_t holder;   /* consumer id; 0: unset */
    uint64_t until_ns; /* live before this time; 0 once its end was noticed */
} sl_lease;

/* A half-set lease cannot be (S4.12). */
static inline void sl_lease_check(const sl_lease *lease)
{
    assert((lease->token != 0) == (lease->holder != 0));
    assert(lease->holder != 0 || lease->until_ns == 0);
}

static inline bool sl_lease_live(const sl_lease *lease, uint64_t now_ns)
{
    return lease->holder != 0 && now_ns < lease->until_ns;
}

/* May the message be given to a consumer? Settled messages are not here to be asked about. */
static inline bool sl_lease_available(const sl_lease *lease, uint64_t not_before_ns, uint64_t now_ns)
{
    return not_before_ns <= now_ns && !sl_lease_live(lease, now_ns);
}

/* Is this claim about the current delivery, live or ended? token 0 means whatever the holder has. */
static inline bool sl_lease_is(const sl_lease *lease, uint64_t holder, uint64_t token)
{
    return lease->holder != 0 && lease->holder == holder && (token == 0 || token == lease->token);
}

/* A fresh and an ended lease are taken alike (S4.3). */
static inline void sl_lease_take(sl_lease *lease, sl_lease wanted, uint64_t now_ns)
{
    sl_lease_check(lease);
    sl_lease_check(&wanted);
    assert(!sl_lease_live(lease, now_ns));
    assert(wanted.token > lease->token);
    *lease = wanted;
}

/* Live when last looked at: its end was not noticed yet. What the indexes of a group go by between two looks. */
static inline bool sl_lease_running(const sl_lease *lease)
{
    return lease->until_ns != 0;
}

/* The same delivery, for another call of the holder's session. */
static inline void sl_lease_move(sl_lease *lease, uint64_t holder)
{
    assert(lease->holder != 0 && holder != 0);
    lease->holder = holder;
}

static inline void sl_lease_extend(sl_lease *lease, uint64_t until_ns)
{
    assert(sl_lease_running(lease) && until_ns != 0);
    lease->until_ns = until_ns;
}

/* The end was noticed. The holder may still settle, until somebody takes the message. */
static inline void sl_lease_end(sl_lease *lease)
{
    lease->until_ns = 0;
}

/* The holder gave it up: from now on it is nobody's. */
static inline void sl_lease_drop(sl_lease *lease)
{
    *lease = (sl_lease){ 0 };
}

#endif
