/* tests/sim/trace.c — text for traces and failures. */
#include "trace.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    EVENT_MARK = 'm',
    SESSION_MARK = 's'
};

static sl_uuid id_of(int mark, uint64_t serial)
{
    sl_uuid id = { .bytes = { [15] = (uint8_t)mark } };
    for (uint32_t i = 0; i < 8; i++)
        id.bytes[i] = (uint8_t)(serial >> (56 - 8 * i));
    return id;
}

sl_uuid sim_event_id(uint64_t serial)
{
    return id_of(EVENT_MARK, serial);
}

sl_uuid sim_session_id(uint64_t serial)
{
    return id_of(SESSION_MARK, serial);
}

static sim_text text_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void add(sim_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static sim_text text_of(const char *format, ...)
{
    sim_text text;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text.chars, sizeof text.chars, format, arguments);
    va_end(arguments);
    return text;
}

static void add(sim_text *text, const char *format, ...)
{
    const size_t used = strlen(text->chars);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text->chars + used, sizeof text->chars - used, format, arguments);
    va_end(arguments);
}

sim_text sim_id_text(sl_uuid id)
{
    uint64_t serial = 0;
    for (uint32_t i = 0; i < 8; i++)
        serial = serial << 8 | id.bytes[i];
    return text_of("%c%" PRIu64, id.bytes[15] == 0 ? '?' : id.bytes[15], serial);
}

sim_text sim_number_text(char sort, uint64_t number)
{
    return text_of("%c%" PRIu64 ".%" PRIu64, sort, number >> 40, number & ((UINT64_C(1) << 40) - 1));
}

sim_text sim_place_text(sl_place place)
{
    return text_of("%s%" PRIu64, place.lane == SL_LANE_MAIN ? "@" : "@parked:", place.position);
}

#define ID(id)           sim_id_text(id).chars
#define CONSUMER(number) sim_number_text('c', number).chars
#define TOKEN(number)    sim_number_text('t', number).chars
#define PLACE(place)     sim_place_text(place).chars

static const char *const askers[] = { "consumer", "operator", "server" };
static const char *const backs[] = { "RELEASED", "INTERRUPTED", "NACKED", "EXPIRED", "LEFT", "DIED" };
static const char *const settles[] = { "ACKED", "SKIPPED", "VANISHED" };
static const char *const parks[] = { "ASKED", "RETRIES", "KILLS" };
static const char *const strategies[] = { "RoundRobin", "DispatchToSingle", "Pinned", "PinnedByCorrelation" };
static_assert(sizeof askers / sizeof askers[0] == SL_ASKER_COUNT_, "one text for each asker");
static_assert(sizeof strategies / sizeof strategies[0] == SL_STRATEGY_COUNT_, "one text for each strategy");
static_assert(sizeof backs / sizeof backs[0] == SL_BACK_COUNT_, "one text for each cause");
static_assert(sizeof settles / sizeof settles[0] == SL_SETTLE_COUNT_, "one text for each cause");
static_assert(sizeof parks / sizeof parks[0] == SL_PARK_COUNT_, "one text for each cause");

static sim_text counters_text(sl_counters counters)
{
    return text_of("deliveries %" PRIu32 ", attempts %" PRIu32 ", interrupts %" PRIu32 ", kills %" PRIu32,
                   counters.deliveries, counters.attempts, counters.interrupts, counters.kills);
}

static sim_text backoff_text(const sl_retry_policy *backoff)
{
    static const char *const kinds[] = { "none", "constant", "linear", "exponential" };
    static_assert(sizeof kinds / sizeof kinds[0] == SL_RETRY_KIND_COUNT_, "one text for each kind");
    return text_of("%s first %" PRIu64 " step %" PRIu64 " factor %" PRIu32 " jitter %" PRIu32 " max %" PRIu64,
                   kinds[backoff->kind], backoff->delay_first_ns, backoff->delay_step_ns,
                   backoff->factor_permille, backoff->jitter_permille, backoff->delay_max_ns);
}

sim_text sim_settings_text(const sl_settings *settings)
{
    return text_of(
        "%s%s lease %" PRIu64 " retries %" PRIu32 " kills %" PRIu32 " interrupts %" PRIu32 " buffer %" PRIu32
        " consumers %" PRIu32 " checkpoint after %" PRIu64 " count %" PRIu32 "..%" PRIu32 " backoff %s",
        strategies[settings->strategy], settings->key_order ? " key_order" : "", settings->lease_ns,
        settings->retries_max, settings->kills_max, settings->interrupts_max, settings->buffer_max,
        settings->consumers_max, settings->checkpoint_after_ns, settings->checkpoint_count_min,
        settings->checkpoint_count_max, backoff_text(&settings->backoff).chars);
}

