/* tests/sim/model_back.c — a lease ends without a settle: the message comes back, is parked, or has vanished. */
#include "model.h"

static model_end_of_lease end_of(sl_back_cause cause)
{
    switch (cause) {
    case SL_BACK_RELEASED:
    case SL_BACK_INTERRUPTED: return LEASE_RELEASED;
    case SL_BACK_NACKED: return LEASE_SETTLED;
    case SL_BACK_EXPIRED: return LEASE_LOST;
    case SL_BACK_LEFT:
    case SL_BACK_DIED:
    case SL_BACK_COUNT_: break;
    }
    return LEASE_UNCOUNTED;
}

static model_next wanted(const model *m, const model_message *message, sl_back_cause cause)
{
    const bool nacked = cause == SL_BACK_NACKED;
    if (!message->vanished)
        return model_return(m, message, cause, nacked ? &m->call->nack : NULL);
    return (model_next){
        .effect = { .kind = SL_EFFECT_SETTLE,
                    .settle = { .place = message->place, .id = message->id, .cause = SL_SETTLE_VANISHED } }
    };
}

/* A lease that ran out stays current: its holder may still settle. Any other return gives it up. */
static void come_back(model *m, model_message *message, sl_back_cause cause, const sl_effect *effect)
{
    message->counters = effect->back.counters;
    message->not_before_ns = effect->back.not_before_ns;
    message->charged = message->charged || effect->back.charged;
    message->current = cause == SL_BACK_EXPIRED;
    m->since_open.charged += effect->back.charged;
}

void model_take_return(model *m, model_message *message, sl_back_cause cause, const sl_effect *effect,
                       const sl_effect *answer)
{
    const uint64_t holder = message->holder;
    const model_next want = wanted(m, message, cause);
    model_same(&want, effect);
    model_lease_ends(m, message, end_of(cause));
    if (effect->kind == SL_EFFECT_BACK)
        come_back(m, message, cause, effect);
    else
        model_settle(m, message, effect);
    if (answer != NULL)
        model_push(m, answer);
    model_after_lease(m, holder);
}
