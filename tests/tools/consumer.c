/* tests/tools/consumer.c — a consumer for tests and benchmarks: says what it gets as lines of JSON, and works as long as it is told.
 *
 *     consumer [options] ADDRESS STREAM GROUP
 *
 *     --name N --label K=V --window N --reconnect-ms N --give-up-ms N --retry-ms-max N --leave-ms N: as in sluice.h
 *     --slots N          messages worked on at the same time (1)
 *     --work-ms A[-B]    how long each takes: between A and B, drawn (0)
 *     --started          marks each message when its work begins
 *     --key KIND         what order is kept by, printed as "key": stream (default) or correlation ($correlationId of the metadata)
 *     --in-order         a message is not begun while an earlier one of its key is not done
 *     --count N          stops after N messages were acked
 *     --nack-every N     every Nth is nacked for retry instead
 *     --stop-on-term     SIGTERM: stop, finish, ack, drain, leave; without: SIGTERM kills as it does
 *     --hand-back        a stop hands back what was not begun
 *     --manual           nothing by itself: only commands from stdin
 *     --quiet            no lines for single messages, only counts with the others
 *
 * Commands on stdin: stop, hand-back, leave, close, and with an id (or "all"): ack, release, started, extend MS, nack ACTION REASON; for
 * example "nack 3f2c...-... park bad". End of stdin means nothing.
 *
 * Lines: {"t":MS,"what":"event",...}, with the monotonic time that all processes of a machine share, in milliseconds. what: connected,
 * disconnected, event, begin, done, settled, stop_requested, stopped, resumed, drained, ended. Each is one write, so kill -9
 * leaves no half lines; "done" is written before the ack is sent: what has no "done" was not acked. */
#include <sluice.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    ITEMS_MAX = 2 * SL_CONSUMER_WINDOW_MAX + SL_CONSUMER_UNANSWERED_MAX,
    KEY_BYTES = 256,
    LINE_BYTES = 4096,
    COMMAND_BYTES = 1024
};

typedef enum item_state {
    ITEM_WAITING,
    ITEM_RUNNING,
    ITEM_DONE /* acked; its outcome is awaited */
} item_state;

typedef struct item {
    sl_consumer_id id;
    item_state state;
    uint64_t revision, token, due_ns;
    char key[KEY_BYTES];
} item;

typedef struct tool {
    sl_consumer *consumer;
    item *items; /* in the order in which they came */
    size_t item_count, running_count;
    uint32_t slots, work_min_ms, work_max_ms, nack_every;
    uint64_t count_max, acked_count, event_count, settled_count, lost_count, unsure_count, released_count;
    uint64_t random;
    bool uses_started, key_is_correlation, keeps_order, stop_on_term, hand_back, is_manual, is_quiet;
    bool is_stopping, is_over, is_connected;
    char command[COMMAND_BYTES];
    size_t command_bytes;
    bool stdin_is_over;
    sl_consumer_status status;
} tool;

static volatile sig_atomic_t is_terminated;
static sl_consumer *to_wake;

static void on_term(int number)
{
    (void)number;
    is_terminated = 1;
    if (to_wake != NULL)
        sl_consumer_wake(to_wake);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* --- lines --- */

typedef struct line {
    char text[LINE_BYTES];
    size_t bytes;
} line;

__attribute__((format(printf, 2, 3))) static void add(line *l, const char *format, ...)
{
    va_list words;

    va_start(words, format);
    const int added = vsnprintf(l->text + l->bytes, sizeof l->text - l->bytes, format, words);
    va_end(words);
    if (added > 0)
        l->bytes += (size_t)added;
    if (l->bytes > sizeof l->text - 4)
        l->bytes = sizeof l->text - 4; /* room for the end of the line */
}

static void begin_line(line *l, const char *what)
{
    const uint64_t now = now_ns();

    l->bytes = 0;
    add(l, "{\"t\":%" PRIu64 ".%03u,\"what\":\"%s\"", now / 1000000, (unsigned)(now / 1000 % 1000), what);
}

static void end_line(line *l)
{
    size_t done = 0;

    memcpy(l->text + l->bytes, "}\n", 2);
    l->bytes += 2;
    while (done < l->bytes) {
        const ssize_t written = write(STDOUT_FILENO, l->text + done, l->bytes - done);
        if (written < 0 && errno != EINTR)
            _exit(1); /* nobody listens any more */
        done += written > 0 ? (size_t)written : 0;
    }
}

static void add_text(line *l, const char *name, const char *text, size_t bytes)
{
    add(l, ",\"%s\":\"", name);
    for (size_t i = 0; i < bytes && i < KEY_BYTES * 2; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c < ' ' || c == '"' || c == '\\')
            add(l, "\\u%04x", c);
        else
            add(l, "%c", c);
    }
    add(l, "\"");
}

