/* Rules of cli/log_sink.h: a line waits for nobody, and what was left out is told. */
#include "base/support.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/log_sink.h"

enum {
    LINES_MAX = 100000, /* more than any of them takes */
    PAGE_BYTES = 4096,
    WAIT_MS = 30000 /* for what comes at once */
};

typedef struct place {
    int read_fd, write_fd;
    FILE *err;
    sl_log_sink sink;
    char *text; /* all that was read */
    size_t bytes, line_count;
} place;

static void make_pipe(int *ends)
{
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    EXPECT(fcntl(ends[1], F_SETPIPE_SZ, 4 * PAGE_BYTES) > 0);
}

static void make_socket(int *ends)
{
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
}

static void make_terminal(int *ends)
{
    struct termios how;

    ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    EXPECT(ends[0] >= 0 && grantpt(ends[0]) == 0 && unlockpt(ends[0]) == 0);
    ends[1] = open(ptsname(ends[0]), O_RDWR | O_NOCTTY | O_CLOEXEC);
    EXPECT(ends[1] >= 0 && tcgetattr(ends[1], &how) == 0);
    how.c_oflag &= ~(tcflag_t)OPOST; /* a newline stays one byte */
    EXPECT_EQ(tcsetattr(ends[1], TCSANOW, &how), 0);
}

static void begin(place *p, void (*make)(int *), sl_log_format format)
{
    int ends[2];

    make(ends);
    *p = (place){ .read_fd = ends[0], .write_fd = ends[1], .err = fdopen(ends[1], "w") };
    EXPECT(p->err != NULL);
    sl_log_sink_begin(&p->sink, p->err, format);
}

static void write_numbered(place *p)
{
    char line[100];
    const int bytes = snprintf(line, sizeof line, "line %zu of a log that is longer than its reader likes\n",
                               ++p->line_count);

    sl_log_sink_write(&p->sink, line, (size_t)bytes);
}

/* Until it takes no more, and some lines beyond that. */
static void fill(place *p)
{
    while (p->sink.left_out < 5 && p->line_count < LINES_MAX)
        write_numbered(p);
    EXPECT_EQ(p->sink.left_out, 5);
}

/* What was written to a terminal comes a moment later. */
static void read_until(place *p, const char *mark)
{
    struct pollfd asked = { .fd = p->read_fd, .events = POLLIN };

    while (p->text == NULL || strstr(p->text, mark) == NULL) {
        p->text = realloc(p->text, p->bytes + PAGE_BYTES + 1);
        EXPECT(p->text != NULL && poll(&asked, 1, WAIT_MS) > 0);
        const ssize_t got = read(p->read_fd, p->text + p->bytes, PAGE_BYTES);
        EXPECT(got > 0);
        p->bytes += (size_t)got;
        p->text[p->bytes] = '\0';
    }
}

static void read_line(place *p, size_t number)
{
    char mark[32];

    snprintf(mark, sizeof mark, "line %zu of a log", number);
    read_until(p, mark);
}

/* Fills it, and reads what there is. */
static void fill_and_read(place *p)
{
    fill(p);
    read_line(p, p->line_count - p->sink.left_out);
    EXPECT(sl_outlet_wait(&p->sink.outlet, WAIT_MS));
}

static void let_go(place *p)
{
    fclose(p->err);
    close(p->read_fd);
    free(p->text);
}

static void end(place *p)
{
    sl_log_sink_end(&p->sink);
    let_go(p);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (; (text = strstr(text, part)) != NULL; text += strlen(part))
        count++;
    return count;
}

TEST(lines_that_nobody_reads_are_left_out_and_told_once_somebody_does)
{
    static void (*const kinds[])(int *) = { make_pipe, make_socket, make_terminal };

    for (size_t i = 0; i < SL_COUNT_OF(kinds); i++) {
        char last[32];
        place p;

        begin(&p, kinds[i], SL_LOG_FORMAT_TEXT);
        EXPECT_EQ(p.sink.outlet.is_own, kinds[i] != make_socket);
        fill_and_read(&p);
        write_numbered(&p); /* the note stands before it */
        write_numbered(&p);
        EXPECT_EQ(p.sink.left_out, 0);
        read_line(&p, p.line_count);
        EXPECT_EQ(count_of(p.text, " WARN  lines were left out: nobody read the log count=5\nline "), 1);
        snprintf(last, sizeof last, "\nline %zu of ", p.line_count - 1);
        EXPECT_EQ(count_of(p.text, last), 1);
        end(&p);
    }
}

