/* Rules of wire/persistent_codec.h, with protobuf-c as the other opinion. */
#include "codec/compare.h"

#include "wire/persistent_codec.h"

typedef EventStore__Client__PersistentSubscriptions__ReadReq read_req;
typedef EventStore__Client__PersistentSubscriptions__ReadReq__Options read_options;
typedef EventStore__Client__PersistentSubscriptions__ReadResp read_resp;
typedef EventStore__Client__UUID uuid;

/* We write all ids of a list in one form. */
static void one_form(uuid **ids, size_t count, dice *d, sl_arena *arena)
{
    for (size_t i = 1; i < count; i++)
        while (ids[i]->value_case != ids[0]->value_case)
            ids[i] = random_message(&event_store__client__uuid__descriptor, d, arena);
}

/* --- requests --- */

static bool same_labels(const sl_wire_labels *ours, const read_options *theirs)
{
    sl_wire_walk walk = sl_wire_items_walk(&ours->items);
    sl_wire_label label;
    size_t at = 0;

    for (; sl_wire_labels_next(&walk, &label); at++)
        if (at == theirs->n_labels || !same_text(label.key, theirs->labels[at]->key) ||
            !same_text(label.value, theirs->labels[at]->value))
            return false;
    return at == theirs->n_labels && ours->count == at;
}

static bool same_options(const sl_persistent_options *ours, const read_options *theirs)
{
    static const int sources[] = {
        [SL_WIRE_SOURCE_UNSET] = 0, [SL_WIRE_SOURCE_STREAM] = 1, [SL_WIRE_SOURCE_ALL] = 5
    };
    const int id_case = theirs->uuid_option == NULL ? 0 : (int)theirs->uuid_option->content_case;

    return sources[ours->source] == (int)theirs->stream_option_case &&
           (ours->source != SL_WIRE_SOURCE_STREAM || same_stream(ours->stream, theirs->stream_identifier)) &&
           same_text(ours->group, theirs->group_name) && ours->buffer_size == theirs->buffer_size &&
           ours->has_id_option == (theirs->uuid_option != NULL) && (int)ours->id_form == id_case &&
           same_text(ours->consumer_name, theirs->consumer_name) && ours->extensions == theirs->extensions &&
           ours->reconnect_ms == theirs->reconnect_ms && same_labels(&ours->labels, theirs) &&
           same_ids(&ours->resume, theirs->resume, theirs->n_resume);
}

static bool same_request(const sl_persistent_request *ours, const read_req *theirs)
{
    if ((int)ours->kind != (int)theirs->content_case)
        return false;
    switch (ours->kind) {
    case SL_PERSISTENT_REQUEST_UNSET: return true;
    case SL_PERSISTENT_REQUEST_OPTIONS: return same_options(&ours->options, theirs->options);
    case SL_PERSISTENT_REQUEST_ACK:
        return same_ids(&ours->ids, theirs->ack->ids, theirs->ack->n_ids) &&
               same_bytes(ours->subscription, theirs->ack->id);
    case SL_PERSISTENT_REQUEST_NACK:
        return same_ids(&ours->ids, theirs->nack->ids, theirs->nack->n_ids) &&
               same_bytes(ours->subscription, theirs->nack->id) &&
               ours->action == (int32_t)theirs->nack->action &&
               same_text(ours->reason, theirs->nack->reason) && ours->delay_ms == theirs->nack->delay_ms;
    case SL_PERSISTENT_REQUEST_STOP: return ours->hand_back_unstarted == theirs->stop->hand_back_unstarted;
    case SL_PERSISTENT_REQUEST_RELEASE:
        return same_ids(&ours->ids, theirs->release->ids, theirs->release->n_ids);
    case SL_PERSISTENT_REQUEST_EXTEND:
        return same_ids(&ours->ids, theirs->extend->ids, theirs->extend->n_ids) &&
               ours->lease_ms == theirs->extend->lease_ms;
    case SL_PERSISTENT_REQUEST_STARTED:
        return same_ids(&ours->ids, theirs->started->ids, theirs->started->n_ids);
    }
    return false;
}

static void make_encodable(sl_persistent_request *ours, sl_arena *arena)
{
    if (ours->kind == SL_PERSISTENT_REQUEST_OPTIONS) {
        sl_wire_label *const labels = sl_arena_alloc(arena, ours->options.labels.count * sizeof *labels);
        sl_wire_walk walk = sl_wire_items_walk(&ours->options.labels.items);

        for (size_t i = 0; i < ours->options.labels.count; i++)
            EXPECT(sl_wire_labels_next(&walk, &labels[i]));
        ours->options.labels.list = labels;
        list_ids(&ours->options.resume, arena);
    } else if (ours->kind != SL_PERSISTENT_REQUEST_UNSET && ours->kind != SL_PERSISTENT_REQUEST_STOP) {
        list_ids(&ours->ids, arena);
    }
}

