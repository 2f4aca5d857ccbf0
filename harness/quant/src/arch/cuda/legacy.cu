// Blocks of 32 elements with one scale; the reference is `block/legacy.rs`.

// The low or the high four bits of four bytes, elements `j` to `j + 3`.
template <class At>
__device__ __forceinline__ unsigned nibbles(Block<At> block, unsigned j)
{
    return block.template word<At::qs>(j % 16) >> j / 16 * 4 & 0x0F0F0F0F;
}

// With the fifth bits in their places.
template <class At>
__device__ __forceinline__ unsigned five_bits(Block<At> block, unsigned j)
{
    return nibbles(block, j) | spread(block.template word<At::qh>() >> j) << 4;
}

// The product with a scale of 11 significant bits is exact, so that fusing rounds once, too.
__device__ __forceinline__ void scaled_with_min(unsigned digits, float d, float m, float (&y)[4])
{
    numbers<0>(digits, y);
    for (unsigned k = 0; k < 4; k++) {
        y[k] = __fmaf_rn(y[k], d, m);
    }
}

template <unsigned bias>
__device__ __forceinline__ void scaled(unsigned digits, float d, float (&y)[4])
{
    numbers<bias>(digits, y);
    for (unsigned k = 0; k < 4; k++) {
        y[k] *= d;
    }
}

struct Q4_0 {
    using At = layout::Q4_0;
    using Table = NoTable;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *,
                                                float (&y)[4])
    {
        scaled<8>(nibbles(block, j), block.f16<At::d>(), y);
    }
};

struct Q4_1 {
    using At = layout::Q4_1;
    using Table = NoTable;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *,
                                                float (&y)[4])
    {
        scaled_with_min(nibbles(block, j), block.f16<At::d>(), block.f16<At::m>(), y);
    }
};

struct Q5_0 {
    using At = layout::Q5_0;
    using Table = NoTable;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *,
                                                float (&y)[4])
    {
        scaled<16>(five_bits(block, j), block.f16<At::d>(), y);
    }
};

struct Q5_1 {
    using At = layout::Q5_1;
    using Table = NoTable;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *,
                                                float (&y)[4])
    {
        scaled_with_min(five_bits(block, j), block.f16<At::d>(), block.f16<At::m>(), y);
    }
};

struct Q8_0 {
    using At = layout::Q8_0;
    using Table = NoTable;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *,
                                                float (&y)[4])
    {
        scaled<SIGNED>(biased(block.word<At::qs>(j)), block.f16<At::d>(), y);
    }
};

struct Q8_1 {
    using At = layout::Q8_1;
    using Table = NoTable;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *,
                                                float (&y)[4])
    {
        scaled<SIGNED>(biased(block.word<At::qs>(j)), block.f16<At::d>(), y);
    }
};

KERNELS(dequantize, Q4_0)
KERNELS(dequantize, Q4_1)
KERNELS(dequantize, Q5_0)
KERNELS(dequantize, Q5_1)
KERNELS(dequantize, Q8_0)
KERNELS(dequantize, Q8_1)
