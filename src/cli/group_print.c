/* cli/group_print.c — see cli/group_print.h. */
#include "cli/group_print.h"

#include <inttypes.h>

#include "cli/consumer_who.h"
#include "cli/print.h"
#include "cli/table.h"

enum {
    DURATION_BYTES = 48
};

/* --- for programs --- */

/* Numbers of the protocol are signed, and a server could say anything. */
static void field_signed(sl_fields *fields, const char *name, int64_t value)
{
    sl_field_name(fields, name);
    fprintf(fields->out, "%" PRId64, value);
}

static void print_measurements(sl_fields *fields, const sl_wire_group_connection *connection)
{
    sl_field_name(fields, "measurements_ms");
    fputc('{', fields->out);
    for (size_t i = 0; i < connection->measurement_count; i++) {
        fputs(i == 0 ? "" : ", ", fields->out);
        sl_print_json_str(fields->out, connection->measurements[i].key);
        fprintf(fields->out, ": %" PRId64, connection->measurements[i].value);
    }
    fputc('}', fields->out);
}

static void print_connection(FILE *out, const sl_wire_group_connection *connection)
{
    sl_fields fields = { .out = out, .json = true };

    fputc('{', out);
    sl_field_text(&fields, "name", connection->connection_name);
    sl_field_text(&fields, "user", connection->username);
    sl_field_text(&fields, "from", connection->from);
    field_signed(&fields, "in_flight", connection->in_flight_messages);
    field_signed(&fields, "available_slots", connection->available_slots);
    field_signed(&fields, "total", connection->total_items);
    field_signed(&fields, "per_second", connection->average_items_per_second);
    if (connection->measurement_count > 0)
        print_measurements(&fields, connection);
    fputc('}', out);
}

static void print_settings_json(sl_fields *outer, const sl_wire_group_info *info)
{
    sl_fields fields = { .out = outer->out, .json = true };

    sl_field_name(outer, "settings");
    fputc('{', outer->out);
    sl_field_text(&fields, "start", info->start_from);
    sl_field_text(&fields, "strategy", info->strategy);
    field_signed(&fields, "message_timeout_ms", info->message_timeout_ms);
    field_signed(&fields, "max_retry_count", info->max_retry_count);
    field_signed(&fields, "max_interrupts", info->max_interrupts);
    field_signed(&fields, "max_kills", info->max_kills);
    field_signed(&fields, "max_subscriber_count", info->max_subscriber_count);
    sl_field_bool(&fields, "resolve_links", info->resolve_links);
    field_signed(&fields, "history_buffer_size", info->buffer_size);
    field_signed(&fields, "live_buffer_size", info->live_buffer_size);
    field_signed(&fields, "read_batch_size", info->read_batch_size);
    field_signed(&fields, "checkpoint_after_ms", info->checkpoint_after_ms);
    field_signed(&fields, "min_checkpoint_count", info->min_checkpoint_count);
    field_signed(&fields, "max_checkpoint_count", info->max_checkpoint_count);
    sl_field_bool(&fields, "extra_statistics", info->extra_statistics);
    fputc('}', outer->out);
}

void sl_group_print_json(sl_fields *fields, const sl_wire_group_info *info)
{
    sl_field_text(fields, "stream", info->event_source);
    sl_field_text(fields, "group", info->group);
    sl_field_text(fields, "status", info->status);
    field_signed(fields, "in_flight", info->in_flight_count);
    field_signed(fields, "outstanding", info->outstanding_count);
    field_signed(fields, "buffered", info->read_buffer_count);
    field_signed(fields, "live_buffered", info->live_buffer_count);
    field_signed(fields, "waiting_for_retry", info->retry_buffer_count);
    field_signed(fields, "parked", info->parked_count);
    field_signed(fields, "total", info->total_items);
    field_signed(fields, "per_second", info->average_per_second);
    sl_field_text(fields, "checkpoint", info->last_checkpointed_position);
    sl_field_text(fields, "last_known", info->last_known_position);
    field_signed(fields, "stop_rules", info->stop_rules);
    sl_field_bool(fields, "everyone_stopped", info->everyone_stopped);
    print_settings_json(fields, info);
    sl_field_name(fields, "consumers");
    fputc('[', fields->out);
    for (size_t i = 0; i < info->connection_count; i++) {
        fputs(i == 0 ? "" : ", ", fields->out);
        print_connection(fields->out, &info->connections[i]);
    }
    fputc(']', fields->out);
}

/* --- for people --- */

static void print_place(FILE *out, const char *before, sl_str place)
{
    fputs(before, out);
    if (place.bytes == 0)
        fputs("none", out);
    else
        sl_print_safe(out, place, SIZE_MAX);
}