static void unify_request(read_req *theirs, dice *d, sl_arena *arena)
{
    switch ((int)theirs->content_case) {
    case 1: one_form(theirs->options->resume, theirs->options->n_resume, d, arena); break;
    case 2: one_form(theirs->ack->ids, theirs->ack->n_ids, d, arena); break;
    case 3: one_form(theirs->nack->ids, theirs->nack->n_ids, d, arena); break;
    case 100: one_form(theirs->release->ids, theirs->release->n_ids, d, arena); break;
    case 101: one_form(theirs->extend->ids, theirs->extend->n_ids, d, arena); break;
    case 102: one_form(theirs->started->ids, theirs->started->n_ids, d, arena); break;
    default: break;
    }
}

TEST(persistent_requests_are_read_and_written_as_protobuf_c_does)
{
    unsigned seen[SL_PERSISTENT_REQUEST_STARTED + 1] = { 0 };

    for (uint64_t run = 0; run < RANDOM_RUNS; run++) {
        dice d = dice_from(run);
        sl_arena arena;
        sl_persistent_request ours;
        uint8_t message[4096];

        test_arena_init(&arena);
        read_req *const theirs =
            random_message(&event_store__client__persistent_subscriptions__read_req__descriptor, &d, &arena);
        unify_request(theirs, &d, &arena);
        const sl_str bytes = packed(theirs, &arena);
        memset(&ours, 0xa5, sizeof ours);
        EXPECT_OK(sl_persistent_request_decode(bytes, &ours, NULL));
        seen[ours.kind]++;
        EXPECT_RUN(same_request(&ours, theirs), run, 0);
        make_encodable(&ours, &arena);
        EXPECT_EQ(sl_persistent_request_size(&ours), bytes.bytes);
        assert_true(bytes.bytes <= sizeof message);
        sl_persistent_request_encode(&ours, message, bytes.bytes);
        EXPECT_RUN(memcmp(message, bytes.data, bytes.bytes) == 0, run, 1);
        sl_arena_done(&arena);
    }
    for (size_t kind = 1; kind <= 4; kind++)
        EXPECT_ROW(seen[kind] > 0, kind);
    for (size_t kind = 100; kind <= 102; kind++)
        EXPECT_ROW(seen[kind] > 0, kind);
}

TEST(ids_of_both_forms_may_stand_in_one_ack)
{
    uint8_t memory[128];
    sl_persistent_request request;
    sl_wire_walk walk;
    sl_wire_id id;

    EXPECT_OK(sl_persistent_request_decode(
        from_hex("12 33  12 04 0a 02 08 07  12 26 12 24"
                 "30303131323233332d343435352d363637372d383839392d616162626363646465656666  12 03 12 01 78",
                 memory),
        &request, NULL));
    EXPECT_EQ(request.ids.count, 3);
    walk = sl_wire_items_walk(&request.ids.items);
    EXPECT(sl_wire_ids_next(&walk, &id) && id.form == SL_WIRE_ID_STRUCTURED && id.uuid.bytes[7] == 7);
    EXPECT(sl_wire_ids_next(&walk, &id) && id.form == SL_WIRE_ID_TEXT && id.uuid.bytes[15] == 0xff);
    EXPECT(sl_wire_ids_next(&walk, &id) && id.form == SL_WIRE_ID_MALFORMED);
    EXPECT(!sl_wire_ids_next(&walk, &id));
    EXPECT(!sl_wire_ids_next(&walk, &id));
}

TEST(an_ack_with_a_broken_id_is_refused_before_any_id_was_seen)
{
    uint8_t memory[64];
    sl_persistent_request request;
    const char *reason = NULL;

    EXPECT_ERR(sl_persistent_request_decode(from_hex("12 0a 12 04 0a 02 08 07  12 02 0a 05", memory),
                                            &request, &reason),
               SL_ERR_INVALID);
    EXPECT_STR(reason, "a length points behind the end of the message");
}

/* --- responses --- */

