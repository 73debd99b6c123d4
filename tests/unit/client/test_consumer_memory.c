/* tests/unit/client/test_consumer_memory.c — a consumer that cannot be made for lack of memory says so, and leaves nothing behind. */
#include "scarce.h"
#include "test.h"

#include "client/consumer.h"

static void on_event(void *ctx, const sl_consumer_event *event)
{
    (void)ctx;
    (void)event;
}

static bool make_consumer(void *ctx)
{
    static const sl_consumer_handler handler = { .event = on_event };
    static const sl_consumer_label labels[] = { { "version", "7" }, { "zone", "a" } };
    static const sl_consumer_finished finished[] = {
        { .id = { .bytes = { 1 } }, .revision = 1, .lease_token = 1 },
        { .id = { .bytes = { 2 } }, .revision = 2, .lease_token = 1, .is_park = 1, .reason = "broken" },
    };
    const sl_consumer_options options = { .address = "sluice://anna:secret@127.0.0.1:1",
                                          .stream = "orders",
                                          .group = "billing",
                                          .labels = labels,
                                          .label_count = 2,
                                          .finished = finished,
                                          .finished_count = 2,
                                          .handler = &handler };
    char problem[SL_CONSUMER_PROBLEM_BYTES];
    sl_consumer *consumer = NULL;
    const sl_consumer_status status =
        sl_consumer_make(NULL, &options, NULL, problem, sizeof problem, &consumer);

    (void)ctx;
    if (status != SL_CONSUMER_OK)
        EXPECT_EQ(status, SL_CONSUMER_NOMEM);
    EXPECT_EQ(status == SL_CONSUMER_OK, consumer != NULL);
    sl_consumer_close(consumer);
    return status == SL_CONSUMER_OK;
}

TEST(a_consumer_without_memory_is_refused_and_leaves_nothing)
{
    scarce_sweep("a consumer", make_consumer, NULL);
}
