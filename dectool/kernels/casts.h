/* Conversions of whole buffers between float and the halves. */

#ifndef DECTOOL_CASTS_H
#define DECTOOL_CASTS_H

#ifdef __CUDACC_RTC__

#define DECTOOL_CAST(NAME, FROM, TO, CONVERT)                                                      \
    extern "C" __global__ void NAME(const FROM *x, TO *out, uint64_t size)                         \
    {                                                                                              \
        uint64_t step = (uint64_t)gridDim.x * blockDim.x;                                          \
        for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += step)    \
            out[i] = CONVERT(x[i]);                                                                \
    }

#else

#define DECTOOL_CAST(NAME, FROM, TO, CONVERT)                                                      \
    static DECTOOL_WIDE void NAME##_tile(const FROM *restrict x, TO *restrict out, size_t size)    \
    {                                                                                              \
        for (size_t i = 0; i < size; i++)                                                          \
            out[i] = CONVERT(x[i]);                                                                \
    }                                                                                              \
    static void NAME(const FROM *x, TO *out, size_t size)                                          \
    {                                                                                              \
        DECTOOL_PARALLEL(size)                                                                     \
        for (size_t at = 0; at < size; at += DECTOOL_TILE)                                         \
            NAME##_tile(x + at, out + at, dectool_tile(size, at));                                 \
    }

#endif

DECTOOL_CAST(dectool_narrow_float16, float, uint16_t, dectool_to_float16)
DECTOOL_CAST(dectool_narrow_bfloat16, float, uint16_t, dectool_to_bfloat16)
DECTOOL_CAST(dectool_widen_float16, uint16_t, float, dectool_from_float16)
DECTOOL_CAST(dectool_widen_bfloat16, uint16_t, float, dectool_from_bfloat16)

#endif
