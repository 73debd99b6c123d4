/* tests/fuzz/replay.c — runs a fuzz target on stored inputs, without a fuzzer.
 *
 *     replay-NAME FILE_OR_FOLDER...
 *
 * The same LLVMFuzzerTestOneInput() that libFuzzer drives gets every file once, so the whole corpus is a
 * plain test with any compiler and any sanitizer. The name is printed before the input runs: when it crashes,
 * the last line says which one it was. A crash ends the run; each input that returns has passed. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes);

static unsigned passed_count, failed_count;

static int fail(const char *path, const char *why)
{
    printf("not ok %s: %s\n", path, why);
    failed_count++;
    return -1;
}

/* The copy is exactly as large as the input, so that reading one byte too many is seen by the sanitizer. */
static int run_bytes(const char *path, FILE *file, size_t data_bytes)
{
    uint8_t *data = malloc(data_bytes == 0 ? 1 : data_bytes);

    if (data == NULL)
        return fail(path, "out of memory");
    if (fread(data, 1, data_bytes, file) != data_bytes) {
        free(data);
        return fail(path, "cannot be read");
    }
    printf("run %s (%zu bytes)\n", path, data_bytes);
    fflush(stdout);
    LLVMFuzzerTestOneInput(data, data_bytes);
    free(data);
    passed_count++;
    return 0;
}

static int run_file(const char *path, const struct stat *status)
{
    FILE *file = fopen(path, "rb");

    if (file == NULL)
        return fail(path, "cannot be opened");
    const int result = run_bytes(path, file, (size_t)status->st_size);
    fclose(file);
    return result;
}

static int run_path(const char *path);

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Sorted, so that two runs do the same in the same order. */
static int run_folder(const char *path)
{
    struct dirent **entries;
    const int entry_count = scandir(path, &entries, is_input, alphasort);
    int result = 0;

    if (entry_count < 0)
        return fail(path, "cannot be listed");
    for (int i = 0; i < entry_count; i++) {
        char *inner = NULL;
        if (asprintf(&inner, "%s/%s", path, entries[i]->d_name) < 0 || run_path(inner) != 0)
            result = -1;
        free(inner);
        free(entries[i]);
    }
    free(entries);
    return result;
}

static int run_path(const char *path)
{
    struct stat status;

    if (stat(path, &status) != 0)
        return fail(path, "does not exist");
    return S_ISDIR(status.st_mode) ? run_folder(path) : run_file(path, &status);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        run_path(argv[i]);
    printf("%u passed, %u failed\n", passed_count, failed_count);
    return failed_count != 0 || passed_count == 0;
}
