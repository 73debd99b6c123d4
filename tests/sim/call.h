/* tests/sim/call.h — one input of a group as a value: it can be shown, judged and carried out. */
#ifndef SIM_CALL_H
#define SIM_CALL_H

#include "core/group.h"

#define SIM_CALL_MAP(XX)                                                                                     \
    XX(OPEN, open)                                                                                           \
    XX(OFFER, offer)                                                                                         \
    XX(ADVANCE, advance)                                                                                     \
    XX(JOIN, join)                                                                                           \
    XX(LEAVE, leave)                                                                                         \
    XX(AWAY, away)                                                                                           \
    XX(STOP, stop)                                                                                           \
    XX(RESUME, resume)                                                                                       \
    XX(STOP_TAG, stop_tag)                                                                                   \
    XX(RESUME_TAG, resume_tag)                                                                               \
    XX(CORDON, cordon)                                                                                       \
    XX(ACK, ack)                                                                                             \
    XX(NACK, nack)                                                                                           \
    XX(RELEASE, release)                                                                                     \
    XX(STARTED, started)                                                                                     \
    XX(EXTEND, extend)                                                                                       \
    XX(UPDATE, update)                                                                                       \
    XX(TICK, tick)

typedef enum sim_call_kind {
#define XX(name, text) SIM_CALL_##name,
    SIM_CALL_MAP(XX)
#undef XX
    SIM_CALL_COUNT_
} sim_call_kind;

enum {
    SIM_CLAIMS_MAX = 12,
    SIM_OFFERS_MAX = 24,
    SIM_RESUME_MAX = 32
};

/* Which fields count follows from the kind, as the parameters of sl_group_<kind>() do. */
typedef struct sim_call {
    sim_call_kind kind;
    uint64_t now_ns;
    uint64_t consumer, tag;
    bool cordoned;
    sl_claim claims[SIM_CLAIMS_MAX];
    uint32_t claim_count;
    sl_nack nack;
    uint64_t lease_ns;
    sl_stop stop;
    sl_join join; /* its pointers lead to the next two */
    uint64_t tags[SL_TAGS_MAX];
    sl_uuid resume[SIM_RESUME_MAX];
    sl_settings settings;
    bool settings_valid; /* what sl_settings_validate() said */
    sl_offer offers[SIM_OFFERS_MAX];
    uint32_t offer_count;
    sl_place place;
    uint32_t considered;
} sim_call;

typedef struct sim_result {
    sl_err err;
    uint64_t consumer; /* of join */
    uint32_t taken;    /* of offer */
    uint64_t wake_ns;  /* of tick */
} sim_result;

const char *sim_call_name(sim_call_kind kind);
sim_result sim_call_run(const sim_call *call, sl_group *group);

#endif