/* --- effects ---------------------------------------------------------------------------------------------- */

sim_text sim_effect_text(const sl_effect *e)
{
    switch (e->kind) { /* long because it is a table: a line or two for each kind */
    case SL_EFFECT_EPOCH:
        return text_of("EPOCH %" PRIu64 " messages_max %" PRIu32, e->epoch.epoch, e->epoch.messages_max);
    case SL_EFFECT_SETTINGS: return text_of("SETTINGS %s", sim_settings_text(&e->settings).chars);
    case SL_EFFECT_RULE:
        return text_of("RULE tag %" PRIu64 "%s", e->rule.tag, e->rule.stop ? "" : " taken back");
    case SL_EFFECT_JOIN:
        return text_of("JOIN %s session %s%s", CONSUMER(e->join.consumer), ID(e->join.session),
                       e->join.sends_started ? " sends Started" : "");
    case SL_EFFECT_GONE: return text_of("GONE %s", CONSUMER(e->gone.consumer));
    case SL_EFFECT_LEASE:
        return text_of("LEASE %s %s to %s %s until %" PRIu64 " delivery %" PRIu32 " key %" PRIu64,
                       PLACE(e->lease.place), ID(e->lease.id), CONSUMER(e->lease.consumer),
                       TOKEN(e->lease.token), e->lease.until_ns, e->lease.deliveries, e->lease.key);
    case SL_EFFECT_STARTED: return text_of("STARTED %s %s", PLACE(e->started.place), TOKEN(e->started.token));
    case SL_EFFECT_EXTEND:
        return text_of("EXTEND %s %s until %" PRIu64, PLACE(e->extend.place), TOKEN(e->extend.token),
                       e->extend.until_ns);
    case SL_EFFECT_MOVE:
        return text_of("MOVE %s %s to %s", PLACE(e->move.place), TOKEN(e->move.token),
                       CONSUMER(e->move.consumer));
    case SL_EFFECT_BACK:
        return text_of("BACK %s %s%s not before %" PRIu64 " (%s)", PLACE(e->back.place), backs[e->back.cause],
                       e->back.charged ? " charged" : "", e->back.not_before_ns,
                       counters_text(e->back.counters).chars);
    case SL_EFFECT_SETTLE:
        return text_of("SETTLE %s %s %s range [%" PRIu64 ", %" PRIu64 ")", PLACE(e->settle.place),
                       ID(e->settle.id), settles[e->settle.cause], e->settle.from, e->settle.to);
    case SL_EFFECT_PARK:
        return text_of("PARK %s %s %s after %s range [%" PRIu64 ", %" PRIu64 ") (%s)", PLACE(e->park.place),
                       ID(e->park.id), parks[e->park.cause],
                       e->park.last == SL_BACK_COUNT_ ? "a BACK" : backs[e->park.last], e->park.from,
                       e->park.to, counters_text(e->park.counters).chars);
    case SL_EFFECT_CHECKPOINT:
        return text_of("CHECKPOINT lane %d below %" PRIu64, (int)e->checkpoint.lane, e->checkpoint.below);
    case SL_EFFECT_PASSED:
        return text_of("PASSED lane %d [%" PRIu64 ", %" PRIu64 ")", (int)e->passed.lane, e->passed.from,
                       e->passed.to);
    case SL_EFFECT_MESSAGE:
        return text_of(
            "MESSAGE %s %s key %" PRIu64 " of %s %s until %" PRIu64 " not before %" PRIu64 "%s%s%s (%s)",
            PLACE(e->message.place), ID(e->message.id), e->message.key, CONSUMER(e->message.consumer),
            TOKEN(e->message.token), e->message.until_ns, e->message.not_before_ns,
            e->message.started ? " started" : "", e->message.charged ? " charged" : "",
            e->message.ended ? " ended" : "", counters_text(e->message.counters).chars);
    case SL_EFFECT_DELIVER:
        return text_of("DELIVER %s %s to %s %s for %" PRIu64 " (%s)", PLACE(e->deliver.place),
                       ID(e->deliver.id), CONSUMER(e->deliver.consumer), TOKEN(e->deliver.token),
                       e->deliver.lease_ns, counters_text(e->deliver.counters).chars);
    case SL_EFFECT_STOP_REQUESTED:
        return text_of("STOP_REQUESTED %s by %s deadline %" PRIu64 "%s", CONSUMER(e->stop_requested.consumer),
                       askers[e->stop_requested.asked_by], e->stop_requested.deadline_ns,
                       e->stop_requested.hand_back ? " with hand-back" : "");
    case SL_EFFECT_STOPPED:
        return text_of("STOPPED %s by %s%s in flight %" PRIu32, CONSUMER(e->stopped.consumer),
                       askers[e->stopped.asked_by], e->stopped.already_stopped ? " already" : "",
                       e->stopped.in_flight);
    case SL_EFFECT_SETTLED: return text_of("SETTLED %s %s", CONSUMER(e->settled.consumer), ID(e->settled.id));
    case SL_EFFECT_LOST: return text_of("LOST %s %s", CONSUMER(e->lost.consumer), ID(e->lost.id));
    case SL_EFFECT_DRAINED:
        return text_of("DRAINED %s settled %" PRIu32 " released %" PRIu32 " interrupted %" PRIu32
                       " lost %" PRIu32,
                       CONSUMER(e->drained.consumer), e->drained.settled, e->drained.released,
                       e->drained.interrupted, e->drained.lost);
    case SL_EFFECT_COUNT_: break;
    }
    return text_of("unknown effect %d", (int)e->kind);
}

