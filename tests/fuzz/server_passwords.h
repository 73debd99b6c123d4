/* tests/fuzz/server_passwords.h — server/passwords.h without a thread, for fuzz_host.
 *
 * server_passwords.c defines everything that server/passwords.c does, so the linker never takes that one: an input has to do the
 * same each time, and a hash that takes fifty milliseconds on purpose would leave nothing of the speed. What the input decides
 * instead is when the "thread" answers. */
#ifndef SL_TESTS_FUZZ_SERVER_PASSWORDS_H
#define SL_TESTS_FUZZ_SERVER_PASSWORDS_H

#include <stdbool.h>

/* The thread is busy: no job is done while this is set. Who clears it gives the host a turn. */
extern bool fuzz_passwords_held;

/* A password for which the hash function finds no memory. */
#define FUZZ_PASSWORD_OF_NO_MEMORY "no memory"

/* libsodium's random numbers are the same in every run from now on. */
void fuzz_randomness_restart(void);

#endif
