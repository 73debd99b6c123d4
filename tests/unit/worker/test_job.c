#include "test.h"

#include "base/cleanup.h"
#include "worker/job.h"

#include <string.h>

/* Also in builds where shelves keep nothing by default. */
static sl_job_shelf shelf_of(size_t bytes_max)
{
    sl_job_shelf shelf;

    sl_job_shelf_init(&shelf);
    shelf.bytes_max = bytes_max;
    return shelf;
}

static sl_job *make(sl_job_shelf *shelf, const char *data)
{
    return sl_job_new_from(shelf, &(sl_job_message){ .stream = SL_STR("orders"), .data = sl_str_from(data) });
}

TEST(a_job_with_memory_of_an_earlier_one_is_as_new)
{
    sl_job_shelf shelf = shelf_of(SL_JOB_SHELF_BYTES_MAX);
    sl_job *const first = make(&shelf, "a longer text"), *second;
    const void *const memory = first;

    memset(&first->by_id, 0xff, offsetof(sl_job, reason) - offsetof(sl_job, by_id));
    sl_job_free(first);
    EXPECT(shelf.bytes > 0);
    second = make(&shelf, "short");
    EXPECT(second == memory && shelf.bytes == 0);
    EXPECT(sl_str_equal(second->message.stream, SL_STR("orders")));
    EXPECT(sl_str_equal(second->message.data, SL_STR("short")) && second->message.data.data[5] == '\0');
    EXPECT(second->lease_until_ns == 0 && second->source_data == NULL && second->started_ns == 0);
    EXPECT(!second->is_lost && !second->is_aborted && second->ack_place == 0);
    EXPECT(second->handler_data == NULL && second->reason_bytes == 0);
    sl_job_free(second);
    sl_job_shelf_done(&shelf);
}

TEST(a_shelf_keeps_no_more_than_its_limit)
{
    static char large[SL_JOB_SHELF_STEP_BYTES * SL_JOB_SHELF_STEPS_MAX + 1];
    sl_job_shelf shelf = shelf_of(0);
    sl_job *jobs[3], *big;

    memset(large, 'x', sizeof large - 1);
    big = make(&shelf, large);
    for (size_t i = 0; i < SL_COUNT_OF(jobs); i++)
        jobs[i] = make(&shelf, "");
    shelf.bytes_max = 2 * jobs[0]->memory_bytes;
    for (size_t i = 0; i < SL_COUNT_OF(jobs); i++)
        sl_job_free(jobs[i]);
    EXPECT(shelf.bytes == shelf.bytes_max);
    shelf.bytes_max = SL_JOB_SHELF_BYTES_MAX;
    const size_t before = shelf.bytes;
    sl_job_free(big);
    EXPECT(shelf.bytes == before);
    sl_job_shelf_done(&shelf);
    EXPECT(shelf.bytes == 0);
}
