/* Rules of cli/line_input.h. */
#include "base/support.h"

#include "cli/line_input.h"

#include <fcntl.h>
#include <stdlib.h>

enum {
    LINE_MAX_BYTES = 10
};

typedef struct lines {
    sl_loop *loop;
    sl_line_input input;
    uint32_t mores;
} lines;

static void on_more(void *ctx)
{
    ((lines *)ctx)->mores++;
}

static void open_path(lines *l, const char *path)
{
    *l = (lines){ 0 };
    EXPECT_OK(sl_loop_new(NULL, NULL, NULL, &l->loop));
    EXPECT_OK(sl_line_input_open(&l->input, l->loop, path, LINE_MAX_BYTES));
    l->input.on_more = on_more;
    l->input.ctx = l;
}

static void done(lines *l)
{
    sl_line_input_close(&l->input);
    sl_loop_free(l->loop);
}

/* A file with this content, opened; the name is gone already. */
static void open_file(lines *l, const char *content)
{
    char path[] = "/tmp/sluice-lines-XXXXXX";
    const int fd = mkstemp(path);

    EXPECT(fd >= 0 && write(fd, content, strlen(content)) == (ssize_t)strlen(content));
    close(fd);
    open_path(l, path);
    unlink(path);
    EXPECT(!l->input.is_waitable);
}

/* All lines with a | between them, and what the last question was answered with. */
static sl_err take_all(lines *l, char *into, size_t capacity)
{
    sl_text text;
    sl_str line;
    sl_err err;

    sl_text_init(&text, into, capacity);
    for (;;) {
        err = sl_line_input_next(&l->input, &line);
        if (err == SL_ERR_AGAIN) {
            sl_line_input_drop(&l->input);
            EXPECT_OK(sl_line_input_read(&l->input));
            continue;
        }
        if (err != SL_OK)
            return err;
        sl_text_add_str(&text, line);
        sl_text_add(&text, "|");
    }
}

TEST(lines_of_a_file_come_without_their_ends)
{
    static const struct {
        const char *content, *lines;
        uint64_t count;
    } rows[] = {
        { "", "", 0 },
        { "\n", "|", 1 },
        { "a", "a|", 1 },
        { "a\n", "a|", 1 },
        { "a\nb", "a|b|", 2 },
        { "\n\na\r\n", "||a\r|", 3 },
        { "0123456789\n", "0123456789|", 1 },
    };
    char text[64];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        lines l;
        open_file(&l, rows[i].content);
        EXPECT_ROW(take_all(&l, text, sizeof text) == SL_ERR_EMPTY, i);
        EXPECT_STR(text, rows[i].lines);
        EXPECT_ROW(l.input.line_number == rows[i].count, i);
        done(&l);
    }
}

TEST(a_line_above_the_limit_is_refused_whether_it_ends_or_not)
{
    static const char *const contents[] = { "a\n01234567890\nb\n", "a\n01234567890" };
    char text[64];

    for (size_t i = 0; i < 2; i++) {
        lines l;
        open_file(&l, contents[i]);
        EXPECT_ERR(take_all(&l, text, sizeof text), SL_ERR_TOO_LARGE);
        EXPECT_STR(text, "a|");
        done(&l);
    }
}

TEST(a_pipe_is_waited_for_only_while_it_is_wanted)
{
    int ends[2];
    char path[32];
    lines l;
    sl_str line;

    EXPECT_EQ(pipe(ends), 0);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    open_path(&l, path);
    EXPECT(l.input.is_waitable);
    EXPECT_EQ(write(ends[1], "ab", 2), 2);
    sl_loop_turn(l.loop, false);
    EXPECT_EQ(l.mores, 0); /* nobody wants it */
    EXPECT_OK(sl_line_input_want(&l.input, true));
    sl_loop_turn(l.loop, true);
    EXPECT_EQ(l.mores, 1);
    EXPECT_OK(sl_line_input_read(&l.input));
    EXPECT_ERR(sl_line_input_next(&l.input, &line), SL_ERR_AGAIN); /* half a line */
    EXPECT_EQ(write(ends[1], "c\nd", 3), 3);
    sl_loop_turn(l.loop, true);
    EXPECT_OK(sl_line_input_read(&l.input));
    EXPECT_OK(sl_line_input_next(&l.input, &line));
    EXPECT(sl_str_equal(line, SL_STR("abc")));
    sl_line_input_drop(&l.input);
    EXPECT_OK(sl_line_input_want(&l.input, false));
    close(ends[1]);
    sl_loop_turn(l.loop, false);
    EXPECT_EQ(l.mores, 2);
    EXPECT_OK(sl_line_input_read(&l.input));
    EXPECT_OK(sl_line_input_next(&l.input, &line)); /* the rest, which has no end */
    EXPECT(sl_str_equal(line, SL_STR("d")));
    EXPECT_ERR(sl_line_input_next(&l.input, &line), SL_ERR_EMPTY);
    done(&l);
    close(ends[0]);
}

TEST(a_file_that_is_not_there_and_one_that_cannot_be_read_are_errors)
{
    lines l = { 0 };
    sl_str line;

    EXPECT_OK(sl_loop_new(NULL, NULL, NULL, &l.loop));
    EXPECT_ERR(sl_line_input_open(&l.input, l.loop, "/does/not/exist", 10), SL_ERR_IO);
    EXPECT_OK(sl_line_input_open(&l.input, l.loop, "/", 10)); /* a folder opens, but does not read */
    EXPECT_OK(sl_line_input_read(&l.input));
    EXPECT(l.input.is_ended && l.input.read_errno != 0);
    EXPECT_ERR(sl_line_input_next(&l.input, &line), SL_ERR_EMPTY);
    done(&l);
}
