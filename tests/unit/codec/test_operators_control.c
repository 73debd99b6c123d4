/* Rules of operators_control.h: each field of proto/operators.proto goes where its name says, in both directions. protobuf-c holds the
 * other end, because a round trip through our own code would not see two fields that are exchanged. */
#include "codec/compare.h"

#include "wire/codec/operators.pb-c.h"
#include "wire/operators_control.h"

static const sl_wire_who full_who = { .stream = SL_STR_INIT("s"),
                                      .group = SL_STR_INIT("g"),
                                      .consumer_name = SL_STR_INIT("n"),
                                      .label_key = SL_STR_INIT("k"),
                                      .label_value = SL_STR_INIT("v") };

#define WHO_HEX "0a 0f 0a 01 73 12 01 67 1a 01 6e 22 01 6b 2a 01 76" /* field 1, and in it 1 to 5 */

static bool same_who(const sl_wire_who *a, const sl_wire_who *b)
{
    return sl_str_equal(a->stream, b->stream) && sl_str_equal(a->group, b->group) &&
           sl_str_equal(a->consumer_name, b->consumer_name) && sl_str_equal(a->label_key, b->label_key) &&
           sl_str_equal(a->label_value, b->label_value);
}

TEST(requests_of_operators_have_the_numbers_of_the_contract)
{
    const sl_wire_stop_request stop = { .who = full_who,
                                        .reason = SL_STR("r"),
                                        .deadline_ms = 2,
                                        .wait_ms = 3,
                                        .hand_back_unstarted = true,
                                        .once = true };
    const sl_wire_consumers_request list = { .who = full_who, .with_reports = true };
    sl_wire_stop_request stop_read;
    sl_wire_consumers_request list_read;
    sl_wire_who who;
    uint8_t memory[64];
    sl_arena arena;
    sl_str bytes;

    test_arena_init(&arena);
    EXPECT_OK(sl_wire_stop_request_encode(&stop, &arena, &bytes));
    EXPECT(sl_str_equal(bytes, from_hex(WHO_HEX " 12 01 72 18 02 20 03 28 01 30 01", memory)));
    EXPECT_OK(sl_wire_stop_request_decode(bytes, &arena, &stop_read, NULL));
    EXPECT(same_who(&stop_read.who, &full_who) && sl_str_equal(stop_read.reason, SL_STR("r")));
    EXPECT(stop_read.deadline_ms == 2 && stop_read.wait_ms == 3);
    EXPECT(stop_read.hand_back_unstarted && stop_read.once);
    EXPECT_OK(sl_wire_consumers_request_encode(&list, &arena, &bytes));
    EXPECT(sl_str_equal(bytes, from_hex(WHO_HEX " 10 01", memory)));
    EXPECT_OK(sl_wire_consumers_request_decode(bytes, &arena, &list_read, NULL));
    EXPECT(same_who(&list_read.who, &full_who) && list_read.with_reports);
    EXPECT_OK(sl_wire_resume_request_encode(&full_who, &arena, &bytes));
    EXPECT(sl_str_equal(bytes, from_hex(WHO_HEX, memory)));
    EXPECT_OK(sl_wire_resume_request_decode(bytes, &arena, &who, NULL));
    EXPECT(same_who(&who, &full_who));
    sl_arena_done(&arena);
}

TEST(empty_requests_of_operators_mean_everybody)
{
    sl_wire_stop_request stop = { .wait_ms = 1 };
    sl_wire_who who = full_who;
    sl_arena arena;

    test_arena_init(&arena);
    EXPECT_OK(sl_wire_stop_request_decode(SL_STR(""), &arena, &stop, NULL));
    EXPECT(stop.wait_ms == 0 && stop.who.stream.bytes == 0 && !stop.once);
    EXPECT_OK(sl_wire_resume_request_decode(SL_STR(""), &arena, &who, NULL));
    EXPECT(who.stream.bytes == 0 && who.label_value.bytes == 0);
    sl_arena_done(&arena);
}