static bool same_response(const sl_persistent_response *ours, const read_resp *theirs)
{
    if ((int)ours->kind != (int)theirs->content_case)
        return false;
    switch (ours->kind) {
    case SL_PERSISTENT_RESPONSE_UNSET: return true;
    case SL_PERSISTENT_RESPONSE_EVENT: return same_persistent_event(&ours->event, theirs->event);
    case SL_PERSISTENT_RESPONSE_CONFIRMATION:
        return same_text(ours->subscription_id, theirs->subscription_confirmation->subscription_id);
    case SL_PERSISTENT_RESPONSE_STOPPED:
        return ours->stopped.in_flight == theirs->stopped->in_flight &&
               ours->stopped.already_stopped == theirs->stopped->already_stopped &&
               ours->stopped.asked_by == (int32_t)theirs->stopped->asked_by &&
               same_ids(&ours->stopped.outstanding, theirs->stopped->outstanding,
                        theirs->stopped->n_outstanding);
    case SL_PERSISTENT_RESPONSE_DRAINED:
        return ours->drained.settled == theirs->drained->settled &&
               ours->drained.lost == theirs->drained->lost &&
               ours->drained.released == theirs->drained->released;
    case SL_PERSISTENT_RESPONSE_STOP_REQUESTED:
        return same_text(ours->stop_requested.reason, theirs->stop_requested->reason) &&
               ours->stop_requested.deadline_ms == theirs->stop_requested->deadline_ms &&
               ours->stop_requested.hand_back_unstarted == theirs->stop_requested->hand_back_unstarted;
    case SL_PERSISTENT_RESPONSE_SETTLED:
        return same_ids(&ours->settled.ids, theirs->settled->ids, theirs->settled->n_ids) &&
               same_ids(&ours->settled.lost, theirs->settled->lost, theirs->settled->n_lost);
    }
    return false;
}

static void unify_response(read_resp *theirs, dice *d, sl_arena *arena)
{
    if (theirs->content_case == 100)
        one_form(theirs->stopped->outstanding, theirs->stopped->n_outstanding, d, arena);
    if (theirs->content_case != 103)
        return;
    one_form(theirs->settled->ids, theirs->settled->n_ids, d, arena);
    one_form(theirs->settled->lost, theirs->settled->n_lost, d, arena);
}

TEST(persistent_responses_are_read_and_written_as_protobuf_c_does)
{
    unsigned seen[SL_PERSISTENT_RESPONSE_SETTLED + 1] = { 0 };

    for (uint64_t run = 0; run < 2 * RANDOM_RUNS; run++) {
        dice d = dice_from(run);
        sl_arena arena;
        sl_persistent_response ours;
        uint8_t message[8192];

        test_arena_init(&arena);
        read_resp *const theirs =
            random_message(&event_store__client__persistent_subscriptions__read_resp__descriptor, &d, &arena);
        unify_response(theirs, &d, &arena);
        const sl_str bytes = packed(theirs, &arena);
        memset(&ours, 0xa5, sizeof ours);
        EXPECT_OK(sl_persistent_response_decode(bytes, &ours, NULL));
        seen[ours.kind]++;
        EXPECT_RUN(same_response(&ours, theirs), run, 0);
        if (ours.kind == SL_PERSISTENT_RESPONSE_STOPPED)
            list_ids(&ours.stopped.outstanding, &arena);
        if (ours.kind == SL_PERSISTENT_RESPONSE_SETTLED) {
            list_ids(&ours.settled.ids, &arena);
            list_ids(&ours.settled.lost, &arena);
        }
        EXPECT_EQ(sl_persistent_response_size(&ours), bytes.bytes);
        assert_true(bytes.bytes <= sizeof message);
        sl_persistent_response_encode(&ours, message, bytes.bytes);
        EXPECT_RUN(memcmp(message, bytes.data, bytes.bytes) == 0, run, 1);
        if (ours.kind == SL_PERSISTENT_RESPONSE_EVENT) {
            EXPECT_EQ(sl_persistent_event_size(&ours.event), bytes.bytes);
            memset(message, 0, bytes.bytes);
            sl_persistent_event_encode(&ours.event, message, bytes.bytes);
            EXPECT_RUN(memcmp(message, bytes.data, bytes.bytes) == 0, run, 2);
        }
        sl_arena_done(&arena);
    }
    for (size_t kind = 1; kind <= 2; kind++)
        EXPECT_ROW(seen[kind] > 0, kind);
    for (size_t kind = 100; kind <= 103; kind++)
        EXPECT_ROW(seen[kind] > 0, kind);
}

TEST(a_retry_count_of_zero_is_written)
{
    const sl_wire_read_event event = { .retry_kind = SL_WIRE_RETRY_COUNT };
    uint8_t message[8];

    EXPECT_EQ(sl_persistent_event_size(&event), 4);
    sl_persistent_event_encode(&event, message, 4);
    EXPECT_MEM(message, "\x0a\x02\x28\x00", 4);
}