static void add_id(line *l, sl_consumer_id id)
{
    add(l, ",\"id\":\"");
    for (size_t i = 0; i < sizeof id.bytes; i++)
        add(l, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id.bytes[i]);
    add(l, "\"");
}

static void add_counts(line *l, const tool *t)
{
    add(l,
        ",\"events\":%" PRIu64 ",\"acked\":%" PRIu64 ",\"settled\":%" PRIu64 ",\"released\":%" PRIu64
        ",\"lost\":%" PRIu64 ",\"unsure\":%" PRIu64 ",\"held\":%zu",
        t->event_count, t->acked_count, t->settled_count, t->released_count, t->lost_count, t->unsure_count,
        sl_consumer_held_count(t->consumer));
}

static void print_item(const tool *t, const char *what, const item *it)
{
    line l;

    if (t->is_quiet)
        return;
    begin_line(&l, what);
    add_id(&l, it->id);
    add(&l, ",\"revision\":%" PRIu64 ",\"token\":%" PRIu64, it->revision, it->token);
    add_text(&l, "key", it->key, strlen(it->key));
    end_line(&l);
}

/* --- items --- */

static item *find(tool *t, sl_consumer_id id, bool is_done)
{
    for (size_t i = t->item_count; i > 0; i--) {
        item *const it = &t->items[i - 1];
        if (memcmp(&it->id, &id, sizeof id) == 0 && (it->state == ITEM_DONE) == is_done)
            return it;
    }
    return NULL;
}

static void drop(tool *t, item *it)
{
    const size_t index = (size_t)(it - t->items);

    t->running_count -= it->state == ITEM_RUNNING;
    t->item_count--;
    memmove(it, it + 1, (t->item_count - index) * sizeof *it);
}

static void copy_key(item *it, const char *text, size_t bytes)
{
    const size_t kept = bytes < sizeof it->key ? bytes : sizeof it->key - 1;

    if (kept > 0)
        memcpy(it->key, text, kept);
    it->key[kept] = '\0';
}

/* Good enough for what tests write: the text after "$correlationId":" up to the next quote. */
static void copy_correlation(item *it, sl_consumer_bytes metadata)
{
    static const char name[] = "\"$correlationId\"";
    const char *const end = metadata.data + metadata.bytes;
    const char *at =
        metadata.bytes == 0 ? NULL : memmem(metadata.data, metadata.bytes, name, sizeof name - 1);
    const char *last;

    it->key[0] = '\0';
    at = at == NULL ? NULL : memchr(at + sizeof name - 1, '"', (size_t)(end - at) - (sizeof name - 1));
    last = at == NULL ? NULL : memchr(at + 1, '"', (size_t)(end - at - 1));
    if (last != NULL)
        copy_key(it, at + 1, (size_t)(last - at - 1));
}

/* --- work --- */

static uint64_t work_ns(tool *t)
{
    const uint32_t span = t->work_max_ms - t->work_min_ms + 1;

    t->random ^= t->random << 13;
    t->random ^= t->random >> 7;
    t->random ^= t->random << 17;
    return (t->work_min_ms + t->random % span) * UINT64_C(1000000);
}

static void stop(tool *t)
{
    if (t->is_stopping)
        return;
    t->is_stopping = true;
    sl_consumer_stop(t->consumer, t->hand_back);
}

