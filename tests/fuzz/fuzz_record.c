/* tests/fuzz/fuzz_record.c — hostile bytes as the records of a group.
 *
 * Reads records from the input one after the other, checks that each is written back as the same bytes, and
 * replays them into a small group. If the group accepts all of them, it is opened and used: whatever was
 * accepted must give a group whose inside is consistent. Nothing here may crash or hit an assertion. */
#include "core/group.h"
#include "core/record.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes);

static void ignore(void *ctx, const sl_effect *effect)
{
    (void)ctx;
    (void)effect;
}

static void expect_same_bytes(const sl_effect *record, const uint8_t *bytes, size_t byte_count)
{
    uint8_t again[SL_RECORD_BYTES_MAX];
    const size_t size = sl_record_encode(record, again);

    assert(size == byte_count && memcmp(again, bytes, size) == 0);
}

static bool load(sl_group *group, const uint8_t *data, size_t data_bytes)
{
    while (data_bytes > 0) {
        sl_effect record;
        size_t used;

        if (sl_record_decode(data, data_bytes, &record, &used) != SL_OK)
            return false;
        expect_same_bytes(&record, data, used);
        if (sl_group_replay(group, &record) != SL_OK)
            return false;
        data += used;
        data_bytes -= used;
    }
    return true;
}

/* Enough to touch every index: a consumer that takes, reading again, time that passes, a snapshot. */
static void use(sl_group *group, const sl_group_setup *setup)
{
    const sl_join join = { .session = { { 1 } }, .window = 100, .extensions = true };
    uint64_t consumer = 0, now_ns = 1000;

    if (sl_group_open(group, now_ns) != SL_OK)
        return;
    sl_group_check(group);
    (void)sl_group_join(group, &join, now_ns, &consumer);
    for (int i = 0; i < 20; i++) {
        const uint64_t position = sl_group_read_from(group, SL_LANE_MAIN);
        const sl_offer offer = { .place = { SL_LANE_MAIN, position }, .id = { { (uint8_t)position } } };
        uint32_t taken;
        (void)sl_group_offer(group, &offer, 1, now_ns, &taken);
        now_ns += SL_LEASE_NS_MAX / 4;
        sl_group_tick(group, now_ns);
        sl_group_check(group);
    }
    sl_group_snapshot(group, setup->sink);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes)
{
    const sl_group_setup setup = { .limits = { .messages_max = 64, .consumers_max = 8, .keyed = true },
                                   .settings = sl_settings_default(),
                                   .seed = { 1, 2 },
                                   .sink = { ignore, NULL } };
    void *const memory = malloc(sl_group_bytes(&setup.limits));
    sl_group *const group = sl_group_init(memory, &setup);

    if (load(group, data, data_bytes))
        use(group, &setup);
    free(memory);
    return 0;
}
