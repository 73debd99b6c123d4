/* worker/source/memory.c — see memory_source.h.
 *
 * Everything that a server would do on its own time happens in pump(), which a timer calls: set to "now" it runs in the next turn of
 * the loop. A record is a message, a delivery is one time that it was out: after a lost lease the old delivery still waits for the
 * worker's word while the record may be out again, in another one. */
#include "worker/memory_source.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "worker/source/memory_inside.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <string.h>

/* Without memory for a message nothing else need ever happen here, so it is asked for again after a moment. */
#define AGAIN_PAUSE_NS UINT64_C(100000000)

/* --- deliveries --- */

static sl_memory_delivery *new_delivery(sl_memory *memory)
{
    sl_list *const spare = sl_list_first(&memory->spare);
    sl_memory_delivery *added;

    if (spare != NULL) {
        sl_list_remove(spare);
        added = SL_CONTAINER_OF(spare, sl_memory_delivery, line);
    } else {
        added = sl_alloc_take(&sl_alloc_default, sizeof *added);
    }
    if (added == NULL)
        return NULL;
    added->record = NULL;
    added->job = NULL;
    added->is_begun = added->is_recalled = added->is_said = false;
    sl_list_init(&added->line);
    return added;
}

/* False: there was no memory for it, and the message waits as before. */
static bool offer(sl_memory *memory, sl_memory_record *next, sl_memory_delivery *made)
{
    sl_job_message message = sl_memory_message_of(memory, next);
    sl_job *job;

    message.token = next->look.token + 1;
    message.attempt = next->look.charged + 1;
    job = sl_job_new_from(memory->source.shelf, &message);
    if (job == NULL) {
        sl_memory_return(memory, next);
        return false;
    }
    job->lease_ns = memory->settings.lease_ns;
    job->lease_until_ns = memory->settings.lease_ns == 0
                              ? UINT64_MAX
                              : sl_add_sat_u64(sl_loop_now_ns(memory->loop), memory->settings.lease_ns);
    job->source_data = made;
    made->job = job;
    made->record = next;
    next->delivery = made;
    next->look.token = message.token;
    next->look.state = SL_MEMORY_OUT;
    next->look.offered++;
    memory->totals.offered++;
    memory->totals.out++;
    sl_list_push_back(&memory->leases, &made->line);
    memory->source.owner->offer(memory->source.owner_ctx, job);
    return true;
}

/* The same. */
static bool offer_next(sl_memory *memory)
{
    sl_memory_delivery *const made = new_delivery(memory);
    sl_memory_record *const next = made == NULL ? NULL : sl_memory_next(memory);

    if (next != NULL && offer(memory, next, made))
        return true;
    if (made != NULL)
        sl_list_push_back(&memory->spare, &made->line);
    return false;
}

static bool may_offer(const sl_memory *memory)
{
    return memory->is_up && !memory->is_shut && !memory->has_failed &&
           memory->totals.out < memory->settings.window && sl_memory_has_next(memory);
}

static void offer_all(sl_memory *memory)
{
    memory->again_ns = UINT64_MAX;
    while (may_offer(memory)) {
        if (!offer_next(memory)) {
            memory->again_ns = sl_add_sat_u64(sl_loop_now_ns(memory->loop), AGAIN_PAUSE_NS);
            return;
        }
        if (memory->settings.fail_after != 0 && memory->totals.offered == memory->settings.fail_after)
            sl_memory_source_fail(&memory->source, SL_SOURCE_LOST,
                                  SL_STR("The memory source failed after as many messages as fail= says."));
    }
}

/* The record is somebody else's from now on. Begun work counts as an attempt, as it does at a server. */
static void lose(sl_memory *memory, sl_memory_delivery *gone)
{
    sl_memory_record *const back = gone->record;

    sl_list_remove(&gone->line);
    gone->record = NULL;
    if (gone->is_begun)
        back->look.charged++;
    back->look.lost++;
    memory->totals.lost++;
    sl_memory_return(memory, back);
    sl_memory_pump_soon(memory);
}

static void lose_and_tell(sl_memory *memory, sl_memory_delivery *gone)
{
    lose(memory, gone);
    sl_list_push_back(&memory->lost, &gone->line);
    memory->source.owner->lost(memory->source.owner_ctx, gone->job);
}

/* All leases are of one length, so the ring is in order of their ends. */
static sl_memory_delivery *first_lease(const sl_memory *memory)
{
    sl_list *const first = memory->settings.lease_ns == 0 ? NULL : sl_list_first(&memory->leases);

    return first == NULL ? NULL : SL_CONTAINER_OF(first, sl_memory_delivery, line);
}

