/* tests/faults/folder.h — a folder of its own for a case. */
#ifndef SL_TESTS_FAULTS_FOLDER_H
#define SL_TESTS_FAULTS_FOLDER_H

/* Made below $TMPDIR; good until folder_remove(). */
const char *folder_make(void);

/* With everything in it. */
void folder_remove(void);

#endif
