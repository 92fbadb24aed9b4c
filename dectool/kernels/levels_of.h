/* Stochastic levels of a norm for one type; see dectool.compression.QSGD. */

/* levels + sign * level, from a uniform number in [0, 1); `levels` where the norm is not above 0. */
DECTOOL_INLINE REAL NAME(dectool_level)(REAL x, REAL norm, REAL levels, REAL uniform)
{
    REAL part = (x < 0 ? -x : x) / norm * levels;
    REAL low = FLOOR(part);
    low += uniform < part - low ? ONE : 0;
    low = low < levels ? low : levels;
    low = norm > 0 ? low : 0;
    return levels + (x < 0 ? -low : low);
}

DECTOOL_INLINE REAL NAME(dectool_of_level)(int32_t code, REAL norm, REAL levels)
{
    return ((REAL)code - levels) / levels * norm;
}

#ifndef __CUDACC_RTC__

#define DECTOOL_LEVELS_OF(SUFFIX, CODE)                                                            \
    static DECTOOL_WIDE void NAME(dectool_quantise_##SUFFIX)(                                      \
        const REAL *restrict x, const REAL *restrict norms, size_t size, int each, REAL levels,    \
        const REAL *restrict uniform, CODE *restrict codes)                                        \
    {                                                                                              \
        if (each)                                                                                  \
            for (size_t i = 0; i < size; i++)                                                      \
                codes[i] = (CODE)(int32_t)NAME(dectool_level)(x[i], norms[i], levels, uniform[i]); \
        else                                                                                       \
            for (size_t i = 0; i < size; i++)                                                      \
                codes[i] = (CODE)(int32_t)NAME(dectool_level)(x[i], *norms, levels, uniform[i]);   \
    }                                                                                              \
    static DECTOOL_WIDE void NAME(dectool_dequantise_##SUFFIX)(                                    \
        const CODE *restrict codes, const REAL *restrict norms, size_t size, int each,             \
        REAL levels, REAL *restrict out)                                                           \
    {                                                                                              \
        if (each)                                                                                  \
            for (size_t i = 0; i < size; i++)                                                      \
                out[i] = NAME(dectool_of_level)(codes[i], norms[i], levels);                       \
        else                                                                                       \
            for (size_t i = 0; i < size; i++)                                                      \
                out[i] = NAME(dectool_of_level)(codes[i], *norms, levels);                         \
    }

DECTOOL_LEVELS_OF(bytes, uint8_t)
DECTOOL_LEVELS_OF(words, uint16_t)

#undef DECTOOL_LEVELS_OF

/* Rows of codes of `width` bytes; with `uniform` from numbers, else back to them. There is a norm
   for each row, or for `each` number. */
static void NAME(dectool_levels)(REAL *x, const REAL *norms, size_t rows, size_t count, int each,
                                 REAL levels, const REAL *uniform, void *codes, int width)
{
    for (size_t row = 0; row < rows; row++) {
        size_t at = row * count;
        const REAL *norm = norms + (each ? at : row);
        if (uniform && width == 1)
            NAME(dectool_quantise_bytes)(x + at, norm, count, each, levels, uniform + at,
                                         (uint8_t *)codes + at);
        else if (uniform)
            NAME(dectool_quantise_words)(x + at, norm, count, each, levels, uniform + at,
                                         (uint16_t *)codes + at);
        else if (width == 1)
            NAME(dectool_dequantise_bytes)((const uint8_t *)codes + at, norm, count, each, levels,
                                           x + at);
        else
            NAME(dectool_dequantise_words)((const uint16_t *)codes + at, norm, count, each, levels,
                                           x + at);
    }
}

#endif
