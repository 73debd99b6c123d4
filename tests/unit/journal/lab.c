/* tests/unit/journal/lab.c — see lab.h. */
#include "lab.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum {
    SEGMENT = 64 * 1024
};

const sl_store_setup lab_setup = { .alloc = &sl_alloc_default, .seed = { 3, 4 } };

void lab_open_again(lab *w)
{
    w->store = NULL;
    sl_text_init(&w->report, w->words, sizeof w->words);
    w->err = sl_store_open_faulty(&lab_setup, &w->options, w->disk, &w->report, &w->store);
}

lab lab_open(uint64_t segment_bytes)
{
    lab w = { .disk = sl_faulty_new(),
              .options = { .segment_bytes = segment_bytes == 0 ? SEGMENT : segment_bytes },
              .next_id = 1 };

    lab_open_again(&w);
    EXPECT_OK(w.err);
    return w;
}

void lab_close(lab *w)
{
    sl_store_close(w->store);
    sl_faulty_free(w->disk);
}

void lab_reopen(lab *w)
{
    sl_store_close(w->store);
    lab_open_again(w);
    EXPECT_OK(w->err);
}

void lab_wait_once(lab *w)
{
    struct pollfd waiting = { .fd = sl_store_wait_fd(w->store), .events = POLLIN };

    EXPECT_EQ(poll(&waiting, 1, 10 * 1000), 1);
    sl_store_poll(w->store);
}

void lab_note_answer(void *ctx, const sl_commit *commit)
{
    answer *const a = ctx;

    a->is_there = true;
    a->err = commit->err;
}

sl_err lab_commit(lab *w, const sl_op *op)
{
    const sl_batch batch = { .ops = op, .op_count = 1, .durability = SL_DURABLE_SYNC };
    answer a = { 0 };
    const sl_err err = sl_store_submit(w->store, &batch, lab_note_answer, &a);

    if (err != SL_OK)
        return err;
    sl_store_turn(w->store);
    while (!a.is_there)
        lab_wait_once(w);
    return a.err;
}

sl_err lab_append(lab *w, const char *stream, size_t data_bytes)
{
    static char data[8 * 1024 * 1024];
    const sl_event_in event = { .id = sl_uuid_from_halves(5, (int64_t)w->next_id++),
                                .type = SL_STR("t"),
                                .data = { data, data_bytes } };
    const sl_op op = { .kind = SL_OP_APPEND,
                       .append = { sl_str_from(stream), { SL_EXPECT_ANY, 0 }, &event, 1 } };

    EXPECT(data_bytes <= sizeof data);
    return lab_commit(w, &op);
}

void lab_append_many(lab *w, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%u", i % 10);
        EXPECT_OK(lab_append(w, name, 500));
    }
}

/* Reads to the end; AGAIN is waited for and counted. */
uint32_t lab_count(lab *w, const sl_read *how, sl_err *ret_ended, uint32_t *ret_again)
{
    sl_cursor *cursor = NULL;
    sl_event events[16];
    uint32_t sum = 0, some = 0;

    *ret_again = 0;
    EXPECT_OK(sl_store_read(w->store, how, &cursor));
    while ((*ret_ended = sl_cursor_next(cursor, events, 16, &some)) == SL_OK || *ret_ended == SL_ERR_AGAIN) {
        if (*ret_ended == SL_ERR_AGAIN) {
            (*ret_again)++;
            lab_wait_once(w);
        } else {
            sum += some;
        }
    }
    sl_cursor_close(cursor);
    return sum;
}

uint32_t lab_count_all(lab *w)
{
    const sl_read everything = { .from = 0 };
    uint32_t again;
    sl_err ended;
    const uint32_t sum = lab_count(w, &everything, &ended, &again);

    EXPECT_ERR(ended, SL_ERR_EMPTY);
    return sum;
}

void lab_note_scavenged(void *ctx, const sl_scavenged *result)
{
    *(scavenged *)ctx = (scavenged){ true, *result };
}

/* A turn of a loop that may have nothing to do. */
void lab_turn_once(lab *w)
{
    struct pollfd waiting = { .fd = sl_store_wait_fd(w->store), .events = POLLIN };

    sl_store_turn(w->store);
    (void)poll(&waiting, 1, 1);
    sl_store_poll(w->store);
}

static void note_file(void *ctx, const char *name)
{
    files *const f = ctx;
    const char *const dot = strrchr(name, '.');

    if (dot == NULL)
        return;
    if (strcmp(dot, ".idx") == 0 && (f->indexes++ == 0 || strcmp(name, f->index) < 0))
        snprintf(f->index, sizeof f->index, "%s", name);
    if (strcmp(dot, ".seg") == 0 && (f->segments++ == 0 || strcmp(name, f->segment) < 0))
        snprintf(f->segment, sizeof f->segment, "%s", name);
    f->rolls += strcmp(dot, ".roll") == 0;
}

files lab_files_of(lab *w)
{
    files f = { 0 };

    sl_faulty_each(w->disk, note_file, &f);
    return f;
}
