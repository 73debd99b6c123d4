/* tests/faults/text.c — see text.h. */
#include "text.h"

#include "dice.h"

#include <stdio.h>
#include <string.h>

enum {
    ID_HIGH = 4711,
    STREAMS_MAX = 64
};

sl_uuid text_id(uint64_t number)
{
    return sl_uuid_from_halves(ID_HIGH, (int64_t)number);
}

uint64_t text_number(sl_uuid id)
{
    int64_t most, least;

    sl_uuid_to_halves(id, &most, &least);
    return most == ID_HIGH ? (uint64_t)least : UINT64_MAX;
}

uint64_t text_created_ns(uint64_t number)
{
    return UINT64_C(1800000000000000000) + number;
}

size_t text_data_bytes(uint64_t number)
{
    const uint64_t random = dice_mix(number * 2 + 1), size = random >> 8;

    switch (random % 32) {
    case 0:
    case 1: return 0;
    case 2:
    case 3:
    case 4:
    case 5: return size % 1500;
    case 6: return size % TEXT_DATA_BYTES_MAX;
    default: return size % 200;
    }
}

static void fill(char *at, size_t bytes, uint64_t number)
{
    uint64_t state = dice_mix(number ^ UINT64_C(0x5bd1e995));

    for (size_t i = 0; i < bytes; i += sizeof state) {
        memcpy(at + i, &state, bytes - i < sizeof state ? bytes - i : sizeof state);
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    }
}

sl_event_in text_event(uint64_t number, char *memory)
{
    const size_t data_bytes = text_data_bytes(number), metadata_bytes = number % TEXT_METADATA_BYTES_MAX;
    char *const metadata = memory + data_bytes, *const type = metadata + metadata_bytes;

    fill(memory, data_bytes, number);
    fill(metadata, metadata_bytes, ~number);
    snprintf(type, 32, "type-%llu", (unsigned long long)(number % 9));
    return (sl_event_in){ .id = text_id(number),
                          .type = sl_str_from(type),
                          .data = { memory, data_bytes },
                          .metadata = { metadata, metadata_bytes },
                          .is_json = number % 2 == 0,
                          .created_ns = text_created_ns(number) };
}

sl_event_in text_metadata(uint64_t number, int64_t truncate_before, int64_t max_count, char *memory)
{
    snprintf(memory, TEXT_EVENT_BYTES_MAX, "{\"$maxCount\":%lld,\"note\":\"%llu\",\"$tb\":%lld}",
             (long long)max_count, (unsigned long long)number, (long long)truncate_before);
    return (sl_event_in){ .id = text_id(number),
                          .type = SL_STR("$metadata"),
                          .data = sl_str_from(memory),
                          .is_json = true,
                          .created_ns = text_created_ns(number) };
}

/* Some names are long. */
static void make_name(int stream, char name[TEXT_NAME_BYTES_MAX])
{
    const int padding = stream % 5 == 4 ? 10 * (stream % 20) : 0;

    snprintf(name, TEXT_NAME_BYTES_MAX, "$$stream-%d-%.*s", stream, padding,
             "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
             "xxxxxxxxx"
             "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
             "xxxxxxxxx");
}

sl_str text_stream(int stream, bool is_metadata)
{
    static char names[STREAMS_MAX][TEXT_NAME_BYTES_MAX];

    if (names[stream][0] == '\0')
        make_name(stream, names[stream]);
    return sl_str_from(names[stream] + (is_metadata ? 0 : 2));
}

sl_str text_definition(uint64_t number, char memory[TEXT_DEFINITION_BYTES_MAX])
{
    const size_t bytes = dice_mix(number) % (number % 4 == 0 ? TEXT_DEFINITION_BYTES_MAX : 60);

    fill(memory, bytes, number + 77);
    return (sl_str){ memory, bytes };
}

/* Fields are numbers without meaning: the store gives back what it got, and does not look at it. */
sl_effect text_record(uint64_t number)
{
    const sl_place place = { number % 3 == 0 ? SL_LANE_PARKED : SL_LANE_MAIN, number };

    switch (number % 4) {
    case 0:
        return (sl_effect){ .kind = SL_EFFECT_LEASE,
                            .lease = { .place = place,
                                       .id = text_id(number),
                                       .key = dice_mix(number),
                                       .consumer = number % 17,
                                       .token = number,
                                       .until_ns = text_created_ns(number),
                                       .deliveries = (uint32_t)(number % 5) } };
    case 1:
        return (sl_effect){ .kind = SL_EFFECT_SETTLE,
                            .settle = { .place = place,
                                        .id = text_id(number),
                                        .from = number,
                                        .to = number + 1,
                                        .cause = SL_SETTLE_ACKED } };
    case 2:
        return (sl_effect){ .kind = SL_EFFECT_BACK,
                            .back = { .place = place,
                                      .cause = SL_BACK_NACKED,
                                      .charged = number % 8 == 2,
                                      .counters = { .deliveries = (uint32_t)number },
                                      .not_before_ns = text_created_ns(number) } };
    default: return (sl_effect){ .kind = SL_EFFECT_EPOCH, .epoch = { .epoch = number, .messages_max = 9 } };
    }
}