static void finish(tool *t, item *it)
{
    t->acked_count++;
    print_item(t, "done", it);
    t->running_count -= it->state == ITEM_RUNNING;
    it->state = ITEM_DONE;
    if (t->nack_every > 0 && t->acked_count % t->nack_every == 0)
        sl_consumer_nack(t->consumer, &it->id, 1, SL_CONSUMER_NACK_RETRY, "every so often");
    else
        sl_consumer_ack(t->consumer, &it->id, 1);
    if (t->count_max > 0 && t->acked_count >= t->count_max)
        stop(t);
}

/* False: not to be begun now. */
static bool begin(tool *t, item *it)
{
    if ((t->uses_started || t->is_manual) && sl_consumer_started(t->consumer, &it->id, 1) == 0)
        return false;
    it->state = ITEM_RUNNING;
    it->due_ns = now_ns() + work_ns(t);
    t->running_count++;
    print_item(t, "begin", it);
    return true;
}

static bool key_is_busy(const tool *t, const item *it)
{
    for (const item *other = t->items; other < it; other++)
        if (other->state != ITEM_DONE && strcmp(other->key, it->key) == 0)
            return true;
    return false;
}

static bool may_begin(const tool *t, const item *it)
{
    return it->state == ITEM_WAITING && t->running_count < t->slots && t->is_connected &&
           !(t->keeps_order && key_is_busy(t, it));
}

/* Returns how long to wait for the next thing to do, in milliseconds; -1: nothing is on the way. */
static int work(tool *t)
{
    const uint64_t now = now_ns();
    uint64_t next_ns = UINT64_MAX;

    for (size_t i = 0; i < t->item_count && !t->is_manual; i++) {
        item *const it = &t->items[i];
        if (may_begin(t, it))
            (void)begin(t, it);
        if (it->state == ITEM_RUNNING && it->due_ns <= now)
            finish(t, it);
        if (it->state == ITEM_RUNNING && it->due_ns < next_ns)
            next_ns = it->due_ns;
    }
    if (next_ns == UINT64_MAX)
        return -1;
    return next_ns <= now ? 0 : (int)((next_ns - now + 999999) / 1000000);
}

/* --- callbacks --- */

static void on_event(void *ctx, const sl_consumer_event *event)
{
    tool *const t = ctx;
    item *const it = &t->items[t->item_count];
    line l;

    t->event_count++;
    if (t->item_count == ITEMS_MAX)
        abort(); /* the library has promised not to */
    t->item_count++;
    *it = (item){ .id = event->id, .token = event->lease_token };
    it->revision = event->has_event ? event->revision : event->link_revision;
    if (t->key_is_correlation)
        copy_correlation(it, event->metadata);
    else
        copy_key(it, event->stream.data, event->stream.bytes);
    if (t->is_quiet)
        return;
    begin_line(&l, "event");
    add_id(&l, event->id);
    add(&l, ",\"revision\":%" PRIu64 ",\"token\":%" PRIu64, it->revision, it->token);
    add_text(&l, "key", it->key, strlen(it->key));
    add_text(&l, "stream", event->stream.data, event->stream.bytes);
    add_text(&l, "type", event->type.data, event->type.bytes);
    add(&l, ",\"retry\":%u,\"lease_ms\":%u,\"bytes\":%zu", event->retry_count, event->lease_ms,
        event->data.bytes);
    end_line(&l);
}

static void on_settled(void *ctx, sl_consumer_id id, sl_consumer_outcome outcome)
{
    tool *const t = ctx;
    item *it = find(t, id, true);
    line l;

    it = it == NULL ? find(t, id, false) : it;
    t->settled_count += outcome == SL_CONSUMER_SETTLED || outcome == SL_CONSUMER_SENT;
    t->released_count += outcome == SL_CONSUMER_RELEASED;
    t->lost_count += outcome == SL_CONSUMER_LOST;
    t->unsure_count += outcome == SL_CONSUMER_UNSURE;
    if (!t->is_quiet || outcome == SL_CONSUMER_LOST) {
        begin_line(&l, "settled");
        add_id(&l, id);
        add(&l, ",\"outcome\":\"%s\"", sl_consumer_outcome_text(outcome));
        add(&l, ",\"was\":\"%s\"",
            it == NULL ? "unknown" : ((const char *[]){ "waiting", "running", "done" })[it->state]);
        end_line(&l);
    }
    if (it != NULL)
        drop(t, it);
}

