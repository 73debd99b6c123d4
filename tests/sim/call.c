/* tests/sim/call.c — carries an input out on the real group. */
#include "call.h"

static const char *const names[] = {
#define XX(name, text) [SIM_CALL_##name] = #text,
    SIM_CALL_MAP(XX)
#undef XX
};

const char *sim_call_name(sim_call_kind kind)
{
    return names[kind];
}

static sl_err run_of_consumer(const sim_call *call, sl_group *group)
{
    const uint64_t who = call->consumer, now_ns = call->now_ns;
    if (call->kind == SIM_CALL_LEAVE)
        return sl_group_leave(group, who, now_ns);
    if (call->kind == SIM_CALL_AWAY)
        return sl_group_away(group, who, now_ns);
    if (call->kind == SIM_CALL_STOP)
        return sl_group_stop(group, who, &call->stop, now_ns);
    if (call->kind == SIM_CALL_RESUME)
        return sl_group_resume(group, who, now_ns);
    return sl_group_cordon(group, who, call->cordoned, now_ns);
}

static sl_err run_of_claims(const sim_call *call, sl_group *group)
{
    const uint64_t who = call->consumer, now_ns = call->now_ns;
    const sl_claim *claims = call->claims;
    if (call->kind == SIM_CALL_ACK)
        return sl_group_ack(group, who, claims, call->claim_count, now_ns);
    if (call->kind == SIM_CALL_NACK)
        return sl_group_nack(group, who, claims, call->claim_count, &call->nack, now_ns);
    if (call->kind == SIM_CALL_RELEASE)
        return sl_group_release(group, who, claims, call->claim_count, now_ns);
    if (call->kind == SIM_CALL_STARTED)
        return sl_group_started(group, who, claims, call->claim_count, now_ns);
    return sl_group_extend(group, who, claims, call->claim_count, call->lease_ns, now_ns);
}

sim_result sim_call_run(const sim_call *call, sl_group *group)
{
    sim_result result = { .err = SL_OK };
    switch (call->kind) {
    case SIM_CALL_OPEN: result.err = sl_group_open(group, call->now_ns); break;
    case SIM_CALL_OFFER:
        result.err = sl_group_offer(group, call->offers, call->offer_count, call->now_ns, &result.taken);
        break;
    case SIM_CALL_ADVANCE:
        result.err = sl_group_advance(group, call->place, call->considered, call->now_ns);
        break;
    case SIM_CALL_JOIN: result.err = sl_group_join(group, &call->join, call->now_ns, &result.consumer); break;
    case SIM_CALL_STOP_TAG:
        result.err = sl_group_stop_tag(group, call->tag, &call->stop, call->now_ns);
        break;
    case SIM_CALL_RESUME_TAG: result.err = sl_group_resume_tag(group, call->tag, call->now_ns); break;
    case SIM_CALL_UPDATE: result.err = sl_group_update(group, &call->settings, call->now_ns); break;
    case SIM_CALL_TICK: result.wake_ns = sl_group_tick(group, call->now_ns); break;
    case SIM_CALL_LEAVE:
    case SIM_CALL_AWAY:
    case SIM_CALL_STOP:
    case SIM_CALL_RESUME:
    case SIM_CALL_CORDON: result.err = run_of_consumer(call, group); break;
    case SIM_CALL_ACK:
    case SIM_CALL_NACK:
    case SIM_CALL_RELEASE:
    case SIM_CALL_STARTED:
    case SIM_CALL_EXTEND: result.err = run_of_claims(call, group); break;
    case SIM_CALL_COUNT_: break;
    }
    return result;
}