/* --- inputs ----------------------------------------------------------------------------------------------- */

static void add_claims(sim_text *text, const sim_call *call)
{
    add(text, " %s", CONSUMER(call->consumer));
    for (uint32_t i = 0; i < call->claim_count; i++) {
        add(text, " %s", ID(call->claims[i].id));
        if (call->claims[i].token != 0)
            add(text, ":%s", TOKEN(call->claims[i].token));
    }
    if (call->kind == SIM_CALL_NACK && call->nack.action == SL_NACK_RETRY)
        add(text, call->nack.has_delay ? " retry after %" PRIu64 : " retry", call->nack.delay_ns);
    else if (call->kind == SIM_CALL_NACK)
        add(text, call->nack.action == SL_NACK_PARK ? " park" : " skip");
    if (call->kind == SIM_CALL_EXTEND)
        add(text, " by %" PRIu64, call->lease_ns);
}

static void add_join(sim_text *text, const sl_join *join)
{
    add(text, " session %s window %" PRIu32, ID(join->session), join->window);
    if (join->extensions)
        add(text, " extensions, reconnect %" PRIu64, join->reconnect_ns);
    if (join->sends_started)
        add(text, " sends Started");
    for (uint32_t i = 0; i < join->tag_count && i < SL_TAGS_MAX; i++)
        add(text, "%s%" PRIu64, i == 0 ? " tags " : ",", join->tags[i]);
    for (uint32_t i = 0; i < join->resume_count; i++)
        add(text, "%s%s", i == 0 ? " resume " : ",", ID(join->resume[i]));
}

static void add_offers(sim_text *text, const sim_call *call)
{
    for (uint32_t i = 0; i < call->offer_count; i++)
        add(text, " %s %s/%" PRIu64, PLACE(call->offers[i].place), ID(call->offers[i].id),
            call->offers[i].key);
}

static void add_stop(sim_text *text, const sl_stop *stop)
{
    add(text, " by %s%s", askers[stop->asked_by], stop->hand_back_unstarted ? " with hand-back" : "");
}

sim_text sim_call_text(const sim_call *call)
{
    sim_text text = text_of("%s", sim_call_name(call->kind));
    switch (call->kind) {
    case SIM_CALL_OPEN:
    case SIM_CALL_TICK: break;
    case SIM_CALL_OFFER: add_offers(&text, call); break;
    case SIM_CALL_ADVANCE: add(&text, " %s considered %" PRIu32, PLACE(call->place), call->considered); break;
    case SIM_CALL_JOIN: add_join(&text, &call->join); break;
    case SIM_CALL_STOP_TAG:
    case SIM_CALL_RESUME_TAG: add(&text, " tag %" PRIu64, call->tag); break;
    case SIM_CALL_UPDATE: add(&text, " %s", sim_settings_text(&call->settings).chars); break;
    case SIM_CALL_STOP:
        add(&text, " %s", CONSUMER(call->consumer));
        add_stop(&text, &call->stop);
        break;
    case SIM_CALL_CORDON:
        add(&text, " %s %s", CONSUMER(call->consumer), call->cordoned ? "on" : "off");
        break;
    case SIM_CALL_LEAVE:
    case SIM_CALL_AWAY:
    case SIM_CALL_RESUME: add(&text, " %s", CONSUMER(call->consumer)); break;
    case SIM_CALL_ACK:
    case SIM_CALL_NACK:
    case SIM_CALL_RELEASE:
    case SIM_CALL_STARTED:
    case SIM_CALL_EXTEND: add_claims(&text, call); break;
    case SIM_CALL_COUNT_: break;
    }
    return text;
}
