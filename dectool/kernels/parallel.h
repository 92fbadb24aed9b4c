/* Threads, where the compiler has OpenMP; OMP_NUM_THREADS and the affinity mask count. */

#ifndef DECTOOL_PARALLEL_H
#define DECTOOL_PARALLEL_H

#include <stddef.h>

/* Numbers for each thread, below which starting one takes longer than it saves. */
#define DECTOOL_SHARE 65536

/* Numbers that a thread handles at a time. Sums depend on it. */
#define DECTOOL_TILE 65536

static inline size_t dectool_tile(size_t size, size_t at)
{
    return size - at < DECTOOL_TILE ? size - at : DECTOOL_TILE;
}

#ifdef _OPENMP

#include <omp.h>
#include <pthread.h>

static int dectool_forked = 0;

static void dectool_note_fork(void) { dectool_forked = 1; }

/* A forked child has none of its parent's threads, and would wait for them without end. */
static int dectool_watch_forks(void) { return pthread_atfork(NULL, NULL, dectool_note_fork); }

static int dectool_threads(size_t numbers)
{
    size_t useful = numbers / DECTOOL_SHARE, most = (size_t)omp_get_max_threads();
    if (dectool_forked || useful <= 1)
        return 1;
    return (int)(useful < most ? useful : most);
}

#define DECTOOL_PRAGMA(text) _Pragma(#text)
#define DECTOOL_PARALLEL(numbers)                                                                  \
    DECTOOL_PRAGMA(omp parallel for schedule(static) num_threads(dectool_threads(numbers)))

/* One round for each of the threads, which are counted before. */
#define DECTOOL_WORKERS_LOOP(workers)                                                              \
    DECTOOL_PRAGMA(omp parallel for schedule(static) num_threads((int)(workers)))

/* Threads find the least and the greatest of keys named so. */
#define DECTOOL_RANGES(numbers)                                                                    \
    DECTOOL_PRAGMA(omp parallel for schedule(static) num_threads(dectool_threads(numbers))         \
                       reduction(min : least) reduction(max : most))

#else

static int dectool_watch_forks(void) { return 0; }

static int dectool_threads(size_t numbers) { return (void)numbers, 1; }

#define DECTOOL_PARALLEL(numbers)
#define DECTOOL_WORKERS_LOOP(workers)
#define DECTOOL_RANGES(numbers)

#endif

#endif
