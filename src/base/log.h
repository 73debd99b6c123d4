/* base/log.h — log lines: a level, a constant message, and fields with names.
 *
 *     sl_log(log, SL_LOG_INFO, "consumer stopped", SL_LOG_STR("name", name), SL_LOG_U64("in_flight", count));
 *
 *     2026-11-15T22:53:32.123Z INFO  consumer stopped name="billing 2" in_flight=3
 *     {"time":"2026-11-15T22:53:32.123Z","level":"info","message":"consumer stopped","name":"billing 2",...}
 *
 * What varies goes into fields, not into the message, so that lines can be searched for. Values may come from
 * a peer: whatever they hold, one call makes exactly one line, and in JSON one valid object. Nothing is
 * written here; each finished line goes to a sink. Library folders do not log, they return; the caller that
 * decides what to do about an error logs it once. */
#ifndef SL_BASE_LOG_H
#define SL_BASE_LOG_H

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "base/uuid.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* With its newline. What a pipe takes in one piece on Linux, so that lines of several processes do not mix. */
enum {
    SL_LOG_LINE_BYTES_MAX = 4096
};

typedef enum sl_log_level {
    SL_LOG_DEBUG,
    SL_LOG_INFO,
    SL_LOG_WARN,
    SL_LOG_ERROR,
    SL_LOG_LEVEL_COUNT_
} sl_log_level;

typedef enum sl_log_format {
    SL_LOG_FORMAT_TEXT,
    SL_LOG_FORMAT_JSON,
    SL_LOG_FORMAT_COUNT_
} sl_log_format;

/* Gets one line with its newline, followed by a zero. The memory is gone after the call. It must not log. */
typedef void sl_log_sink_fn(void *ctx, const char *line, size_t line_bytes);

/* Filled by the caller; nothing changes it, so threads may share it when their sink allows that. */
typedef struct sl_logger {
    sl_log_level level_min;
    sl_log_format format;
    const sl_clock *clock;
    sl_log_sink_fn *sink;
    void *sink_ctx;
} sl_logger;

typedef enum sl_log_kind {
    SL_LOG_KIND_END, /* closes the array of fields */
    SL_LOG_KIND_STR,
    SL_LOG_KIND_U64,
    SL_LOG_KIND_I64,
    SL_LOG_KIND_BOOL,
    SL_LOG_KIND_ERR,
    SL_LOG_KIND_DURATION,
    SL_LOG_KIND_UUID
} sl_log_kind;

typedef struct sl_log_field { /* exactly the arm that `kind` names is filled */
    const char *key;
    sl_log_kind kind;
    union {
        sl_str str;
        uint64_t u64;
        int64_t i64;
        bool flag;
        sl_err err;
        uint64_t duration_ns;
        sl_uuid uuid;
    };
} sl_log_field;

#define SL_LOG_FIELD_(name, tag, arm, value)                                                                 \
    ((sl_log_field){ .key = (name), .kind = SL_LOG_KIND_##tag, .arm = (value) })

/* The value of SL_LOG_STR is a char pointer (NULL is empty) or an sl_str. An error is shown by its name, a
 * duration as "1.5s", in JSON too. The keys "time", "level", "message" and "cut" are taken. */
#define SL_LOG_STR(key, value)         SL_LOG_FIELD_(key, STR, str, SL_LOG_AS_STR_(value))
#define SL_LOG_U64(key, value)         SL_LOG_FIELD_(key, U64, u64, value)
#define SL_LOG_I64(key, value)         SL_LOG_FIELD_(key, I64, i64, value)
#define SL_LOG_BOOL(key, value)        SL_LOG_FIELD_(key, BOOL, flag, value)
#define SL_LOG_ERR(key, value)         SL_LOG_FIELD_(key, ERR, err, value)
#define SL_LOG_DURATION(key, value_ns) SL_LOG_FIELD_(key, DURATION, duration_ns, value_ns)
#define SL_LOG_UUID(key, value)        SL_LOG_FIELD_(key, UUID, uuid, value)

#define SL_LOG_AS_STR_(value)                                                                                \
    _Generic((value), sl_str : sl_log_same_str_, char * : sl_str_from, const char * : sl_str_from)(value)

static inline sl_str sl_log_same_str_(sl_str value)
{
    return value;
}

/* sl_log(log, level, message, field, ...). Below the logger's minimum nothing is evaluated but log and level.
 * A line above SL_LOG_LINE_BYTES_MAX is cut: the value that did not fit ends in "...", later fields are left
 * out, and a JSON line gets "cut":true. */
#define sl_log(log, level, ...)                                                                              \
    (sl_log_wants((log), (level)) ? sl_log_write((log), (level), SL_LOG_FIRST_(__VA_ARGS__, 0),              \
                                                 SL_LOG_REST_(__VA_ARGS__, SL_LOG_END_))                     \
                                  : (void)0)

/* The closing 0 and the end field give the variable part something to hold when there are no fields; C17 does
 * not allow it to be empty. */
#define SL_LOG_FIRST_(message, ...) (message)
#define SL_LOG_REST_(message, ...)  ((const sl_log_field[]){ __VA_ARGS__ })
#define SL_LOG_END_                 ((sl_log_field){ .kind = SL_LOG_KIND_END })

static inline bool sl_log_wants(const sl_logger *log, sl_log_level level)
{
    return level >= log->level_min;
}

/* What the macro calls. fields: up to the first of kind SL_LOG_KIND_END. */
void sl_log_write(const sl_logger *log, sl_log_level level, const char *message, const sl_log_field *fields);

#endif
