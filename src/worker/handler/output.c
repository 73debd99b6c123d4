/* worker/handler/output.c — see output.h. */
#include "worker/handler/output.h"

#include "base/cleanup.h"
#include "base/utf8.h"
#include "worker/exec_handler.h"

#include <string.h>

#define SECOND_NS UINT64_C(1000000000)

void sl_output_gate_init(sl_output_gate *gate, sl_loop *loop, const sl_logger *log)
{
    *gate = (sl_output_gate){ .loop = loop, .log = log };
}

void sl_output_gate_flush(sl_output_gate *gate)
{
    if (gate->dropped > 0)
        sl_log(gate->log, SL_LOG_WARN, "handlers print more than is logged: lines were left out",
               SL_LOG_U64("lines", gate->dropped));
    gate->dropped = 0;
}

static bool gate_opens(sl_output_gate *gate)
{
    const uint64_t now_ns = sl_loop_now_ns(gate->loop);

    if (now_ns >= gate->second_ends_ns) {
        sl_output_gate_flush(gate);
        gate->second_ends_ns = now_ns + SECOND_NS;
        gate->line_count = 0;
    }
    if (gate->line_count >= SL_OUTPUT_LINES_PER_SECOND_MAX) {
        gate->dropped++;
        return false;
    }
    gate->line_count++;
    return true;
}

void sl_output_begin(sl_output *output, sl_output_gate *gate, int64_t process_id)
{
    output->gate = gate;
    output->process_id = process_id;
    output->message = (sl_uuid){ { 0 } };
    for (int i = 0; i < SL_PROCESS_OUTPUT_COUNT_; i++) {
        output->lines[i].bytes = 0;
        output->lines[i].is_cut = false;
    }
    sl_output_forget_tail(output);
}

void sl_output_forget_tail(sl_output *output)
{
    output->tail_bytes = 0;
    output->tail_is_cut = false;
}

/* --- lines --- */

static sl_log_level level_of(sl_process_output which)
{
    return which == SL_PROCESS_STDERR ? SL_LOG_INFO : SL_LOG_DEBUG;
}

/* What a process that stays says between two messages belongs to none. */
static void log_line(const sl_output *output, sl_process_output which, sl_str text)
{
    const char *const message = which == SL_PROCESS_STDERR ? "handler says" : "handler prints";
    const bool is_cut = output->lines[which].is_cut;

    if (sl_uuid_is_zero(output->message))
        sl_log(output->gate->log, level_of(which), message, SL_LOG_STR("line", text),
               SL_LOG_BOOL("line_cut", is_cut), SL_LOG_I64("pid", output->process_id));
    else
        sl_log(output->gate->log, level_of(which), message, SL_LOG_STR("line", text),
               SL_LOG_BOOL("line_cut", is_cut), SL_LOG_UUID("id", output->message),
               SL_LOG_I64("pid", output->process_id));
}

static void end_line(sl_output *output, sl_process_output which)
{
    sl_output_line *line = &output->lines[which];
    const sl_str text = sl_str_trim((sl_str){ line->text, line->bytes });

    line->bytes = 0;
    if (text.bytes > 0 && gate_opens(output->gate))
        log_line(output, which, text);
}

static void add_to_line(sl_output_line *line, const char *data, size_t bytes)
{
    const size_t room = sizeof line->text - line->bytes;
    const size_t taken = bytes < room ? bytes : room;

    memcpy(line->text + line->bytes, data, taken);
    line->bytes += taken;
    line->is_cut = line->is_cut || taken < bytes;
}

static void take_lines(sl_output *output, sl_process_output which, const char *data, size_t bytes)
{
    while (bytes > 0) {
        const char *end = memchr(data, '\n', bytes);
        const size_t part = end == NULL ? bytes : (size_t)(end - data);

        add_to_line(&output->lines[which], data, part);
        if (end == NULL)
            return;
        end_line(output, which);
        output->lines[which].is_cut = false;
        data += part + 1;
        bytes -= part + 1;
    }
}

