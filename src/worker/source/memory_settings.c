/* worker/source/memory_settings.c — the words behind "memory:"; see memory_source.h. */
#include "base/cleanup.h"
#include "worker/memory_source.h"
#include "worker/source/words.h"

#define SECOND_NS UINT64_C(1000000000)

sl_memory_settings sl_memory_settings_default(void)
{
    return (sl_memory_settings){ .type = "tick", .window = 100, .lease_ns = 30 * SECOND_NS };
}

static sl_err read_number(sl_str value, uint64_t min, uint64_t max, uint64_t *ret_number)
{
    uint64_t number;

    if (sl_str_parse_u64(value, &number) != SL_OK || number < min || number > max)
        return SL_ERR_INVALID;
    *ret_number = number;
    return SL_OK;
}

static sl_err set_count(void *into, sl_str value)
{
    sl_memory_settings *const settings = into;

    settings->has_end = true;
    return read_number(value, 0, UINT64_C(1000000000000), &settings->count);
}

static sl_err set_bytes(void *into, sl_str value)
{
    sl_memory_settings *const settings = into;
    uint64_t bytes;

    if (read_number(value, 0, SL_MEMORY_DATA_BYTES_MAX, &bytes) != SL_OK)
        return SL_ERR_INVALID;
    settings->data_bytes = (size_t)bytes;
    return SL_OK;
}

static sl_err set_type(void *into, sl_str value)
{
    sl_memory_settings *const settings = into;
    sl_text text;

    if (value.bytes == 0)
        return SL_ERR_INVALID;
    sl_text_init(&text, settings->type, sizeof settings->type);
    sl_text_add_str(&text, value);
    return text.cut ? SL_ERR_INVALID : SL_OK;
}

static sl_err set_window(void *into, sl_str value)
{
    sl_memory_settings *const settings = into;
    uint64_t window;

    if (read_number(value, 1, SL_MEMORY_WINDOW_MAX, &window) != SL_OK)
        return SL_ERR_INVALID;
    settings->window = (uint32_t)window;
    return SL_OK;
}

static sl_err set_lease(void *into, sl_str value)
{
    sl_memory_settings *const settings = into;
    const sl_duration_bounds bounds = { 0, 86400 * SECOND_NS };

    return sl_str_parse_duration(value, bounds, &settings->lease_ns) == SL_OK ? SL_OK : SL_ERR_INVALID;
}

static sl_err set_fail(void *into, sl_str value)
{
    sl_memory_settings *const settings = into;

    return read_number(value, 0, UINT64_MAX, &settings->fail_after);
}

static sl_err set_end(void *into, sl_str value)
{
    sl_memory_settings *const settings = into;

    settings->has_end = sl_str_equal(value, SL_STR("yes"));
    return settings->has_end || sl_str_equal(value, SL_STR("no")) ? SL_OK : SL_ERR_INVALID;
}

static const sl_word all[] = {
    { SL_STR_INIT("count"), set_count, "how many messages it makes, a whole number up to 1000000000000" },
    { SL_STR_INIT("bytes"), set_bytes, "the size of the data of each message, from 0 to 1048576" },
    { SL_STR_INIT("type"), set_type, "the type of its messages, a text of 1 to 63 bytes without a comma" },
    { SL_STR_INIT("window"), set_window, "how many messages may be out at the same time, from 1 to 100000" },
    { SL_STR_INIT("lease"), set_lease,
      "for how long a message is given out, like 30s, up to 24h; 0 means for ever" },
    { SL_STR_INIT("fail"), set_fail,
      "after how many messages the source fails, to try that out; 0 means never" },
    { SL_STR_INIT("end"), set_end, "whether the worker ends when all messages are settled, yes or no" },
};

static const sl_words words = {
    .who = "The memory source",
    .scheme = SL_STR_INIT("memory:"),
    .all = all,
    .count = SL_COUNT_OF(all),
    .known = "it knows count=, bytes=, type=, window=, lease=, fail= and end=, with commas between them",
};

sl_err sl_memory_settings_parse(sl_str text, sl_text *problem, sl_memory_settings *ret_settings)
{
    sl_memory_settings settings = sl_memory_settings_default();

    if (sl_words_read(&words, text, &settings, problem) != SL_OK)
        return SL_ERR_INVALID;
    *ret_settings = settings;
    return SL_OK;
}

sl_err sl_memory_source_open(sl_loop *loop, sl_str text, sl_text *problem, sl_source **ret_source)
{
    sl_memory_settings settings;
    sl_err err = sl_memory_settings_parse(text, problem, &settings);

    if (err == SL_OK) {
        err = sl_memory_source_new(loop, &settings, ret_source);
        if (err != SL_OK)
            sl_text_add(problem, "There is no memory for the memory source.");
    }
    return err;
}
