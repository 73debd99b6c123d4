/* wire/codec/operators_control.c — Sluice's own service for operators, both directions of each message. */
#include "wire/operators_control.h"

#include "wire/codec/operators.pb-c.h"
#include "wire/codec/unpack.h"

typedef Sluice__Operators__Who who_message;
typedef Sluice__Operators__Consumer consumer_message;
typedef Sluice__Operators__Consumer__LabelsEntry label_message;
typedef Sluice__Operators__Report report_message;

/* --- who --- */

static sl_wire_who who_from(const who_message *from)
{
    if (from == NULL)
        return (sl_wire_who){ 0 };
    return (sl_wire_who){ .stream = sl_unpacked_text(from->stream),
                          .group = sl_unpacked_text(from->group),
                          .consumer_name = sl_unpacked_text(from->consumer_name),
                          .label_key = sl_unpacked_text(from->label_key),
                          .label_value = sl_unpacked_text(from->label_value) };
}

static void pack_who(sl_packer *packer, const sl_wire_who *who, who_message *into)
{
    sluice__operators__who__init(into);
    into->stream = sl_packer_text(packer, who->stream);
    into->group = sl_packer_text(packer, who->group);
    into->consumer_name = sl_packer_text(packer, who->consumer_name);
    into->label_key = sl_packer_text(packer, who->label_key);
    into->label_value = sl_packer_text(packer, who->label_value);
}

/* --- Consumers: the question --- */

