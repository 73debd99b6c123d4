/* Rules of wire/persistent_codec.h: an event that is encoded once and delivered often. */
#include "test.h"

#include "wire/persistent_codec.h"

#include <string.h>

static const sl_wire_read_event linked = {
    .has_event = true,
    .has_link = true,
    .event = { .id = { { { 1, 2 } }, SL_WIRE_ID_STRUCTURED },
               .stream = SL_STR_INIT("orders"),
               .revision = 7,
               .commit_position = 300,
               .prepare_position = 300,
               .type = SL_STR_INIT("placed"),
               .content_type = SL_STR_INIT("application/json"),
               .created_ticks = 12345,
               .data = SL_STR_INIT("{}") },
    .link = { .id = { { { 3 } }, SL_WIRE_ID_STRUCTURED },
              .stream = SL_STR_INIT("links"),
              .type = SL_STR_INIT("$>") },
    .position_kind = SL_WIRE_POSITION_GIVEN,
    .commit_position = 300,
};

/* The other way to make the same message is the judge. */
static void expect_same(const sl_wire_read_event *event, const sl_persistent_delivery *delivery)
{
    uint8_t body[512], made[512], wanted[512];
    const size_t body_bytes = sl_persistent_body_size(event);
    const sl_str kept = { (const char *)body, body_bytes };
    sl_wire_read_event whole = *event;
    size_t made_bytes, wanted_bytes;

    sl_persistent_body_encode(event, body, body_bytes);
    made_bytes = sl_persistent_delivery_size(kept, delivery);
    sl_persistent_delivery_encode(kept, delivery, made, made_bytes);
    whole.retry_kind = SL_WIRE_RETRY_COUNT;
    whole.retry_count = delivery->retry_count;
    whole.lease_token = delivery->lease_token;
    whole.lease_ms = delivery->lease_ms;
    wanted_bytes = sl_persistent_event_size(&whole);
    sl_persistent_event_encode(&whole, wanted, wanted_bytes);
    EXPECT_EQ(made_bytes, wanted_bytes);
    EXPECT_MEM(made, wanted, wanted_bytes);
}

TEST(a_delivery_of_a_body_is_the_message_of_the_whole_event)
{
    sl_wire_read_event plain = linked, nothing = linked;

    plain.has_link = false;
    nothing.has_event = false;
    expect_same(&linked, &(sl_persistent_delivery){ 0 });
    expect_same(&linked, &(sl_persistent_delivery){ 3, UINT64_C(1) << 40, 30000 });
    expect_same(&plain, &(sl_persistent_delivery){ INT32_MAX, UINT64_MAX, INT32_MAX });
    expect_same(&nothing, &(sl_persistent_delivery){ 0, 1, 1 });
}

TEST(a_body_can_be_read_again)
{
    uint8_t body[512];
    const size_t bytes = sl_persistent_body_size(&linked);
    sl_wire_read_event again;

    sl_persistent_body_encode(&linked, body, bytes);
    EXPECT_OK(sl_persistent_body_decode((sl_str){ (const char *)body, bytes }, &again));
    EXPECT(again.has_event && again.has_link);
    EXPECT(sl_str_equal(again.event.stream, linked.event.stream));
    EXPECT_EQ(again.event.revision, 7);
    EXPECT_EQ(again.event.id.form, SL_WIRE_ID_STRUCTURED);
    EXPECT(sl_uuid_equal(again.link.id.uuid, linked.link.id.uuid));
    EXPECT_ERR(sl_persistent_body_decode((sl_str){ (const char *)body, bytes - 1 }, &again), SL_ERR_INVALID);
}