TEST(small_answers_to_operators_have_the_numbers_of_the_contract)
{
    const sl_wire_stop_progress progress = {
        .meant = 4, .drained = 3, .in_flight = 2, .done = true, .rules = 9
    };
    const sl_wire_resume_answer resumed = { .resumed = 5, .too_late = 6, .rules = 7 };
    sl_wire_stop_progress progress_read;
    sl_wire_resume_answer resumed_read;
    uint8_t memory[64];
    sl_arena arena;
    sl_str bytes;

    test_arena_init(&arena);
    EXPECT_OK(sl_wire_stop_progress_encode(&progress, &arena, &bytes));
    EXPECT(sl_str_equal(bytes, from_hex("08 04 10 03 18 02 20 01 40 09", memory)));
    EXPECT_OK(sl_wire_stop_progress_decode(bytes, &arena, &progress_read, NULL));
    EXPECT(progress_read.meant == 4 && progress_read.drained == 3);
    EXPECT(progress_read.in_flight == 2 && progress_read.done && progress_read.rules == 9);
    EXPECT_OK(sl_wire_resume_answer_encode(&resumed, &arena, &bytes));
    EXPECT(sl_str_equal(bytes, from_hex("08 05 10 06 18 07", memory)));
    EXPECT_OK(sl_wire_resume_answer_decode(bytes, &arena, &resumed_read, NULL));
    EXPECT(resumed_read.resumed == 5 && resumed_read.too_late == 6 && resumed_read.rules == 7);
    sl_arena_done(&arena);
}

/* --- consumers and reports --- */

static const sl_wire_label labels[] = { { SL_STR_INIT("version"), SL_STR_INIT("42") },
                                        { SL_STR_INIT("zone"), SL_STR_INIT("") } };

static const sl_wire_consumer consumer = { .stream = SL_STR_INIT("orders"),
                                           .group = SL_STR_INIT("g"),
                                           .consumer = UINT64_MAX,
                                           .name = SL_STR_INIT("pod-1"),
                                           .labels = labels,
                                           .label_count = 2,
                                           .state = SL_STR_INIT("stopping"),
                                           .asked_by = SL_STR_INIT("operator"),
                                           .window = 8,
                                           .in_flight = 9,
                                           .started = 10,
                                           .deliveries = 11,
                                           .in_state_ms = 12,
                                           .safe_to_terminate = true,
                                           .address = SL_STR_INIT("a"),
                                           .user = SL_STR_INIT("u"),
                                           .removal_cost = 16,
                                           .cheapest_to_remove = true };
static const sl_wire_drain_report report = { .stream = SL_STR_INIT("orders"),
                                             .group = SL_STR_INIT("g"),
                                             .consumer = 3,
                                             .name = SL_STR_INIT("pod-0"),
                                             .asked_by = SL_STR_INIT("server"),
                                             .stopped_at_ms = 6,
                                             .took_ms = 7,
                                             .settled = 8,
                                             .released = 9,
                                             .lost = 10,
                                             .interrupted = 12,
                                             .outcome = SL_STR_INIT("left") };

static sl_str encoded(sl_arena *arena)
{
    const sl_wire_consumers list = { &consumer, 1, &report, 1 };
    sl_str bytes;

    EXPECT_OK(sl_wire_consumers_encode(&list, arena, &bytes));
    return bytes;
}

static void expect_consumer(const Sluice__Operators__Consumer *theirs)
{
    EXPECT(same_text(consumer.stream, theirs->stream) && same_text(consumer.group, theirs->group));
    EXPECT(theirs->consumer == UINT64_MAX && same_text(consumer.name, theirs->name));
    EXPECT_EQ(theirs->n_labels, 2);
    EXPECT_STR(theirs->labels[0]->key, "version");
    EXPECT_STR(theirs->labels[0]->value, "42");
    EXPECT_STR(theirs->labels[1]->key, "zone");
    EXPECT(same_text(consumer.state, theirs->state) && same_text(consumer.asked_by, theirs->asked_by));
    EXPECT(theirs->window == 8 && theirs->in_flight == 9 && theirs->started == 10);
    EXPECT(theirs->deliveries == 11 && theirs->in_state_ms == 12 && theirs->safe_to_terminate);
    EXPECT(same_text(consumer.address, theirs->address) && same_text(consumer.user, theirs->user));
    EXPECT(theirs->removal_cost == 16 && theirs->cheapest_to_remove);
}

