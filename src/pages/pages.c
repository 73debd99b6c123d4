/* pages/pages.c — what all pages say in the same way, and what they read from a question. */
#include "pages/pages.h"

#include <cjson/cJSON.h>

#include <string.h>
#include <strings.h>

enum {
    SENTENCE_BYTES = 2048,
    PATH_SHOWN_BYTES = 128
};

/* --- answers --- */

void sl_pages_begin(sl_pages_answer *answer)
{
    answer->status = 200;
    answer->content_type = "application/json";
    answer->allow = answer->challenge = NULL;
    answer->job = NULL;
    sl_buf_clear(&answer->body);
}

void sl_pages_out_of_memory(sl_pages_answer *answer)
{
    answer->status = 500;
    sl_buf_clear(&answer->body);
}

void sl_pages_show(sl_pages_answer *answer, cJSON *object)
{
    char *const text = object == NULL ? NULL : cJSON_PrintUnformatted(object);

    sl_buf_clear(&answer->body);
    if (text == NULL || sl_buf_append(&answer->body, text, strlen(text)) != SL_OK ||
        sl_buf_append(&answer->body, "\n", 1) != SL_OK)
        sl_pages_out_of_memory(answer);
    cJSON_free(text);
    cJSON_Delete(object);
}

/* A failed line of JSON is an answer without a body: its number says enough. */
void sl_pages_refuse(sl_pages_answer *answer, unsigned status, const char *sentence)
{
    cJSON *object = cJSON_CreateObject();

    if (object != NULL && cJSON_AddStringToObject(object, "error", sentence) == NULL) {
        cJSON_Delete(object);
        object = NULL;
    }
    sl_pages_show(answer, object);
    answer->status = status;
    answer->content_type = "application/json";
}

void sl_pages_refuse_change(sl_pages_answer *answer)
{
    sl_pages_refuse(answer, 405, "This page can only be read: use GET or HEAD.");
    answer->allow = "GET, HEAD";
}

static void add_row(sl_text *text, const sl_pages_row *row)
{
    sl_text_add(text, row->method);
    sl_text_add(text, row->path);
    if (row->summary == NULL)
        return;
    sl_text_add(text, " (");
    sl_text_add(text, row->summary);
    sl_text_add(text, ")");
}

void sl_pages_refuse_path(sl_pages_answer *answer, const char *path, sl_pages_row_fn *row_at)
{
    char sentence[SENTENCE_BYTES];
    sl_str shown = sl_str_from(path);
    sl_pages_row row;
    sl_text text;

    shown.bytes = shown.bytes > PATH_SHOWN_BYTES ? PATH_SHOWN_BYTES : shown.bytes;
    sl_text_init(&text, sentence, sizeof sentence);
    sl_text_add(&text, "There is no page ");
    sl_text_add_str(&text, shown);
    sl_text_add(&text, " here. These exist:");
    for (size_t i = 0; row_at(i, &row); i++) {
        sl_text_add(&text, i == 0 ? " " : "; ");
        add_row(&text, &row);
    }
    sl_pages_refuse(answer, 404, sentence);
}

/* --- questions --- */

bool sl_pages_is_reading(const char *method)
{
    return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
}

/* "name:port", "[::1]:port" and both without a port. */
sl_str sl_pages_host_name(sl_str header)
{
    const sl_str text = sl_str_trim(header);
    sl_str before, after;

    if (text.bytes > 0 && text.data[0] == '[')
        return sl_str_cut((sl_str){ text.data + 1, text.bytes - 1 }, ']', &before, &after) ? before : text;
    return sl_str_cut(text, ':', &before, &after) ? before : text;
}

bool sl_pages_is_number(sl_str host)
{
    const bool has_colon = sl_str_find(host, ':') < host.bytes;

    for (size_t i = 0; i < host.bytes; i++) {
        const char c = host.data[i];
        const bool is_digit = c >= '0' && c <= '9';
        const bool is_letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        if (!is_digit && c != '.' && c != ':' && !(is_letter && has_colon))
            return false;
    }
    return host.bytes > 0 && host.data[host.bytes - 1] != '.';
}

bool sl_pages_same_name(sl_str a, const char *b)
{
    return b != NULL && a.bytes > 0 && strlen(b) == a.bytes && strncasecmp(a.data, b, a.bytes) == 0;
}