/* Whether a terminal tears a line is up to the system; that the note begins a line of its own is not. */
TEST(a_line_that_was_taken_in_part_does_not_run_into_the_next_one)
{
    enum {
        TIME_BYTES = 23 /* without its Z */
    };
    const char *cut;
    place p;

    begin(&p, make_terminal, SL_LOG_FORMAT_TEXT);
    fill_and_read(&p);
    p.sink.is_torn = true;
    write_numbered(&p);
    read_line(&p, p.line_count);
    EXPECT(!p.sink.is_torn);
    cut = strstr(p.text, "Z WARN ");
    EXPECT(cut != NULL && cut - p.text > TIME_BYTES);
    EXPECT_EQ(cut[-TIME_BYTES - 1], '\n');
    end(&p);
}

TEST(the_note_has_the_format_of_the_log)
{
    place p;

    begin(&p, make_pipe, SL_LOG_FORMAT_JSON);
    fill_and_read(&p);
    write_numbered(&p);
    read_line(&p, p.line_count);
    EXPECT(
        strstr(
            p.text,
            "\"level\":\"warn\",\"message\":\"lines were left out: nobody read the log\",\"count\":5}\n") !=
        NULL);
    end(&p);
}

TEST(a_pipe_takes_lines_whole_also_when_it_has_one_page)
{
    place p;

    begin(&p, make_pipe, SL_LOG_FORMAT_TEXT);
    EXPECT(fcntl(p.write_fd, F_SETPIPE_SZ, PAGE_BYTES) > 0);
    fill_and_read(&p);
    EXPECT(!p.sink.is_torn);
    write_numbered(&p);
    EXPECT_EQ(p.sink.left_out, 0); /* note and line share the page */
    end(&p);
}

TEST(the_flags_that_others_see_stay_as_they_were)
{
    place p;

    begin(&p, make_pipe, SL_LOG_FORMAT_TEXT);
    EXPECT_EQ(fcntl(p.write_fd, F_GETFL) & O_NONBLOCK, 0);
    EXPECT(fcntl(p.sink.outlet.fd, F_GETFD) & FD_CLOEXEC);
    end(&p);
}

TEST(at_the_end_the_line_that_was_left_out_last_comes_if_somebody_reads_by_then)
{
    char last[64];
    place p;

    begin(&p, make_pipe, SL_LOG_FORMAT_TEXT);
    fill_and_read(&p);
    sl_log_sink_end(&p.sink);
    read_line(&p, p.line_count);
    snprintf(last, sizeof last, " nobody read the log count=4\nline %zu of ", p.line_count);
    EXPECT_EQ(count_of(p.text, last), 1);
    let_go(&p);
}

TEST(at_the_end_nothing_waits_for_a_reader_who_does_not_read)
{
    char words[4 * PAGE_BYTES] = { 0 };
    place p;

    begin(&p, make_pipe, SL_LOG_FORMAT_TEXT);
    fill(&p);
    sl_log_sink_end(&p.sink);
    EXPECT_EQ(fwrite(words, 1, sizeof words, p.err), sizeof words); /* into the pipe it would never return */
    EXPECT_EQ(fflush(p.err), 0);
    let_go(&p);
}

TEST(a_reader_who_is_gone_costs_lines_and_nothing_else)
{
    void (*const before)(int) = signal(SIGPIPE, SIG_IGN);
    place p;

    begin(&p, make_pipe, SL_LOG_FORMAT_TEXT);
    fill(&p);
    close(p.read_fd);
    p.read_fd = -1;
    write_numbered(&p);
    end(&p);
    (void)signal(SIGPIPE, before);
}

TEST(a_file_gets_every_line_behind_what_is_there)
{
    char text[64] = "";
    FILE *const file = tmpfile();
    sl_log_sink sink;

    EXPECT(file != NULL);
    fputs("sluice: first\n", file);
    sl_log_sink_begin(&sink, file, SL_LOG_FORMAT_TEXT);
    EXPECT(!sink.outlet.is_own);
    sl_log_sink_write(&sink, "second\n", 7);
    sl_log_sink_end(&sink);
    fputs("third\n", file);
    rewind(file);
    EXPECT(fread(text, 1, sizeof text - 1, file) > 0);
    EXPECT_STR(text, "sluice: first\nsecond\nthird\n");
    fclose(file);
}