static void expire(sl_memory *memory)
{
    const uint64_t now_ns = sl_loop_now_ns(memory->loop);
    sl_memory_delivery *first;

    while (!memory->has_failed && (first = first_lease(memory)) != NULL &&
           first->job->lease_until_ns <= now_ns)
        lose_and_tell(memory, first);
}

/* --- answers --- */

static void apply(sl_memory *memory, sl_memory_delivery *said)
{
    sl_memory_record *const about = said->record;
    const sl_settle *const settle = &said->settle;

    memcpy(about->look.reason, said->reason, sizeof about->look.reason);
    switch (settle->kind) {
    case SL_SETTLE_ACK:
        memory->totals.acked++;
        sl_memory_end(about, SL_MEMORY_ACKED);
        break;
    case SL_SETTLE_PARK:
        memory->totals.parked++;
        sl_memory_end(about, SL_MEMORY_PARKED);
        break;
    case SL_SETTLE_RETRY:
        memory->totals.retried++;
        about->look.retried++;
        about->look.charged++;
        about->look.delay_ns = settle->delay_ns;
        sl_memory_delay(memory, about, memory->settings.forgets_delays ? 0 : settle->delay_ns);
        break;
    case SL_SETTLE_RELEASE:
        memory->totals.released++;
        about->look.released++;
        sl_memory_return(memory, about);
        break;
    case SL_SETTLE_KIND_COUNT_: assert(false);
    }
}

static void answer(sl_memory *memory, sl_memory_delivery *said)
{
    const bool counts = said->record != NULL && !memory->has_failed;
    sl_job *const job = said->job;

    sl_list_remove(&said->line);
    if (said->is_recalled)
        memory->totals.recalled += counts ? 1 : 0;
    else
        memory->totals.out--;
    if (counts)
        apply(memory, said);
    else
        memory->totals.refused++;
    if (!counts && said->record != NULL)
        said->record->delivery = NULL; /* it failed: nobody gets it any more */
    sl_list_push_back(&memory->spare, &said->line);
    memory->source.owner->settled(memory->source.owner_ctx, job, counts ? SL_SETTLED_DONE : SL_SETTLED_LOST);
}

/* Those that are said from inside of the callbacks have their turn in the next round. */
static void answer_all(sl_memory *memory)
{
    sl_list said;

    if (memory->holds_answers || (!memory->is_up && !memory->has_failed))
        return;
    sl_list_init(&said);
    sl_list_splice(&said, &memory->answers);
    while (!sl_list_empty(&said))
        answer(memory, SL_CONTAINER_OF(said.next, sl_memory_delivery, line));
}

static void note(sl_memory_delivery *said, const sl_settle *settle)
{
    sl_text text;

    sl_text_init(&text, said->reason, sizeof said->reason);
    sl_text_add_str(&text, settle->reason);
    said->settle = *settle;
    said->is_said = true;
}

static void memory_settle(sl_source *source, sl_job *job, const sl_settle *settle)
{
    sl_memory *const memory = sl_memory_of(source);
    sl_memory_delivery *const said = job->source_data;

    note(said, settle);
    sl_list_remove(&said->line);
    sl_list_push_back(&memory->answers, &said->line);
    if (memory->settings.answers_at_once && !memory->holds_answers && memory->is_up)
        answer(memory, said);
    sl_memory_pump_soon(memory);
}

/* It counts if nobody has had the message since. */
static void memory_recall(sl_source *source, sl_job *job, const sl_settle *settle)
{
    sl_memory *const memory = sl_memory_of(source);
    sl_memory_record *const about = sl_memory_find_id(memory, job->message.id);
    sl_memory_delivery *const said = new_delivery(memory);

    if (said == NULL) {
        source->owner->settled(source->owner_ctx, job, SL_SETTLED_LOST);
        return;
    }
    said->job = job;
    said->is_recalled = true;
    note(said, settle);
    if (about != NULL && about->look.state == SL_MEMORY_READY && about->look.token == job->message.token) {
        said->record = about;
        about->delivery = said;
        about->look.state = SL_MEMORY_OUT;
        sl_list_remove(&about->fresh);
    }
    job->source_data = said;
    sl_list_push_back(&memory->answers, &said->line);
    sl_memory_pump_soon(memory);
}

/* --- one round --- */

static void come_up(sl_memory *memory)
{
    if (memory->is_up || memory->is_down || !memory->is_started || memory->has_failed)
        return;
    memory->is_up = true;
    memory->source.owner->up(memory->source.owner_ctx);
}

static void wake_delayed(sl_memory *memory)
{
    const uint64_t now_ns = sl_loop_now_ns(memory->loop);
    sl_pairing_node *first;

    while ((first = sl_pairing_min(&memory->delayed)) != NULL &&
           SL_CONTAINER_OF(first, sl_memory_record, waiting)->due_ns <= now_ns) {
        sl_pairing_remove(&memory->delayed, first);
        sl_memory_return(memory, SL_CONTAINER_OF(first, sl_memory_record, waiting));
    }
}