static void print_duration(FILE *out, const char *before, int32_t duration_ms)
{
    char buffer[DURATION_BYTES];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add_duration(&text, duration_ms < 0 ? 0 : (uint64_t)duration_ms * 1000000);
    fprintf(out, "%s%s", before, buffer);
}

static void print_settings(FILE *out, const sl_wire_group_info *info)
{
    const bool is_end =
        sl_str_equal(info->start_from, SL_STR("-1")) || sl_str_equal(info->start_from, SL_STR("C:-1/P:-1"));

    print_place(out, "settings: start ", is_end ? SL_STR("end") : info->start_from);
    print_place(out, ", strategy ", info->strategy);
    print_duration(out, ", message-timeout ", info->message_timeout_ms);
    fprintf(out,
            ", max-retry-count %" PRId32 ",\n  max-interrupts %" PRId32 ", max-kills %" PRId32
            ", max-subscriber-count %" PRId32 ",\n  ",
            info->max_retry_count, info->max_interrupts, info->max_kills, info->max_subscriber_count);
    fprintf(out,
            "history-buffer-size %" PRId32 ", live-buffer-size %" PRId32 ", read-batch-size %" PRId32 ",",
            info->buffer_size, info->live_buffer_size, info->read_batch_size);
    print_duration(out, "\n  checkpoint-after ", info->checkpoint_after_ms);
    fprintf(out, ", min-checkpoint-count %" PRId32 ", max-checkpoint-count %" PRId32 "%s%s\n",
            info->min_checkpoint_count, info->max_checkpoint_count,
            info->resolve_links ? ", resolve-links" : "", info->extra_statistics ? ", extra-statistics" : "");
}

static void print_consumers(FILE *out, const sl_wire_group_info *info)
{
    sl_table table;

    if (info->connection_count == 0) {
        fputs("consumers: none\n", out);
        return;
    }
    fprintf(out, "consumers: %zu\n", info->connection_count);
    sl_table_begin(&table, "NAME|USER|IN FLIGHT|FREE|TOTAL|PER SECOND");
    for (size_t i = 0; i < info->connection_count; i++) {
        const sl_wire_group_connection *const c = &info->connections[i];
        sl_table_text(&table, c->connection_name);
        sl_table_text(&table, c->username);
        sl_table_number(&table, c->in_flight_messages);
        sl_table_number(&table, c->available_slots);
        sl_table_number(&table, c->total_items);
        sl_table_number(&table, c->average_items_per_second);
    }
    sl_table_end(&table, out);
}

/* Why nothing is delivered, when that is so. */
static void print_rules(FILE *out, const sl_wire_group_info *info)
{
    const sl_wire_who who = { .stream = info->event_source, .group = info->group };

    if (info->everyone_stopped) {
        fputs("stopped: whoever joins is stopped by a rule of an operator, until:\n  ", out);
        sl_consumer_print_resume(out, &who);
        fputc('\n', out);
    } else if (info->stop_rules > 0) {
        fprintf(out,
                "rules: %" PRIu32 " name%s or label%s stopped on joining, until 'sluice consumer resume'\n",
                info->stop_rules, info->stop_rules == 1 ? "" : "s", info->stop_rules == 1 ? " is" : "s are");
    }
}

void sl_group_print_lines(FILE *out, const sl_wire_group_info *info)
{
    fputs("group ", out);
    sl_print_quoted(out, info->group);
    fputs(" on ", out);
    sl_print_quoted(out, info->event_source);
    fputs(": ", out);
    sl_print_safe(out, info->status, SIZE_MAX);
    fprintf(out,
            "\nmessages: %" PRId32 " in flight, %" PRId32 " read ahead, %" PRId32
            " waiting for a retry, %" PRId64 " parked\n",
            info->in_flight_count, info->read_buffer_count, info->retry_buffer_count, info->parked_count);
    fprintf(out, "delivered: %" PRId64 ", %" PRId32 " in the last second\n", info->total_items,
            info->average_per_second);
    print_place(out, "checkpoint: ", info->last_checkpointed_position);
    print_place(out, ", last event seen: ", info->last_known_position);
    fputc('\n', out);
    print_rules(out, info);
    print_settings(out, info);
    print_consumers(out, info);
}

void sl_group_print_figures(FILE *out, const sl_wire_group_info *info)
{
    sl_print_safe(out, info->status, SIZE_MAX);
    fprintf(out,
            "  consumers %zu  in flight %" PRId32 "  retry %" PRId32 "  parked %" PRId64
            "  delivered %" PRId64 "  %" PRId32 "/s",
            info->connection_count, info->in_flight_count, info->retry_buffer_count, info->parked_count,
            info->total_items, info->average_per_second);
    print_place(out, "  checkpoint ", info->last_checkpointed_position);
    print_place(out, " of ", info->last_known_position);
}