static void on_stop_requested(void *ctx, sl_consumer_bytes reason, uint32_t deadline_ms)
{
    line l;

    (void)ctx;
    begin_line(&l, "stop_requested");
    add_text(&l, "reason", reason.data, reason.bytes);
    add(&l, ",\"deadline_ms\":%u", deadline_ms);
    end_line(&l);
}

static void on_stopped(void *ctx, const sl_consumer_stopped *stopped)
{
    static const char *const askers[] = { "consumer", "operator", "server" };
    line l;

    begin_line(&l, "stopped");
    add(&l, ",\"asked_by\":\"%s\",\"already\":%s,\"in_flight\":%u", askers[stopped->asked_by],
        stopped->already_stopped ? "true" : "false", stopped->in_flight);
    add_counts(&l, ctx);
    end_line(&l);
}

static void on_resumed(void *ctx)
{
    line l;

    (void)ctx;
    begin_line(&l, "resumed");
    end_line(&l);
}

static void on_drained(void *ctx, const sl_consumer_drained *drained)
{
    tool *const t = ctx;
    line l;

    begin_line(&l, "drained");
    add(&l, ",\"since_stop\":[%u,%u,%u]", drained->settled, drained->released, drained->lost);
    add_counts(&l, t);
    end_line(&l);
    if (t->is_stopping && !t->is_manual)
        sl_consumer_leave(t->consumer);
}

static void on_connected(void *ctx, const sl_consumer_connected *connected)
{
    line l;

    ((tool *)ctx)->is_connected = true;
    begin_line(&l, "connected");
    add(&l, ",\"nth\":%u,\"extensions\":%s,\"resumed\":%u", connected->nth,
        connected->extensions ? "true" : "false", connected->resumed);
    end_line(&l);
}

static void on_disconnected(void *ctx, const char *sentence, uint32_t retry_ms)
{
    line l;

    ((tool *)ctx)->is_connected = false;
    begin_line(&l, "disconnected");
    add_text(&l, "why", sentence, strlen(sentence));
    add(&l, ",\"retry_ms\":%u", retry_ms);
    add_counts(&l, ctx);
    end_line(&l);
}

static void on_ended(void *ctx, sl_consumer_status status, const char *sentence)
{
    tool *const t = ctx;
    line l;

    t->status = status;
    begin_line(&l, "ended");
    add(&l, ",\"status\":\"%s\"", sl_consumer_status_text(status));
    add_text(&l, "why", sentence, strlen(sentence));
    add_counts(&l, t);
    end_line(&l);
}

/* --- commands --- */

static bool parse_id(const char *text, sl_consumer_id *ret_id)
{
    size_t digits = 0;

    memset(ret_id, 0, sizeof *ret_id);
    for (; *text != '\0'; text++) {
        static const char all[] = "0123456789abcdef";
        const char *const at = strchr(all, *text);
        if (*text == '-')
            continue;
        if (at == NULL || digits == 32)
            return false;
        ret_id->bytes[digits / 2] |= (unsigned char)((at - all) << (digits % 2 == 0 ? 4 : 0));
        digits++;
    }
    return digits == 32;
}

static void act(tool *t, char **words, size_t word_count, item *it)
{
    const char *const verb = words[0];
    const char *const more = word_count > 2 ? words[2] : "";
    sl_consumer_nack_action action = SL_CONSUMER_NACK_RETRY;

    if (strcmp(verb, "ack") == 0)
        finish(t, it);
    else if (strcmp(verb, "release") == 0)
        sl_consumer_release(t->consumer, &it->id, 1);
    else if (strcmp(verb, "started") == 0)
        (void)begin(t, it);
    else if (strcmp(verb, "extend") == 0)
        sl_consumer_extend(t->consumer, &it->id, 1, (uint32_t)strtoul(more, NULL, 10));
    if (strcmp(verb, "nack") != 0)
        return;
    action = strcmp(more, "park") == 0   ? SL_CONSUMER_NACK_PARK
             : strcmp(more, "skip") == 0 ? SL_CONSUMER_NACK_SKIP
                                         : action;
    sl_consumer_nack(t->consumer, &it->id, 1, action, word_count > 3 ? words[3] : NULL);
    it->state = ITEM_DONE;
}