static void expect_report(const Sluice__Operators__Report *theirs)
{
    EXPECT(same_text(report.stream, theirs->stream) && same_text(report.group, theirs->group));
    EXPECT(theirs->consumer == 3 && same_text(report.name, theirs->name));
    EXPECT(same_text(report.asked_by, theirs->asked_by) && same_text(report.outcome, theirs->outcome));
    EXPECT(theirs->stopped_at_ms == 6 && theirs->took_ms == 7);
    EXPECT(theirs->settled == 8 && theirs->released == 9 && theirs->lost == 10 && theirs->interrupted == 12);
}

TEST(lists_of_consumers_are_written_field_by_field)
{
    Sluice__Operators__ConsumersResp *theirs;
    sl_arena arena;
    sl_str bytes;

    test_arena_init(&arena);
    bytes = encoded(&arena);
    theirs = sluice__operators__consumers_resp__unpack(NULL, bytes.bytes, (const uint8_t *)bytes.data);
    assert_non_null(theirs);
    EXPECT(theirs->n_consumers == 1 && theirs->n_reports == 1);
    expect_consumer(theirs->consumers[0]);
    expect_report(theirs->reports[0]);
    sluice__operators__consumers_resp__free_unpacked(theirs, NULL);
    sl_arena_done(&arena);
}

TEST(lists_of_consumers_are_read_as_they_were_written)
{
    sl_wire_consumers list;
    sl_arena arena;
    sl_str again;
    sl_str bytes;

    test_arena_init(&arena);
    bytes = encoded(&arena);
    EXPECT_OK(sl_wire_consumers_decode(bytes, &arena, &list, NULL));
    EXPECT(list.consumer_count == 1 && list.report_count == 1);
    EXPECT(sl_str_equal(list.consumers[0].labels[1].key, SL_STR("zone")));
    EXPECT(list.consumers[0].in_state_ms == 12 && list.reports[0].lost == 10);
    EXPECT_OK(sl_wire_consumers_encode(&list, &arena, &again));
    EXPECT(sl_str_equal(again, bytes));
    sl_arena_done(&arena);
}

TEST(malformed_messages_of_operators_are_refused_with_a_reason)
{
    sl_wire_consumers list;
    sl_wire_stop_request stop;
    const char *reason = NULL;
    sl_arena arena;
    uint8_t memory[64];

    test_arena_init(&arena);
    EXPECT_ERR(sl_wire_stop_request_decode(from_hex("0a 05 0a", memory), &arena, &stop, &reason),
               SL_ERR_INVALID);
    EXPECT(reason != NULL);
    EXPECT_ERR(sl_wire_stop_request_decode(from_hex("12 02 ff fe", memory), &arena, &stop, NULL),
               SL_ERR_INVALID); /* no UTF-8 */
    EXPECT_ERR(sl_wire_consumers_decode(from_hex("0a 01", memory), &arena, &list, &reason), SL_ERR_INVALID);
    sl_arena_done(&arena);
}

TEST(lists_of_consumers_fail_without_memory)
{
    const sl_wire_consumers list = { &consumer, 1, &report, 1 };
    sl_arena arena;
    sl_str bytes;

    sl_arena_init(&arena, &sl_alloc_default, (sl_arena_sizes){ 256, 256 });
    EXPECT_ERR(sl_wire_consumers_encode(&list, &arena, &bytes), SL_ERR_NOMEM);
    sl_arena_done(&arena);
}
