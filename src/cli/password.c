/* cli/password.c — see cli/password.h. */
#include "cli/password.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"

static const char terminal[] = "/dev/tty";

static sl_err refuse(sl_text *problem, const char *what, const char *is_so, sl_err err)
{
    sl_text_add(problem, what);
    sl_text_add(problem, is_so);
    return err;
}

/* Up to a line end or the end; byte by byte, so that nothing behind the line is taken from a pipe. */
static sl_err read_line(int fd, const char *what, sl_text *problem, sl_password *password)
{
    size_t bytes = 0;
    ssize_t count;
    char c;

    while (((count = read(fd, &c, 1)) == 1 && c != '\n') || (count < 0 && errno == EINTR)) {
        if (count < 0)
            continue;
        if (bytes == SL_CLIENT_PASSWORD_BYTES_MAX)
            return refuse(problem, what, " is too long", SL_ERR_TOO_LARGE);
        if (c == '\0')
            return refuse(problem, what, " has a zero byte in it", SL_ERR_INVALID);
        password->text[bytes++] = c;
    }
    if (count < 0)
        return refuse(problem, what, " cannot be read", SL_ERR_IO);
    if (bytes > 0 && password->text[bytes - 1] == '\r')
        bytes--;
    password->text[bytes] = '\0';
    return bytes > 0 ? SL_OK : refuse(problem, what, " is empty", SL_ERR_INVALID);
}

/* *ret_password is written only when all is well. */
static sl_err read_into(int fd, const char *what, sl_text *problem, sl_password *ret_password)
{
    sl_password password;
    const sl_err err = read_line(fd, what, problem, &password);

    if (err == SL_OK)
        *ret_password = password;
    explicit_bzero(&password, sizeof password);
    return err;
}

sl_err sl_password_from_file(const char *path, sl_text *problem, sl_password *ret_password)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    sl_err err;

    if (fd < 0) {
        sl_text_add(problem, "cannot read the password from ");
        sl_text_add(problem, path);
        sl_text_add(problem, ": ");
        return refuse(problem, strerror(errno), ". Name a file that is there and may be read", SL_ERR_IO);
    }
    err = read_into(fd, "the password in the file", problem, ret_password);
    close(fd);
    return err;
}

sl_err sl_password_from_input(sl_text *problem, sl_password *ret_password)
{
    return read_into(STDIN_FILENO, "the password on the input", problem, ret_password);
}

/* --- the terminal --- */

bool sl_password_has_terminal(void)
{
    const int fd = open(terminal, O_RDWR | O_CLOEXEC);

    if (fd >= 0)
        close(fd);
    return fd >= 0 && isatty(STDIN_FILENO);
}

/* For on_signal(): the terminal as it was. */
static struct termios terminal_before;
static int terminal_fd;

static const int deadly[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

/* Somebody who gives up must find his terminal as it was; then the signal does what it always does. */
static void on_signal(int number)
{
    (void)tcsetattr(terminal_fd, TCSANOW, &terminal_before);
    (void)!write(terminal_fd, "\n", 1);
    (void)signal(number, SIG_DFL);
    (void)raise(number); /* comes when this function has returned */
}

enum {
    CAUGHT = SL_COUNT_OF(deadly) + 1
};

/* Ctrl-Z is taken away: who comes back from it would find a terminal that shows what is typed. */
static void catch_signals(struct sigaction before[static CAUGHT])
{
    const struct sigaction ours = { .sa_handler = on_signal }, ignore = { .sa_handler = SIG_IGN };

    for (size_t i = 0; i < SL_COUNT_OF(deadly); i++)
        (void)sigaction(deadly[i], &ours, &before[i]);
    (void)sigaction(SIGTSTP, &ignore, &before[CAUGHT - 1]);
}

static void restore_signals(const struct sigaction before[static CAUGHT])
{
    for (size_t i = 0; i < SL_COUNT_OF(deadly); i++)
        (void)sigaction(deadly[i], &before[i], NULL);
    (void)sigaction(SIGTSTP, &before[CAUGHT - 1], NULL);
}

static sl_err ask_silently(int fd, const char *prompt, sl_text *problem, sl_password *ret_password)
{
    struct sigaction before[CAUGHT];
    struct termios silent = terminal_before;
    sl_err err;

    silent.c_lflag &= ~(tcflag_t)ECHO;
    silent.c_lflag |= ECHONL; /* the line end is shown, or the next output would stand beside the question */
    catch_signals(before);
    if (tcsetattr(fd, TCSAFLUSH, &silent) != 0) {
        restore_signals(before);
        return refuse(problem, "the terminal does not stop showing what is typed", "", SL_ERR_IO);
    }
    (void)!write(fd, prompt, strlen(prompt));
    err = read_into(fd, "the password", problem, ret_password);
    (void)tcsetattr(fd, TCSAFLUSH, &terminal_before);
    restore_signals(before);
    return err;
}

sl_err sl_password_ask(const char *prompt, sl_text *problem, sl_password *ret_password)
{
    sl_err err;

    terminal_fd = open(terminal, O_RDWR | O_CLOEXEC);
    if (terminal_fd < 0)
        return refuse(problem, "there is no terminal to ask for a password", "", SL_ERR_IO);
    if (tcgetattr(terminal_fd, &terminal_before) == 0)
        err = ask_silently(terminal_fd, prompt, problem, ret_password);
    else
        err = refuse(problem, "there is no terminal to ask for a password", "", SL_ERR_IO);
    close(terminal_fd);
    return err;
}
