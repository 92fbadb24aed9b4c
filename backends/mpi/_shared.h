/* What the extensions that work in shared memory have in common. */

#ifndef DECTOOL_SHARED_H
#define DECTOOL_SHARED_H

#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#define ALIGNMENT 64
#define PAGE 4096
#define SMALL 4096 /* bytes below which a plain copy is faster than one past the cache */

static inline uint64_t look(const uint64_t *at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
static inline void show(uint64_t *at, uint64_t value)
{
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
}

/* Copy past the cache. Plain stores would first have to take each line back from the readers' caches,
   which was measured to cost up to ten times as much as the copy (29 against 3 us for 64 KiB). */
static inline void stream(char *restrict to, const char *restrict from, size_t size)
{
#if defined(__x86_64__)
    if (size < SMALL || (uintptr_t)to % 16) {
        memcpy(to, from, size);
        return;
    }
    size_t at = 0;
    for (; at + 16 <= size; at += 16)
        _mm_stream_si128((__m128i *)(to + at), _mm_loadu_si128((const __m128i *)(from + at)));
    memcpy(to + at, from + at, size - at);
    _mm_sfence();
#else
    memcpy(to, from, size);
#endif
}

static inline int64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline void relax(unsigned turn, int crowded)
{
    if (crowded || turn % 64 == 63)
        sched_yield();
#if defined(__x86_64__)
    else
        __builtin_ia32_pause();
#endif
}

#endif