sl_err sl_wire_consumers_request_decode(sl_str message, sl_arena *arena,
                                        sl_wire_consumers_request *ret_request, const char **ret_reason)
{
    Sluice__Operators__ConsumersReq *unpacked;
    const sl_err err =
        sl_unpack(&sluice__operators__consumers_req__descriptor, message, arena, &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    *ret_request =
        (sl_wire_consumers_request){ .who = who_from(unpacked->who), .with_reports = unpacked->with_reports };
    return SL_OK;
}

sl_err sl_wire_consumers_request_encode(const sl_wire_consumers_request *request, sl_arena *arena,
                                        sl_str *ret_message)
{
    sl_packer packer = { .arena = arena };
    Sluice__Operators__ConsumersReq packed = SLUICE__OPERATORS__CONSUMERS_REQ__INIT;
    who_message who;

    pack_who(&packer, &request->who, &who);
    packed.who = &who;
    packed.with_reports = request->with_reports;
    return sl_pack(&packer, &packed.base, ret_message);
}

/* --- Consumers: the answer, read --- */

static bool labels_from(const consumer_message *from, sl_arena *arena, sl_wire_consumer *into)
{
    sl_wire_label *const labels = sl_arena_alloc_zero(arena, from->n_labels * sizeof *labels);

    if (labels == NULL)
        return false;
    for (size_t i = 0; i < from->n_labels; i++)
        labels[i] = (sl_wire_label){ sl_unpacked_text(from->labels[i]->key),
                                     sl_unpacked_text(from->labels[i]->value) };
    into->labels = labels;
    into->label_count = from->n_labels;
    return true;
}

static bool consumer_from(const consumer_message *from, sl_arena *arena, sl_wire_consumer *into)
{
    *into = (sl_wire_consumer){ .stream = sl_unpacked_text(from->stream),
                                .group = sl_unpacked_text(from->group),
                                .consumer = from->consumer,
                                .name = sl_unpacked_text(from->name),
                                .state = sl_unpacked_text(from->state),
                                .asked_by = sl_unpacked_text(from->asked_by),
                                .window = from->window,
                                .in_flight = from->in_flight,
                                .started = from->started,
                                .deliveries = from->deliveries,
                                .in_state_ms = from->in_state_ms,
                                .safe_to_terminate = from->safe_to_terminate,
                                .address = sl_unpacked_text(from->address),
                                .user = sl_unpacked_text(from->user),
                                .removal_cost = from->removal_cost,
                                .cheapest_to_remove = from->cheapest_to_remove };
    return labels_from(from, arena, into);
}

static sl_wire_drain_report report_from(const report_message *from)
{
    return (sl_wire_drain_report){ .stream = sl_unpacked_text(from->stream),
                                   .group = sl_unpacked_text(from->group),
                                   .consumer = from->consumer,
                                   .name = sl_unpacked_text(from->name),
                                   .asked_by = sl_unpacked_text(from->asked_by),
                                   .stopped_at_ms = from->stopped_at_ms,
                                   .took_ms = from->took_ms,
                                   .settled = from->settled,
                                   .released = from->released,
                                   .lost = from->lost,
                                   .interrupted = from->interrupted,
                                   .outcome = sl_unpacked_text(from->outcome) };
}

sl_err sl_wire_consumers_decode(sl_str message, sl_arena *arena, sl_wire_consumers *ret_consumers,
                                const char **ret_reason)
{
    Sluice__Operators__ConsumersResp *unpacked;
    sl_wire_consumer *consumers;
    sl_wire_drain_report *reports;
    const sl_err err =
        sl_unpack(&sluice__operators__consumers_resp__descriptor, message, arena, &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    consumers = sl_arena_alloc_zero(arena, unpacked->n_consumers * sizeof *consumers);
    reports = sl_arena_alloc_zero(arena, unpacked->n_reports * sizeof *reports);
    if (consumers == NULL || reports == NULL)
        return SL_ERR_NOMEM;
    for (size_t i = 0; i < unpacked->n_consumers; i++) {
        if (!consumer_from(unpacked->consumers[i], arena, &consumers[i]))
            return SL_ERR_NOMEM;
    }
    for (size_t i = 0; i < unpacked->n_reports; i++)
        reports[i] = report_from(unpacked->reports[i]);
    *ret_consumers = (sl_wire_consumers){ consumers, unpacked->n_consumers, reports, unpacked->n_reports };
    return SL_OK;
}

/* --- Consumers: the answer, written --- */

static label_message **pack_labels(sl_packer *packer, const sl_wire_consumer *from)
{
    label_message **const list = sl_packer_take(packer, from->label_count * sizeof *list);
    label_message *const items = sl_packer_take(packer, from->label_count * sizeof *items);

    for (size_t i = 0; !packer->failed && i < from->label_count; i++) {
        sluice__operators__consumer__labels_entry__init(&items[i]);
        items[i].key = sl_packer_text(packer, from->labels[i].key);
        items[i].value = sl_packer_text(packer, from->labels[i].value);
        list[i] = &items[i];
    }
    return list;
}

static void pack_consumer(sl_packer *packer, const sl_wire_consumer *from, consumer_message *into)
{
    sluice__operators__consumer__init(into);
    into->stream = sl_packer_text(packer, from->stream);
    into->group = sl_packer_text(packer, from->group);
    into->consumer = from->consumer;
    into->name = sl_packer_text(packer, from->name);
    into->n_labels = from->label_count;
    into->labels = pack_labels(packer, from);
    into->state = sl_packer_text(packer, from->state);
    into->asked_by = sl_packer_text(packer, from->asked_by);
    into->window = from->window;
    into->in_flight = from->in_flight;
    into->started = from->started;
    into->deliveries = from->deliveries;
    into->in_state_ms = from->in_state_ms;
    into->safe_to_terminate = from->safe_to_terminate;
    into->address = sl_packer_text(packer, from->address);
    into->user = sl_packer_text(packer, from->user);
    into->removal_cost = from->removal_cost;
    into->cheapest_to_remove = from->cheapest_to_remove;
}

static void pack_report(sl_packer *packer, const sl_wire_drain_report *from, report_message *into)
{
    sluice__operators__report__init(into);
    into->stream = sl_packer_text(packer, from->stream);
    into->group = sl_packer_text(packer, from->group);
    into->consumer = from->consumer;
    into->name = sl_packer_text(packer, from->name);
    into->asked_by = sl_packer_text(packer, from->asked_by);
    into->stopped_at_ms = from->stopped_at_ms;
    into->took_ms = from->took_ms;
    into->settled = from->settled;
    into->released = from->released;
    into->lost = from->lost;
    into->interrupted = from->interrupted;
    into->outcome = sl_packer_text(packer, from->outcome);
}

static consumer_message **pack_consumers(sl_packer *packer, const sl_wire_consumers *from)
{
    consumer_message **const list = sl_packer_take(packer, from->consumer_count * sizeof *list);
    consumer_message *const items = sl_packer_take(packer, from->consumer_count * sizeof *items);

    for (size_t i = 0; !packer->failed && i < from->consumer_count; i++) {
        pack_consumer(packer, &from->consumers[i], &items[i]);
        list[i] = &items[i];
    }
    return list;
}

static report_message **pack_reports(sl_packer *packer, const sl_wire_consumers *from)
{
    report_message **const list = sl_packer_take(packer, from->report_count * sizeof *list);
    report_message *const items = sl_packer_take(packer, from->report_count * sizeof *items);

    for (size_t i = 0; !packer->failed && i < from->report_count; i++) {
        pack_report(packer, &from->reports[i], &items[i]);
        list[i] = &items[i];
    }
    return list;
}

sl_err sl_wire_consumers_encode(const sl_wire_consumers *consumers, sl_arena *arena, sl_str *ret_message)
{
    sl_packer packer = { .arena = arena };
    Sluice__Operators__ConsumersResp packed = SLUICE__OPERATORS__CONSUMERS_RESP__INIT;

    packed.n_consumers = consumers->consumer_count;
    packed.consumers = pack_consumers(&packer, consumers);
    packed.n_reports = consumers->report_count;
    packed.reports = pack_reports(&packer, consumers);
    return sl_pack(&packer, &packed.base, ret_message);
}

/* --- Stop --- */

sl_err sl_wire_stop_request_decode(sl_str message, sl_arena *arena, sl_wire_stop_request *ret_request,
                                   const char **ret_reason)
{
    Sluice__Operators__StopReq *unpacked;
    const sl_err err =
        sl_unpack(&sluice__operators__stop_req__descriptor, message, arena, &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    *ret_request = (sl_wire_stop_request){ .who = who_from(unpacked->who),
                                           .reason = sl_unpacked_text(unpacked->reason),
                                           .deadline_ms = unpacked->deadline_ms,
                                           .wait_ms = unpacked->wait_ms,
                                           .hand_back_unstarted = unpacked->hand_back_unstarted,
                                           .once = unpacked->once };
    return SL_OK;
}

sl_err sl_wire_stop_request_encode(const sl_wire_stop_request *request, sl_arena *arena, sl_str *ret_message)
{
    sl_packer packer = { .arena = arena };
    Sluice__Operators__StopReq packed = SLUICE__OPERATORS__STOP_REQ__INIT;
    who_message who;

    pack_who(&packer, &request->who, &who);
    packed.who = &who;
    packed.reason = sl_packer_text(&packer, request->reason);
    packed.deadline_ms = request->deadline_ms;
    packed.wait_ms = request->wait_ms;
    packed.hand_back_unstarted = request->hand_back_unstarted;
    packed.once = request->once;
    return sl_pack(&packer, &packed.base, ret_message);
}

sl_err sl_wire_stop_progress_decode(sl_str message, sl_arena *arena, sl_wire_stop_progress *ret_progress,
                                    const char **ret_reason)
{
    Sluice__Operators__StopResp *unpacked;
    const sl_err err =
        sl_unpack(&sluice__operators__stop_resp__descriptor, message, arena, &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    *ret_progress = (sl_wire_stop_progress){ .meant = unpacked->meant,
                                             .drained = unpacked->drained,
                                             .in_flight = unpacked->in_flight,
                                             .went_away = unpacked->went_away,
                                             .lost = unpacked->lost,
                                             .unlabelled = unpacked->unlabelled,
                                             .rules = unpacked->rules,
                                             .done = unpacked->done };
    return SL_OK;
}

sl_err sl_wire_stop_progress_encode(const sl_wire_stop_progress *progress, sl_arena *arena,
                                    sl_str *ret_message)
{
    sl_packer packer = { .arena = arena };
    Sluice__Operators__StopResp packed = SLUICE__OPERATORS__STOP_RESP__INIT;

    packed.meant = progress->meant;
    packed.drained = progress->drained;
    packed.in_flight = progress->in_flight;
    packed.done = progress->done;
    packed.went_away = progress->went_away;
    packed.lost = progress->lost;
    packed.unlabelled = progress->unlabelled;
    packed.rules = progress->rules;
    return sl_pack(&packer, &packed.base, ret_message);
}

/* --- Resume --- */

sl_err sl_wire_resume_request_decode(sl_str message, sl_arena *arena, sl_wire_who *ret_who,
                                     const char **ret_reason)
{
    Sluice__Operators__ResumeReq *unpacked;
    const sl_err err =
        sl_unpack(&sluice__operators__resume_req__descriptor, message, arena, &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    *ret_who = who_from(unpacked->who);
    return SL_OK;
}

sl_err sl_wire_resume_request_encode(const sl_wire_who *who, sl_arena *arena, sl_str *ret_message)
{
    sl_packer packer = { .arena = arena };
    Sluice__Operators__ResumeReq packed = SLUICE__OPERATORS__RESUME_REQ__INIT;
    who_message packed_who;

    pack_who(&packer, who, &packed_who);
    packed.who = &packed_who;
    return sl_pack(&packer, &packed.base, ret_message);
}

sl_err sl_wire_resume_answer_decode(sl_str message, sl_arena *arena, sl_wire_resume_answer *ret_answer,
                                    const char **ret_reason)
{
    Sluice__Operators__ResumeResp *unpacked;
    const sl_err err =
        sl_unpack(&sluice__operators__resume_resp__descriptor, message, arena, &unpacked, ret_reason);

    if (err != SL_OK)
        return err;
    *ret_answer = (sl_wire_resume_answer){ .resumed = unpacked->resumed,
                                           .too_late = unpacked->too_late,
                                           .rules = unpacked->rules };
    return SL_OK;
}

sl_err sl_wire_resume_answer_encode(const sl_wire_resume_answer *answer, sl_arena *arena, sl_str *ret_message)
{
    sl_packer packer = { .arena = arena };
    Sluice__Operators__ResumeResp packed = SLUICE__OPERATORS__RESUME_RESP__INIT;

    packed.resumed = answer->resumed;
    packed.too_late = answer->too_late;
    packed.rules = answer->rules;
    return sl_pack(&packer, &packed.base, ret_message);
}
