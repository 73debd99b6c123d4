/* sluice.h — the public interface of libsluice.
 *
 * Everything here is prefixed sl_ or SL_. From version 1.0 on it stays compatible within one major version; as
 * long as the major version is 0, anything may still change. Nothing else of Sluice is for programs outside:
 * the library exports exactly the functions that are marked SL_EXPORT below.
 *
 *     cc program.c $(pkg-config --cflags --libs sluice) */
#ifndef SLUICE_H
#define SLUICE_H

/* The version of this header. sl_version() is the version of the library that was linked: a program that must
 * not run with another one compares the two at start. */
#define SL_VERSION_MAJOR 0
#define SL_VERSION_MINOR 1
#define SL_VERSION_PATCH 0

#define SL_VERSION_QUOTE_(number) #number
#define SL_VERSION_JOIN_(major, minor, patch)                                                                \
    SL_VERSION_QUOTE_(major) "." SL_VERSION_QUOTE_(minor) "." SL_VERSION_QUOTE_(patch)
#define SL_VERSION_TEXT SL_VERSION_JOIN_(SL_VERSION_MAJOR, SL_VERSION_MINOR, SL_VERSION_PATCH)

#if defined(__GNUC__)
#define SL_EXPORT __attribute__((visibility("default")))
#else
#define SL_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* "major.minor.patch" of the library. Static storage, never NULL. */
SL_EXPORT const char *sl_version(void);

#ifdef __cplusplus
}
#endif

#endif
