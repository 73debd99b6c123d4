/* store/filter.c — prefixes by comparing, expressions by PCRE2.
 *
 * The just-in-time compiler is not used: names are short, its gain would be small, and the interpreter is the one whose
 * steps can be counted. */
#include "store/filter.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <stdlib.h>
#include <string.h>

enum {
    DEPTH_MAX = 2500, /* a group may repeat for each of the 1024 bytes of a name */
    MATCH_KIB_MAX = 1024,
    NESTED_GROUPS_MAX = 100
};

struct sl_filter {
    sl_filter_on on;
    uint32_t prefix_count;
    sl_str *prefixes; /* one block with their bytes; NULL: an expression */
    pcre2_code *code;
    pcre2_match_context *limits;
    pcre2_match_data *found; /* changed by each match */
};

static void tell(sl_text *why, const char *text)
{
    if (why != NULL)
        sl_text_add(why, text);
}

/* --- prefixes --- */

static sl_err check_prefixes(const sl_filter_setup *setup, size_t *ret_bytes)
{
    size_t bytes = 0;

    if (setup->prefix_count > SL_FILTER_PREFIXES_MAX)
        return SL_ERR_TOO_LARGE;
    for (uint32_t i = 0; i < setup->prefix_count; i++) {
        if (setup->prefixes[i].bytes > SL_FILTER_PREFIX_BYTES_MAX - bytes)
            return SL_ERR_TOO_LARGE;
        bytes += setup->prefixes[i].bytes;
    }
    *ret_bytes = bytes;
    return SL_OK;
}

static sl_err copy_prefixes(sl_filter *filter, const sl_filter_setup *setup)
{
    size_t bytes = 0;
    const sl_err err = check_prefixes(setup, &bytes);
    char *at;

    if (err != SL_OK)
        return err;
    filter->prefixes = malloc(setup->prefix_count * sizeof(sl_str) + bytes);
    if (filter->prefixes == NULL)
        return SL_ERR_NOMEM;
    at = (char *)(filter->prefixes + setup->prefix_count);
    for (uint32_t i = 0; i < setup->prefix_count; i++) {
        const sl_str prefix = setup->prefixes[i];

        filter->prefixes[i] = (sl_str){ at, prefix.bytes };
        if (prefix.bytes > 0)
            memcpy(at, prefix.data, prefix.bytes);
        at += prefix.bytes;
    }
    filter->prefix_count = setup->prefix_count;
    return SL_OK;
}

/* --- expressions --- */

static void tell_error(sl_text *why, int number, size_t offset)
{
    PCRE2_UCHAR text[256];

    if (why == NULL)
        return;
    if (pcre2_get_error_message(number, text, sizeof text) < 0)
        text[0] = '\0';
    sl_text_add(why, (const char *)text);
    sl_text_add(why, " at byte ");
    sl_text_add_u64(why, offset);
}

/* MATCH_INVALID_UTF: a subject that is no UTF-8 is searched in its valid parts. NEVER_BACKSLASH_C: \C would cut
 * characters into bytes. */
static sl_err compile(sl_filter *filter, sl_str expression, sl_text *why)
{
    const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C;
    pcre2_compile_context *const context = pcre2_compile_context_create(NULL);
    PCRE2_SIZE offset = 0;
    int number = 0;

    if (context == NULL)
        return SL_ERR_NOMEM;
    pcre2_set_parens_nest_limit(context, NESTED_GROUPS_MAX);
    filter->code =
        pcre2_compile((PCRE2_SPTR)expression.data, expression.bytes, options, &number, &offset, context);
    pcre2_compile_context_free(context);
    if (filter->code != NULL)
        return SL_OK;
    tell_error(why, number, offset);
    return SL_ERR_INVALID;
}

static sl_err prepare(sl_filter *filter)
{
    filter->limits = pcre2_match_context_create(NULL);
    filter->found = pcre2_match_data_create(1, NULL); /* whether it matches is all that is asked */
    if (filter->limits == NULL || filter->found == NULL)
        return SL_ERR_NOMEM;
    pcre2_set_match_limit(filter->limits, SL_FILTER_STEPS_MAX);
    pcre2_set_depth_limit(filter->limits, DEPTH_MAX);
    pcre2_set_heap_limit(filter->limits, MATCH_KIB_MAX);
    return SL_OK;
}

static sl_err use_expression(sl_filter *filter, sl_str expression, sl_text *why)
{
    sl_err err;

    if (expression.bytes > SL_FILTER_EXPRESSION_BYTES_MAX)
        return SL_ERR_TOO_LARGE;
    err = compile(filter, expression, why);
    return err == SL_OK ? prepare(filter) : err;
}

/* Any error but "no match" is a limit: subjects cannot be wrong, and the expression was compiled. */
static sl_filter_verdict judge_by_expression(const sl_filter *filter, sl_str text)
{
    const PCRE2_SPTR subject = (PCRE2_SPTR)(text.bytes == 0 ? "" : text.data);
    const int result = pcre2_match(filter->code, subject, text.bytes, 0, 0, filter->found, filter->limits);

    if (result >= 0)
        return SL_FILTER_YES;
    return result == PCRE2_ERROR_NOMATCH ? SL_FILTER_NO : SL_FILTER_GAVE_UP;
}

/* --- both --- */

sl_err sl_filter_new(const sl_filter_setup *setup, sl_text *why, sl_filter **ret_filter)
{
    sl_filter *filter;
    sl_err err;

    if ((setup->prefix_count > 0) == (setup->expression.bytes > 0)) {
        tell(why, "a filter needs either prefixes or an expression");
        return SL_ERR_INVALID;
    }
    filter = calloc(1, sizeof *filter);
    if (filter == NULL)
        return SL_ERR_NOMEM;
    filter->on = setup->on;
    err = setup->prefix_count > 0 ? copy_prefixes(filter, setup)
                                  : use_expression(filter, setup->expression, why);
    if (err != SL_OK) {
        sl_filter_free(filter);
        return err;
    }
    *ret_filter = filter;
    return SL_OK;
}

void sl_filter_free(sl_filter *filter)
{
    if (filter == NULL)
        return;
    free(filter->prefixes);
    pcre2_code_free(filter->code);
    pcre2_match_context_free(filter->limits);
    pcre2_match_data_free(filter->found);
    free(filter);
}

sl_filter_verdict sl_filter_judge(const sl_filter *filter, sl_str stream, sl_str type)
{
    const sl_str text = filter->on == SL_FILTER_ON_STREAM ? stream : type;

    if (filter->code != NULL)
        return judge_by_expression(filter, text);
    for (uint32_t i = 0; i < filter->prefix_count; i++)
        if (sl_str_starts_with(text, filter->prefixes[i]))
            return SL_FILTER_YES;
    return SL_FILTER_NO;
}
