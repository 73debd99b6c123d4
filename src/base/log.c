/* base/log.c — how a log line is put together in a buffer on the stack.
 *
 * Everything that goes into a line is a piece, and a piece goes in whole or not at all: a number, a key with
 * its marks, one character of a text together with its escape. So a full buffer never breaks a number or an
 * escape:
 *
 *      |<------------- ROOM_BYTES ------------->|<- TAIL ->|
 *      | {"time":...,"message":"...             | ..."     ,"cut":true}\n
 *
 * Pieces stop at ROOM_BYTES. The tail is kept free for what must always come: the mark of a cut text, its
 * closing quote, and the end of the line. A text that does not fit keeps its beginning; any other field is
 * taken back completely, since half a number would be a wrong number.
 *
 * What a value may do to a line: nothing. Control characters and everything that a terminal or an editor
 * takes for a line end are written as escapes, bytes that are no UTF-8 as U+FFFD. */
#include "base/log.h"

#include "base/cleanup.h"
#include "base/utf8.h"

#include <assert.h>

#define TAIL "...\",\"cut\":true}\n"

enum {
    ROOM_BYTES = SL_LOG_LINE_BYTES_MAX - (sizeof(TAIL) - 1)
};

typedef struct line {
    sl_text text;
    sl_log_format format;
    bool full; /* a piece did not fit; nothing but the tail may follow */
    char buffer[SL_LOG_LINE_BYTES_MAX + 1];
} line;

static const struct {
    sl_str shown, name; /* in text, padded so that messages begin in one column; in JSON and configuration */
} levels[] = {
    [SL_LOG_DEBUG] = { SL_STR_INIT("DEBUG "), SL_STR_INIT("debug") },
    [SL_LOG_INFO] = { SL_STR_INIT("INFO  "), SL_STR_INIT("info") },
    [SL_LOG_WARN] = { SL_STR_INIT("WARN  "), SL_STR_INIT("warn") },
    [SL_LOG_ERROR] = { SL_STR_INIT("ERROR "), SL_STR_INIT("error") },
};
static_assert(SL_COUNT_OF(levels) == SL_LOG_LEVEL_COUNT_, "one row for each level");

static bool is_json(const line *l)
{
    return l->format == SL_LOG_FORMAT_JSON;
}

static void add_piece(line *l, sl_str piece)
{
    l->full = l->full || l->text.bytes + piece.bytes > ROOM_BYTES;
    if (!l->full)
        sl_text_add_str(&l->text, piece);
}

/* For what has its place in the tail. */
static void add_tail(line *l, const char *tail)
{
    sl_text_add(&l->text, tail);
    assert(!l->text.cut);
}

/* Takes back everything after `mark`. */
static void rewind_to(line *l, size_t mark)
{
    l->text.bytes = mark;
    l->text.data[mark] = '\0';
}

/* True for characters that must not be seen by a terminal or end a line: the control blocks, and the line and
 * paragraph separators of Unicode. */
static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x2028 || code == 0x2029;
}

static void add_unicode_escape(line *l, uint32_t code)
{
    static const char hex_digits[] = "0123456789abcdef";
    const char escape[] = { '\\',
                            'u',
                            hex_digits[code >> 12 & 15],
                            hex_digits[code >> 8 & 15],
                            hex_digits[code >> 4 & 15],
                            hex_digits[code & 15] };

    add_piece(l, (sl_str){ escape, sizeof escape });
}

/* Adds the first character of `text`, escaped as JSON wants it, which people can read as well. `quoted`: it
 * stands between quotes. Returns how many bytes of the text it took. */
static size_t add_character(line *l, sl_str text, bool quoted)
{
    uint32_t code;
    const size_t bytes = sl_utf8_first(text, &code);

    if (bytes == 0) {
        add_piece(l, SL_STR("\xef\xbf\xbd")); /* U+FFFD, the replacement character */
        return 1;
    }
    if (code == '\n')
        add_piece(l, SL_STR("\\n"));
    else if (code == '\t')
        add_piece(l, SL_STR("\\t"));
    else if (code == '\r')
        add_piece(l, SL_STR("\\r"));
    else if (code == '\\')
        add_piece(l, SL_STR("\\\\"));
    else if (code == '"' && quoted)
        add_piece(l, SL_STR("\\\""));
    else if (is_control(code))
        add_unicode_escape(l, code);
    else
        add_piece(l, (sl_str){ text.data, bytes });
    return bytes;
}

static void add_escaped(line *l, sl_str text, bool quoted)
{
    for (size_t at = 0; at < text.bytes && !l->full;)
        at += add_character(l, (sl_str){ text.data + at, text.bytes - at }, quoted);
}