static void obey(tool *t, char *text)
{
    char *words[4], *rest = text;
    sl_consumer_id id;
    size_t count = 0;

    while (count < 4 && (words[count] = strtok_r(rest, count == 3 ? "\n" : " \n", &rest)) != NULL)
        count++;
    if (count == 0)
        return;
    t->hand_back = t->hand_back || strcmp(words[0], "hand-back") == 0;
    if (strcmp(words[0], "stop") == 0 || strcmp(words[0], "hand-back") == 0) {
        t->is_stopping = true;
        sl_consumer_stop(t->consumer, t->hand_back);
    } else if (strcmp(words[0], "leave") == 0) {
        sl_consumer_leave(t->consumer);
    } else if (strcmp(words[0], "close") == 0) {
        t->is_over = true;
    } else if (count > 1) {
        const bool is_all = strcmp(words[1], "all") == 0;
        const bool is_id = parse_id(words[1], &id);
        for (size_t i = 0; i < t->item_count; i++) {
            item *const it = &t->items[i];
            if (it->state != ITEM_DONE && (is_all || (is_id && memcmp(&it->id, &id, sizeof id) == 0)))
                act(t, words, count, it);
        }
    }
}

static void read_commands(tool *t)
{
    const ssize_t got =
        read(STDIN_FILENO, t->command + t->command_bytes, sizeof t->command - 1 - t->command_bytes);
    char *end;

    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        t->stdin_is_over = true;
    t->command_bytes += got > 0 ? (size_t)got : 0;
    t->command[t->command_bytes] = '\0';
    while ((end = strchr(t->command, '\n')) != NULL) {
        const size_t bytes = (size_t)(end - t->command) + 1;
        *end = '\0';
        obey(t, t->command);
        t->command_bytes -= bytes;
        memmove(t->command, t->command + bytes, t->command_bytes + 1);
    }
    if (t->command_bytes == sizeof t->command - 1)
        t->command_bytes = 0; /* no command is that long */
}

/* --- all of it --- */

static int sooner(int a_ms, int b_ms)
{
    if (a_ms < 0 || b_ms < 0)
        return a_ms < 0 ? b_ms : a_ms;
    return a_ms < b_ms ? a_ms : b_ms;
}

/* With stdin there are two things to wait for, so this is also the example of a loop of one's own. */
static void run(tool *t)
{
    int work_ms = 0;

    while (!t->is_over && sl_consumer_run(t->consumer, 0)) {
        struct pollfd fds[2] = { { .fd = sl_consumer_fd(t->consumer), .events = POLLIN },
                                 { .fd = t->stdin_is_over ? -1 : STDIN_FILENO, .events = POLLIN } };

        if (is_terminated && t->stop_on_term)
            stop(t);
        work_ms = work(t);
        (void)poll(fds, 2, sooner(work_ms, sl_consumer_wait_ms(t->consumer)));
        if (fds[1].revents != 0)
            read_commands(t);
    }
}

static bool take_flag(tool *t, const char *word)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = { { "--started", &t->uses_started },      { "--in-order", &t->keeps_order },
                  { "--stop-on-term", &t->stop_on_term }, { "--hand-back", &t->hand_back },
                  { "--manual", &t->is_manual },          { "--quiet", &t->is_quiet } };

    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (strcmp(word, flags[i].name) == 0)
            return *flags[i].flag = true;
    return false;
}

