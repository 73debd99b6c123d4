/* tests/unit/server/test_checkpoints.c — what a filtered subscription to all says about where it is
 * (shared kurrent-semantics 23.1). In these tests events of the stream "m" match and those of "x" do not. */
#include "read_rig.h"

#include <stdio.h>
#include <string.h>

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* One letter for each event, in order. */
static void write_word(server_rig *rig, const char *word)
{
    for (const char *at = word; *at != 0; at++)
        reads_append(rig, *at == 'm' ? "m" : "x", 1);
}

TEST(checkpoints_come_at_the_ends_of_pages_and_at_the_end_of_the_past)
{
    static const struct {
        const char *past;
        uint32_t window, multiplier; /* window 0: "count", which means 32 */
        const char *said;
    } rows[] = {
        { "", 4, 1, "confirmed caught-up" },
        { "x", 4, 1, "confirmed checkpoint@1 caught-up@1" },
        { "xxx", 4, 1, "confirmed checkpoint@3 caught-up@3" },
        { "xxxx", 4, 1,
          "confirmed checkpoint@4 caught-up@4" }, /* the one at the end is the same: sent once */
        { "xxxxx", 4, 1, "confirmed checkpoint@4 checkpoint@5 caught-up@5" },
        { "xxxxxxxxxx", 4, 1, "confirmed checkpoint@4 checkpoint@8 checkpoint@10 caught-up@10" },
        { "xxxxxxxxxx", 4, 2, "confirmed checkpoint@8 checkpoint@10 caught-up@10" },
        { "xxxxxxxxxx", 4, 3, "confirmed checkpoint@10 caught-up@10" },
        { "xxxxxxxxxx", 3, 1, "confirmed checkpoint@3 checkpoint@6 checkpoint@9 checkpoint@10 caught-up@10" },
        { "xxx", 1, 1, "confirmed checkpoint@1 checkpoint@2 checkpoint@3 caught-up@3" },
        { "xxx", 4294967295, 4294967295, "confirmed checkpoint@3 caught-up@3" },
        { "mxxmxxmx", 4, 1, "confirmed m:0 m:1 checkpoint@4 m:2 checkpoint@8 caught-up@8" },
        { "mm", 2, 1, "confirmed m:0 m:1 checkpoint@2 caught-up@2" },
        { "mm", 2, 2, "confirmed m:0 m:1 checkpoint@2 caught-up@2" },
    };
    server_rig rig;

    for (size_t i = 0; i < ROWS(rows); i++) {
        const char *said;

        reads_start(&rig, NULL);
        write_word(&rig, rows[i].past);
        said = reads_said(reads_begin(&rig, reads_filtered("m", rows[i].window, rows[i].multiplier)));
        if (strcmp(said, rows[i].said) != 0)
            fail_msg("row %zu: \"%s\", wanted \"%s\"", i, said, rows[i].said);
        server_rig_done(&rig);
    }
}

/* All the checkpoints of a call, without the events. */
static const char *checkpoints_of(const server_call *call)
{
    static char buffer[4096];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    for (size_t i = 0; i < call->message_count; i++) {
        const sl_read_response response = reads_message(call, i);

        if (response.kind != SL_READ_RESPONSE_CHECKPOINT)
            continue;
        sl_text_add(&text, text.bytes > 0 ? " " : "");
        sl_text_add_u64(&text, response.checkpoint.position.commit);
    }
    return buffer;
}

/* A page of KurrentDB also ends when 32 events match; what was considered is counted only there. */
TEST(a_page_ends_with_its_32nd_match)
{
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "m", 250);
    EXPECT_STR(checkpoints_of(reads_begin(&rig, reads_filtered("m", 100, 1))), "128 224 250");
    EXPECT_STR(checkpoints_of(reads_begin(&rig, reads_filtered("m", 0, 1))), "32 64 96 128 160 192 224 250");
    EXPECT_STR(checkpoints_of(reads_begin(&rig, reads_filtered("m", 32, 4))), "128 250");
    EXPECT_STR(checkpoints_of(reads_begin(&rig, reads_filtered("nothing", 100, 1))), "100 200 250");
    EXPECT_STR(checkpoints_of(reads_begin(&rig, reads_filtered("nothing", 0, 1))),
               "32 64 96 128 160 192 224 250");
    server_rig_done(&rig);
}

TEST(a_live_subscription_says_where_it_is_with_every_so_manieth_event)
{
    server_call *call;
    server_rig rig;

    reads_start(&rig, NULL);
    write_word(&rig, "xxx");
    call = reads_begin(&rig, reads_filtered("m", 4, 1));
    EXPECT_SAID(call, "confirmed checkpoint@3 caught-up@3");
    write_word(&rig, "xxx");
    EXPECT_SAID(call, "confirmed checkpoint@3 caught-up@3");
    write_word(&rig, "x");
    EXPECT_SAID(call, "confirmed checkpoint@3 caught-up@3 checkpoint@7");
    write_word(&rig, "mxxmx");
    EXPECT_SAID(call, "confirmed checkpoint@3 caught-up@3 checkpoint@7 m:0 m:1 checkpoint@11");
    reads_append(&rig, "x", 9); /* one batch */
    EXPECT_STR(checkpoints_of(call), "3 7 11 15 19");
    server_rig_done(&rig);
}