/* As much of the text as fits, then the mark of a cut. */
static void add_text(line *l, sl_str text, bool quoted)
{
    add_escaped(l, text, quoted);
    if (l->full)
        add_tail(l, "...");
}

/* False when there was no room even for the opening quote: then nothing was added. */
static bool add_quoted(line *l, sl_str text)
{
    add_piece(l, SL_STR("\""));
    if (l->full)
        return false;
    add_text(l, text, true);
    add_tail(l, "\"");
    return true;
}

/* True for a value that is one word to the eye and to a program that splits the line. */
static bool is_bare(sl_str value)
{
    for (size_t i = 0; i < value.bytes; i++) {
        const char c = value.data[i];
        if (c <= ' ' || c > '~' || c == '"' || c == '=' || c == '\\')
            return false;
    }
    return value.bytes > 0;
}

/* The value as a text, written into `space` unless it is one already. */
static sl_str shown(const sl_log_field *field, sl_text *space)
{
    char uuid_text[SL_UUID_TEXT_BYTES + 1];

    switch (field->kind) {
    case SL_LOG_KIND_END: break;
    case SL_LOG_KIND_STR: return field->str;
    case SL_LOG_KIND_U64: sl_text_add_u64(space, field->u64); break;
    case SL_LOG_KIND_I64: sl_text_add_i64(space, field->i64); break;
    case SL_LOG_KIND_BOOL: sl_text_add(space, field->flag ? "true" : "false"); break;
    case SL_LOG_KIND_ERR: sl_text_add(space, sl_err_name(field->err)); break;
    case SL_LOG_KIND_DURATION: sl_text_add_duration(space, field->duration_ns); break;
    case SL_LOG_KIND_UUID:
        sl_uuid_format(field->uuid, uuid_text);
        sl_text_add(space, uuid_text);
        break;
    }
    return sl_text_str(space);
}

/* False when nothing of it fits. */
static bool add_value(line *l, const sl_log_field *field)
{
    const bool literal = field->kind == SL_LOG_KIND_U64 || field->kind == SL_LOG_KIND_I64 ||
                         field->kind == SL_LOG_KIND_BOOL; /* what JSON has without quotes */
    char buffer[64];
    sl_text space;

    sl_text_init(&space, buffer, sizeof buffer);
    const sl_str value = shown(field, &space);
    if (literal) {
        add_piece(l, value);
        return !l->full;
    }
    if (is_json(l) || !is_bare(value))
        return add_quoted(l, value);
    add_text(l, value, false);
    return true;
}

/* Keys are the programmer's, but labels of a peer may become keys too, so they are escaped like any text. */
static void add_key(line *l, const char *key)
{
    add_piece(l, is_json(l) ? SL_STR(",\"") : SL_STR(" "));
    add_escaped(l, sl_str_from(key), true);
    add_piece(l, is_json(l) ? SL_STR("\":") : SL_STR("="));
}

static void add_field(line *l, const sl_log_field *field)
{
    const size_t mark = l->text.bytes;

    add_key(l, field->key);
    if (!l->full && add_value(l, field))
        return;
    rewind_to(l, mark);
    if (!is_json(l))
        add_tail(l, " ...");
}

/* All of this but the message is short, so only the message can be cut. */
static void add_head(line *l, const sl_logger *log, sl_log_level level, const char *message)
{
    if (is_json(l))
        add_piece(l, SL_STR("{\"time\":\""));
    sl_text_add_time(&l->text, sl_clock_wall_ns(log->clock));
    if (is_json(l)) {
        add_piece(l, SL_STR("\",\"level\":\""));
        add_piece(l, levels[level].name);
        add_piece(l, SL_STR("\",\"message\":"));
        add_quoted(l, sl_str_from(message));
    } else {
        add_piece(l, SL_STR(" "));
        add_piece(l, levels[level].shown);
        add_text(l, sl_str_from(message), false);
    }
}

static void add_end(line *l)
{
    if (is_json(l) && l->full)
        add_tail(l, ",\"cut\":true");
    if (is_json(l))
        add_tail(l, "}");
    add_tail(l, "\n");
}

void sl_log_write(const sl_logger *log, sl_log_level level, const char *message, const sl_log_field *fields)
{
    line l;

    assert((unsigned)level < SL_LOG_LEVEL_COUNT_);
    l.format = log->format;
    l.full = false;
    sl_text_init(&l.text, l.buffer, sizeof l.buffer);
    add_head(&l, log, level, message);
    for (; fields->kind != SL_LOG_KIND_END && !l.full; fields++)
        add_field(&l, fields);
    add_end(&l);
    log->sink(log->sink_ctx, l.text.data, l.text.bytes);
}
