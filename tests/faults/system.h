/* tests/faults/system.h — calls to the operating system that are made to fail, on a real folder.
 *
 * The linker puts these in front of the calls of disk_folder.c (see meson.build); until they are told otherwise they do
 * nothing but pass on. For all threads of this process. */
#ifndef SL_TESTS_FAULTS_SYSTEM_H
#define SL_TESTS_FAULTS_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>

/* So many calls succeed, then one fails with this errno; UINT64_MAX: none does. A write that fails has written a part. */
void system_fail_after(uint64_t calls, int error);
bool system_failed(void); /* the one that was to fail has */

/* Reads and writes do less than they were asked for, and every third one is interrupted before it did anything: all of
 * which is no error. */
void system_be_tiresome(bool tiresome);

#endif
