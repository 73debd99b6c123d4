/* tests/sim/trace.h — inputs, effects and names in a form that people read.
 *
 * Ids in a run are made from serial numbers, so a trace can show m17 for an event and s3 for a session. Consumers
 * and tokens show their epoch: c2.5 is the fifth number that was given in the second life of the group. */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include "call.h"

enum {
    SIM_TEXT_BYTES = 640
};

typedef struct sim_text {
    char chars[SIM_TEXT_BYTES];
} sim_text;

sl_uuid sim_event_id(uint64_t serial);
sl_uuid sim_session_id(uint64_t serial);

sim_text sim_id_text(sl_uuid id);
sim_text sim_number_text(char sort, uint64_t number);
sim_text sim_place_text(sl_place place);
sim_text sim_effect_text(const sl_effect *effect);
sim_text sim_call_text(const sim_call *call);
sim_text sim_settings_text(const sl_settings *settings);

#endif
