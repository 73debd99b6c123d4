/* tests/faults/report.c — see report.h. */
#include "report.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Of the sanitizers; not there in a build without one. */
extern void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static char name_now[128]; /* of the case that runs; "": none does */
static jmp_buf out_of_the_case;
static bool in_child;
static unsigned line_count, failed_count;

static void say(const char *text)
{
    const ssize_t written = write(STDOUT_FILENO, text, strlen(text));

    (void)written; /* nobody is left to be told */
}

/* From a signal handler or a dying sanitizer: no stdio. */
static void tell_the_name(const char *what)
{
    if (name_now[0] == '\0')
        return;
    say("not ok 0 - ");
    say(name_now);
    say("\n# ");
    say(what);
    say(": repeat it with these words behind the name of the program\n");
    name_now[0] = '\0';
}

static void on_signal(int number)
{
    tell_the_name(number == SIGALRM ? "it hangs" : "it crashed");
    signal(number == SIGALRM ? SIGABRT : number, SIG_DFL);
    raise(number == SIGALRM ? SIGABRT : number);
}

static void on_death(void)
{
    tell_the_name("a sanitizer has ended it");
}

void report_begin(void)
{
    static const int signals[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGALRM };

    setvbuf(stdout, NULL, _IONBF, 0); /* what was said before a crash is there, and said once by a fork */
    for (unsigned i = 0; i < sizeof signals / sizeof signals[0]; i++)
        signal(signals[i], on_signal);
    if (__sanitizer_set_death_callback != NULL)
        __sanitizer_set_death_callback(on_death);
}

void report_in_child(void)
{
    in_child = true;
}

void case_fail(const char *format, ...)
{
    va_list arguments;
    char text[2048];

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (in_child) {
        printf("# %s\n", text);
        _exit(CHILD_FAILED);
    }
    printf("not ok %u - %s\n# %s\n", ++line_count, name_now, text);
    failed_count++;
    longjmp(out_of_the_case, 1);
}

bool case_run(case_fn *run, void *ctx, unsigned seconds_max, const char *format, ...)
{
    va_list arguments;
    volatile bool passed = false; /* it is set between setjmp and a jump */

    va_start(arguments, format);
    vsnprintf(name_now, sizeof name_now, format, arguments);
    va_end(arguments);
    alarm(seconds_max);
    if (setjmp(out_of_the_case) == 0) {
        run(ctx);
        passed = true;
    }
    alarm(0);
    name_now[0] = '\0';
    return passed;
}

void tap_passed(const char *format, ...)
{
    va_list arguments;

    printf("ok %u - ", ++line_count);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
}

void tap_note(const char *format, ...)
{
    va_list arguments;

    printf("# ");
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
}

int tap_end(void)
{
    printf("1..%u\n", line_count);
    return failed_count > 0 || line_count == 0 ? 1 : 0;
}