static bool take_number(tool *t, sl_consumer_options *options, const char *word, const char *value)
{
    const uint32_t number = (uint32_t)strtoul(value, NULL, 10);
    const struct {
        const char *name;
        uint32_t *number;
    } numbers[] = { { "--window", &options->window },         { "--reconnect-ms", &options->reconnect_ms },
                    { "--give-up-ms", &options->give_up_ms }, { "--retry-ms-max", &options->retry_ms_max },
                    { "--leave-ms", &options->leave_ms },     { "--slots", &t->slots },
                    { "--nack-every", &t->nack_every } };

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(word, numbers[i].name) == 0) {
            *numbers[i].number = number;
            return true;
        }
    }
    return false;
}

static bool take_text(tool *t, sl_consumer_options *options, sl_consumer_label *labels, const char *word,
                      char *value)
{
    char *const sign = strchr(value, '='), *const dash = strchr(value, '-');

    if (strcmp(word, "--name") == 0) {
        options->name = value;
    } else if (strcmp(word, "--count") == 0) {
        t->count_max = strtoull(value, NULL, 10);
    } else if (strcmp(word, "--key") == 0) {
        t->key_is_correlation = strcmp(value, "correlation") == 0;
    } else if (strcmp(word, "--work-ms") == 0) {
        t->work_min_ms = (uint32_t)strtoul(value, NULL, 10);
        t->work_max_ms = dash == NULL ? t->work_min_ms : (uint32_t)strtoul(dash + 1, NULL, 10);
    } else if (strcmp(word, "--label") == 0 && sign != NULL &&
               options->label_count < SL_CONSUMER_LABELS_MAX) {
        *sign = '\0';
        labels[options->label_count++] = (sl_consumer_label){ value, sign + 1 };
    } else {
        return false;
    }
    return t->work_max_ms >= t->work_min_ms;
}

static bool take_words(tool *t, sl_consumer_options *options, sl_consumer_label *labels, int argc,
                       char **argv)
{
    const char **const places[] = { &options->address, &options->stream, &options->group };
    size_t place = 0;

    options->labels = labels;
    for (int i = 1; i < argc; i++) {
        const bool has_value = i + 1 < argc;
        if (strncmp(argv[i], "--", 2) != 0 && place < 3)
            *places[place++] = argv[i];
        else if (take_flag(t, argv[i]))
            continue;
        else if (has_value && (take_number(t, options, argv[i], argv[i + 1]) ||
                               take_text(t, options, labels, argv[i], argv[i + 1])))
            i++;
        else
            return false;
    }
    return place == 3;
}

int main(int argc, char **argv)
{
    static const sl_consumer_handler handler = { .event = on_event,
                                                 .settled = on_settled,
                                                 .stop_requested = on_stop_requested,
                                                 .stopped = on_stopped,
                                                 .resumed = on_resumed,
                                                 .drained = on_drained,
                                                 .connected = on_connected,
                                                 .disconnected = on_disconnected,
                                                 .ended = on_ended };
    tool t = { .slots = 1, .random = now_ns() | 1 };
    sl_consumer_options options = { .handler = &handler, .ctx = &t };
    sl_consumer_label labels[SL_CONSUMER_LABELS_MAX];
    char problem[SL_CONSUMER_PROBLEM_BYTES];

    if (!take_words(&t, &options, labels, argc, argv)) {
        fprintf(stderr, "usage: %s [options] ADDRESS STREAM GROUP (see the head of tests/tools/consumer.c)\n",
                argv[0]);
        return 2;
    }
    options.says_started = t.uses_started && !t.is_manual;
    t.items = calloc(ITEMS_MAX + 1, sizeof *t.items);
    if (t.items == NULL ||
        sl_consumer_open(&options, problem, sizeof problem, &t.consumer) != SL_CONSUMER_OK) {
        fprintf(stderr, "%s: %s\n", argv[0], t.items == NULL ? "out of memory" : problem);
        free(t.items);
        return 2;
    }
    to_wake = t.consumer;
    if (t.stop_on_term)
        signal(SIGTERM, on_term);
    signal(SIGPIPE, SIG_IGN);
    (void)fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
    run(&t);
    signal(SIGTERM, SIG_DFL);
    to_wake = NULL;
    sl_consumer_close(t.consumer);
    free(t.items);
    return t.status == SL_CONSUMER_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
