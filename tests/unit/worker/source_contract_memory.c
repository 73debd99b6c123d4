/* tests/unit/worker/source_contract_memory.c — the source memory: as a row of the contract. */
#include "source_contract.h"

#include "worker/memory_source.h"

#include <string.h>

enum {
    NUMBERS_MAX = SOURCE_CONTRACT_JOBS_MAX
};

/* What was put before the source was opened waits here: the world is inside of the source. */
static uint64_t numbers[NUMBERS_MAX];
static sl_uuid ids[NUMBERS_MAX];
static uint32_t number_count;

static void memory_make_world(source_contract *c)
{
    (void)c;
    number_count = 0;
}

static sl_source *memory_open(source_contract *c)
{
    sl_memory_settings settings = sl_memory_settings_default();
    sl_source *source = NULL;

    if (c->lease_ns != 0)
        settings.lease_ns = c->lease_ns;
    EXPECT_OK(sl_memory_source_new(c->loop, &settings, &source));
    return source;
}

static void memory_put(source_contract *c, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        sl_job_message message = { .stream = SL_STR_INIT("orders"), .type = SL_STR_INIT("t") };

        EXPECT(number_count < NUMBERS_MAX);
        message.id.bytes[0] = 0xaa;
        message.id.bytes[15] = (uint8_t)(number_count + 1);
        ids[number_count] = message.id;
        EXPECT_OK(sl_memory_source_put(c->source, &message, &numbers[number_count++]));
    }
}

static void memory_set_down(source_contract *c, bool is_down)
{
    sl_memory_source_set_down(c->source, is_down);
}

static void memory_take_away(source_contract *c, const sl_job *job)
{
    for (uint32_t i = 0; i < number_count; i++)
        if (sl_uuid_equal(ids[i], job->message.id))
            EXPECT(sl_memory_source_lose(c->source, numbers[i]));
}

static void memory_fail(source_contract *c)
{
    sl_memory_source_fail(c->source, SL_SOURCE_LOST, SL_STR("gone for good"));
}

static void memory_stop(source_contract *c)
{
    sl_memory_source_ask_stop(c->source, SL_DRAIN_REASON_OPERATOR, SL_STR("deploy"), 1000);
}

static void memory_free_world(source_contract *c)
{
    (void)c;
}

SOURCE_CONTRACT_ROW(memory, .name = "memory", .make_world = memory_make_world, .open = memory_open,
                    .put = memory_put, .set_down = memory_set_down, .take_away = memory_take_away,
                    .break_for_good = memory_fail, .stop = memory_stop, .free_world = memory_free_world)
