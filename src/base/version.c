/* base/version.c — the version, as the library tells it. */
#include <assert.h>

#include <sluice.h>

/* The build passes the numbers of meson.build; the header that programs compile against must name the same. */
static_assert(SL_VERSION_MAJOR == SL_BUILD_MAJOR, "include/sluice.h and meson.build: major version");
static_assert(SL_VERSION_MINOR == SL_BUILD_MINOR, "include/sluice.h and meson.build: minor version");
static_assert(SL_VERSION_PATCH == SL_BUILD_PATCH, "include/sluice.h and meson.build: patch version");

const char *sl_version(void)
{
    return SL_VERSION_TEXT;
}
