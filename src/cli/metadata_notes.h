/* cli/metadata_notes.h — what somebody who sets metadata may not have meant. */
#ifndef SL_CLI_METADATA_NOTES_H
#define SL_CLI_METADATA_NOTES_H

#include "base/str.h"

#include <stdio.h>

/* A line for each member of the object that has no effect and looks as if it should: {"maxCount": 5}, {"$maxCount": "x"}. Servers
 * take it as it is, because metadata may have members of an application as well. */
void sl_metadata_notes(sl_str json, FILE *err);

#endif