TEST(a_filtered_subscription_from_a_position_says_nothing_that_its_client_knows)
{
    server_call *call;
    server_rig rig;

    reads_start(&rig, NULL);
    write_word(&rig, "xmxx");
    EXPECT_SAID(reads_begin(&rig, reads_from(reads_filtered("m", 4, 1), 4)), "confirmed caught-up@4");
    EXPECT_SAID(reads_begin(&rig, reads_from(reads_filtered("m", 4, 1), 2)),
                "confirmed checkpoint@4 caught-up@4");
    call = reads_begin(&rig, reads_from_end(reads_filtered("m", 4, 1)));
    EXPECT_SAID(call, "confirmed caught-up@4");
    write_word(&rig, "xmxx");
    EXPECT_SAID(call, "confirmed caught-up@4 m:1 checkpoint@8");
    server_rig_done(&rig);
}

TEST(hidden_events_are_considered_too)
{
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "$epoch-information", 4);
    EXPECT_SAID(reads_begin(&rig, reads_filtered("", 2, 1)),
                "confirmed checkpoint@2 checkpoint@4 caught-up@4");
    server_rig_done(&rig);
}

TEST(without_a_filter_there_are_no_checkpoints)
{
    const server_call *call;
    server_rig rig;

    reads_start(&rig, NULL);
    reads_append(&rig, "x", 500);
    call = reads_begin(&rig, reads_subscription_to_all());
    reads_append(&rig, "x", 500);
    EXPECT_STR(checkpoints_of(call), "");
    server_rig_done(&rig);
}

/* Before an event that finds no room: everything up to the last one that was sent. */
TEST(a_filtered_subscription_that_falls_behind_says_where)
{
    server_call *call;
    uint64_t position = 0;
    unsigned checkpoints = 0, caught_up = 0;
    server_rig rig;

    reads_start(&rig, NULL);
    write_word(&rig, "xx"); /* so that positions are no revisions */
    call = reads_begin(&rig, reads_filtered("m", 32, 100000));
    EXPECT_SAID(call, "confirmed checkpoint@2 caught-up@2");
    call->slow = true;
    for (unsigned i = 0; i < 5; i++)
        reads_append_burst(&rig, "m", 500, 1000);
    EXPECT(rig.host->counters.fell_behind > 0);
    server_call_read_on(call);
    server_rig_run(&rig);
    for (size_t i = 3; i < call->message_count; i++) {
        const sl_read_response response = reads_message(call, i);

        if (response.kind == SL_READ_RESPONSE_EVENT)
            position = response.event.commit_position;
        else if (response.kind == SL_READ_RESPONSE_CHECKPOINT)
            EXPECT_EQ(response.checkpoint.position.commit, position);
        checkpoints += response.kind == SL_READ_RESPONSE_CHECKPOINT;
        caught_up += response.kind == SL_READ_RESPONSE_CAUGHT_UP;
    }
    EXPECT_EQ(position, 2502);
    EXPECT_EQ(caught_up, rig.host->counters.fell_behind);
    EXPECT_EQ(checkpoints, 2 * caught_up); /* when it fell behind, and when it was at the end again */
    server_rig_done(&rig);
}

/* Who goes on after any of the checkpoints gets exactly what came after it. */
static void expect_resumable(server_rig *rig, const server_call *call)
{
    uint64_t matched = 0;

    for (size_t i = 0; i < call->message_count; i++) {
        const sl_read_response response = reads_message(call, i);
        const server_call *again;

        matched += response.kind == SL_READ_RESPONSE_EVENT;
        if (response.kind != SL_READ_RESPONSE_CHECKPOINT)
            continue;
        again = reads_begin(rig, reads_from(reads_filtered("m", 7, 1), response.checkpoint.position.commit));
        for (size_t k = 0; k < again->message_count; k++) {
            const sl_read_response next = reads_message(again, k);

            if (next.kind == SL_READ_RESPONSE_EVENT) {
                EXPECT_EQ(next.event.event.revision, matched);
                break;
            }
        }
    }
}

TEST(a_checkpoint_is_a_place_to_go_on_from)
{
    uint64_t state = 3;
    server_call *call;
    server_rig rig;

    reads_start(&rig, NULL);
    for (unsigned i = 0; i < 300; i++) {
        state = state * UINT64_C(6364136223846793005) + 1;
        reads_append(&rig, (state >> 40) % 5 == 0 ? "m" : "x", 1);
    }
    call = reads_begin(&rig, reads_filtered("m", 7, 1));
    for (unsigned i = 0; i < 100; i++)
        reads_append(&rig, i % 9 == 0 ? "m" : "x", 1 + i % 3);
    expect_resumable(&rig, call);
    server_rig_done(&rig);
}

/* Groups write records that are no events; a reader looks at those as well. */
TEST(records_that_are_no_events_move_the_last_checkpoint)
{
    const sl_op op = { .kind = SL_OP_GROUP_CREATE,
                       .group_create = { .group = 1, .definition = SL_STR_INIT("{}") } };
    server_call *call, *live;
    server_rig rig;

    reads_start(&rig, NULL);
    write_word(&rig, "xx");
    live = reads_begin(&rig, reads_filtered("m", 100, 1));
    reads_commit(&rig, &op);
    EXPECT_EQ(sl_store_end(rig.store), 4);
    call = reads_begin(&rig, reads_filtered("m", 100, 1));
    EXPECT_SAID(call, "confirmed checkpoint@3 caught-up@3");
    write_word(&rig, "m");
    EXPECT_SAID(call, "confirmed checkpoint@3 caught-up@3 m:0");
    EXPECT_SAID(live, "confirmed checkpoint@2 caught-up@2 m:0");
    server_rig_done(&rig);
}