static void finish(sl_memory *memory)
{
    const bool is_empty = memory->totals.out == 0 && sl_list_empty(&memory->answers) &&
                          memory->delayed.root == NULL && !sl_memory_has_next(memory);

    if (memory->settings.has_end && memory->is_up && !memory->is_shut && is_empty)
        sl_memory_source_fail(&memory->source, SL_SOURCE_FINISHED, SL_STR("All messages are settled."));
}

static void pay_fence(sl_memory *memory)
{
    if (!memory->owes_fence || memory->holds_fence)
        return;
    memory->owes_fence = false;
    memory->source.owner->fenced(memory->source.owner_ctx);
}

static void pay_close(sl_memory *memory)
{
    if (!memory->owes_close)
        return;
    memory->owes_close = false;
    memory->is_closed = true;
    memory->source.owner->closed(memory->source.owner_ctx);
}

static void set_timer(sl_memory *memory)
{
    const sl_memory_delivery *const lease = first_lease(memory);
    const sl_pairing_node *const delayed = sl_pairing_min(&memory->delayed);
    uint64_t at_ns = memory->again_ns;

    if (memory->timer.is_set) /* somebody wants the next turn */
        return;
    if (lease != NULL && !memory->has_failed)
        at_ns = sl_min_u64(at_ns, lease->job->lease_until_ns);
    if (delayed != NULL)
        at_ns = sl_min_u64(at_ns, SL_CONTAINER_OF(delayed, sl_memory_record, waiting)->due_ns);
    sl_timer_set(&memory->timer, at_ns);
}

static void pump(void *ctx)
{
    sl_memory *const memory = ctx;

    if (memory->is_closed)
        return;
    come_up(memory);
    answer_all(memory);
    expire(memory);
    wake_delayed(memory);
    offer_all(memory);
    pay_fence(memory);
    finish(memory);
    pay_close(memory);
    set_timer(memory);
}

/* --- the door --- */

static void memory_start(sl_source *source)
{
    sl_memory_of(source)->is_started = true;
    sl_memory_pump_soon(sl_memory_of(source));
}

static bool memory_begin(sl_source *source, sl_job *job)
{
    const sl_memory *const memory = sl_memory_of_const(source);
    sl_memory_delivery *const held = job->source_data;

    if (!memory->is_up || memory->has_failed || memory->hands_back || held->record == NULL)
        return false;
    held->is_begun = true;
    held->record->look.begun++;
    return true;
}

static void memory_extend(sl_source *source, sl_job *job)
{
    sl_memory *const memory = sl_memory_of(source);
    sl_memory_delivery *const held = job->source_data;

    if (memory->settings.lease_ns == 0 || !memory->is_up || memory->has_failed || held->record == NULL)
        return;
    job->lease_until_ns = sl_add_sat_u64(sl_loop_now_ns(memory->loop), memory->settings.lease_ns);
    sl_list_remove(&held->line);
    sl_list_push_back(&memory->leases, &held->line);
    held->record->look.extended++;
}

static void memory_close_gate(sl_source *source, bool hand_back)
{
    sl_memory *const memory = sl_memory_of(source);

    memory->is_shut = true;
    memory->hands_back |= hand_back;
    memory->owes_fence = true;
    sl_memory_pump_soon(memory);
}

static void memory_close(sl_source *source)
{
    sl_memory_of(source)->owes_close = true;
    sl_memory_pump_soon(sl_memory_of(source));
}

static void memory_describe(const sl_source *source, cJSON *object)
{
    const sl_memory *const memory = sl_memory_of_const(source);

    (void)cJSON_AddBoolToObject(object, "connected", memory->is_up);
    (void)cJSON_AddNumberToObject(object, "out", memory->totals.out);
    (void)cJSON_AddNumberToObject(object, "acked", (double)memory->totals.acked);
    (void)cJSON_AddNumberToObject(object, "parked", (double)memory->totals.parked);
}

static void free_deliveries(sl_list *ring)
{
    SL_LIST_EACH_SAFE (node, ring)
        sl_alloc_give(&sl_alloc_default, SL_CONTAINER_OF(node, sl_memory_delivery, line),
                      sizeof(sl_memory_delivery));
}