static void take_tail(sl_output *output, const char *data, size_t bytes)
{
    const size_t size = sizeof output->tail;

    if (bytes >= size) {
        output->tail_is_cut = output->tail_is_cut || bytes > size || output->tail_bytes > 0;
        memcpy(output->tail, data + bytes - size, size);
        output->tail_bytes = size;
        return;
    }
    if (output->tail_bytes + bytes > size) {
        const size_t kept = size - bytes;
        memmove(output->tail, output->tail + output->tail_bytes - kept, kept);
        output->tail_bytes = kept;
        output->tail_is_cut = true;
    }
    memcpy(output->tail + output->tail_bytes, data, bytes);
    output->tail_bytes += bytes;
}

void sl_output_take(sl_output *output, sl_process_output which, const char *data, size_t bytes)
{
    if (which == SL_PROCESS_STDERR)
        take_tail(output, data, bytes);
    if (sl_log_wants(output->gate->log, level_of(which)))
        take_lines(output, which, data, bytes);
}

void sl_output_end(sl_output *output)
{
    for (int i = 0; i < SL_PROCESS_OUTPUT_COUNT_; i++) {
        if (output->lines[i].bytes > 0)
            end_line(output, (sl_process_output)i);
        output->lines[i].is_cut = false;
    }
}

/* --- reasons --- */

static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 ||
           code == 0x2029; /* other line ends */
}

void sl_output_add_printable(sl_text *text, sl_str foreign)
{
    while (foreign.bytes > 0 && !text->cut) {
        uint32_t code = 0;
        const size_t bytes = sl_utf8_first(foreign, &code);

        if (bytes == 0)
            sl_text_add_char(text, '?');
        else if (is_control(code))
            sl_text_add_char(text, ' ');
        else
            sl_text_add_str(text, (sl_str){ foreign.data, bytes });
        foreign.data += bytes == 0 ? 1 : bytes;
        foreign.bytes -= bytes == 0 ? 1 : bytes;
    }
}

/* Where the last lines begin that are no more than a reason may have; empty ones do not count. */
static size_t reason_start(sl_str text)
{
    size_t lines = 0, at = text.bytes;

    while (at > 0) {
        if (text.data[at - 1] == '\n' && (at == text.bytes || text.data[at] != '\n'))
            lines++;
        if (lines == SL_OUTPUT_REASON_LINES_MAX)
            return at;
        at--;
    }
    return 0;
}

/* A first line whose beginning is gone is left out, unless it is the only one; then at least no character is half. */
static sl_str without_half_line(const sl_output *output, sl_str text)
{
    const size_t line = sl_str_find(text, '\n');

    if (!output->tail_is_cut)
        return text;
    if (line < text.bytes)
        return (sl_str){ text.data + line + 1, text.bytes - line - 1 };
    while (text.bytes > 0 && ((uint8_t)text.data[0] & 0xc0) == 0x80)
        text = (sl_str){ text.data + 1, text.bytes - 1 };
    return text;
}

bool sl_output_add_reason(const sl_output *output, sl_text *reason)
{
    sl_str text = sl_str_trim((sl_str){ output->tail, output->tail_bytes });
    const size_t start = reason_start(text);
    sl_str line = { 0 };
    bool is_first = true;

    if (start == 0)
        text = without_half_line(output, text);
    else
        text = (sl_str){ text.data + start, text.bytes - start };
    while (text.bytes > 0) {
        const size_t end = sl_str_find(text, '\n');
        line = sl_str_trim((sl_str){ text.data, end });
        text.data += end == text.bytes ? end : end + 1;
        text.bytes -= end == text.bytes ? end : end + 1;
        if (line.bytes == 0)
            continue;
        sl_text_add(reason, is_first ? "" : " | ");
        sl_output_add_printable(reason, line);
        is_first = false;
    }
    return !is_first;
}

void sl_output_explain_end(const sl_output *output, const sl_process_end *end, sl_text *reason)
{
    sl_text without;

    if (!end->exited)
        sl_text_add(reason, "killed by signal ");
    else if (end->code == SL_EXEC_CODE_NOT_FOUND)
        sl_text_add(reason, "the shell did not find the handler's command: exit code ");
    else if (end->code == SL_EXEC_CODE_NOT_RUNNABLE)
        sl_text_add(reason, "the shell may not run the handler's command: exit code ");
    else
        sl_text_add(reason, "exit code ");
    sl_text_add_i64(reason, end->exited ? end->code : end->signal);
    without = *reason;
    sl_text_add(reason, ": ");
    if (sl_output_add_reason(output, reason))
        return;
    *reason = without;
    reason->data[reason->bytes] = '\0';
}