static void memory_free(sl_source *source)
{
    sl_memory *const memory = sl_memory_of(source);

    sl_timer_stop(&memory->timer);
    free_deliveries(&memory->leases);
    free_deliveries(&memory->lost);
    free_deliveries(&memory->answers);
    free_deliveries(&memory->spare);
    SL_LIST_EACH_SAFE (node, &memory->every)
        sl_memory_forget(SL_CONTAINER_OF(node, sl_memory_record, every));
    sl_alloc_give(&sl_alloc_default, memory->room, memory->settings.data_bytes + 1);
    sl_alloc_give(&sl_alloc_default, memory, sizeof *memory);
}

static sl_source_class class_for(const sl_memory_settings *settings)
{
    return (sl_source_class){
        .name = "memory",
        .cancels_work = settings->cancels_work,
        .recall = memory_recall,
        .start = memory_start,
        .begin = memory_begin,
        .settle = memory_settle,
        .extend = settings->lease_ns == 0 ? NULL : memory_extend,
        .close_gate = memory_close_gate,
        .close = memory_close,
        .describe = memory_describe,
        .free = memory_free,
    };
}

sl_err sl_memory_source_new(sl_loop *loop, const sl_memory_settings *settings, sl_source **ret_source)
{
    sl_memory *const memory = sl_alloc_take(&sl_alloc_default, sizeof *memory);
    char *const room = memory == NULL ? NULL : sl_alloc_take(&sl_alloc_default, settings->data_bytes + 1);

    if (memory == NULL)
        return SL_ERR_NOMEM;
    if (room == NULL) {
        sl_alloc_give(&sl_alloc_default, memory, sizeof *memory);
        return SL_ERR_NOMEM;
    }
    *memory = (sl_memory){ .class = class_for(settings),
                           .settings = *settings,
                           .room = room,
                           .loop = loop,
                           .next_number = 1,
                           .again_ns = UINT64_MAX };
    memory->source = (sl_source){ .class = &memory->class,
                                  .keeps_delays = !settings->forgets_delays,
                                  .has_tokens = true,
                                  .confirms = true };
    sl_list_init(&memory->every);
    sl_list_init(&memory->fresh);
    sl_list_init(&memory->leases);
    sl_list_init(&memory->lost);
    sl_list_init(&memory->answers);
    sl_list_init(&memory->spare);
    sl_pairing_init(&memory->returned, sl_memory_number_before);
    sl_pairing_init(&memory->delayed, sl_memory_due_before);
    sl_timer_init(&memory->timer, loop, pump, memory);
    *ret_source = &memory->source;
    return SL_OK;
}

/* --- what is in it, and what goes wrong --- */

bool sl_memory_source_look(const sl_source *source, uint64_t number, sl_memory_look *ret_look)
{
    const sl_memory_record *const found = sl_memory_find_number(sl_memory_of_const(source), number);

    if (found != NULL)
        *ret_look = found->look;
    return found != NULL;
}

sl_memory_totals sl_memory_source_totals(const sl_source *source)
{
    return sl_memory_of_const(source)->totals;
}

void sl_memory_source_set_down(sl_source *source, bool is_down)
{
    sl_memory *const memory = sl_memory_of(source);
    const bool was_up = memory->is_up;

    memory->is_down = is_down;
    if (is_down)
        memory->is_up = false;
    sl_memory_pump_soon(memory);
    if (is_down && was_up && !memory->has_failed)
        source->owner->down(source->owner_ctx, SL_STR("The memory source was told to be down."));
}

void sl_memory_source_hold_answers(sl_source *source, bool holds)
{
    sl_memory_of(source)->holds_answers = holds;
    sl_memory_pump_soon(sl_memory_of(source));
}

void sl_memory_source_hold_fence(sl_source *source, bool holds)
{
    sl_memory_of(source)->holds_fence = holds;
    sl_memory_pump_soon(sl_memory_of(source));
}

void sl_memory_source_fail(sl_source *source, sl_source_failure failure, sl_str why)
{
    sl_memory *const memory = sl_memory_of(source);

    if (memory->has_failed)
        return;
    memory->has_failed = true;
    memory->is_up = false;
    sl_memory_pump_soon(memory);
    source->owner->failed(source->owner_ctx, failure, why);
}

/* One of which the worker has said its last word hears of it by the answer. */
bool sl_memory_source_lose(sl_source *source, uint64_t number)
{
    sl_memory *const memory = sl_memory_of(source);
    sl_memory_record *const found = sl_memory_find_number(memory, number);
    sl_memory_delivery *const held = found == NULL ? NULL : found->delivery;

    if (held == NULL)
        return false;
    if (!held->is_said) {
        lose_and_tell(memory, held);
        return true;
    }
    lose(memory, held);
    sl_list_push_back(&memory->answers, &held->line);
    return true;
}

void sl_memory_source_ask_stop(sl_source *source, sl_drain_reason by, sl_str why, uint64_t deadline_ms)
{
    source->owner->stop_asked(source->owner_ctx, by, why, deadline_ms);
}
