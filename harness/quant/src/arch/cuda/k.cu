// Blocks of 256 elements in sub-blocks that have scales of their own; the reference is
// `block/k.rs`.

// The two bits of four elements in a field where each 128 elements have 32 bytes.
template <class At, unsigned FIELD>
__device__ __forceinline__ unsigned pairs(Block<At> block, unsigned j)
{
    return block.template word<FIELD>(j / 128 * 32 + j % 32) >> j / 32 % 4 * 2 & 0x03030303;
}

// The four bits in `qs` where each 64 elements have 32 bytes.
template <class At>
__device__ __forceinline__ unsigned nibbles(Block<At> block, unsigned j)
{
    return block.template word<At::qs>(j / 64 * 32 + j % 32) >> j / 32 % 2 * 4 & 0x0F0F0F0F;
}

// The one bit in a field where byte l has those of elements l, l + 32 and so on.
template <class At, unsigned FIELD>
__device__ __forceinline__ unsigned high_bits(Block<At> block, unsigned j)
{
    return block.template word<FIELD>(j % 32) >> j / 32 & 0x01010101;
}

// `scale·q - min`. Scales and mins are products of 11 and at most 8 significant bits, and digits
// have at most 5, so that all products are exact and fusing rounds once, as the subtraction does.
__device__ __forceinline__ void scaled_with_min(unsigned digits, float scale, float min,
                                                float (&y)[4])
{
    numbers<0>(digits, y);
    for (unsigned k = 0; k < 4; k++) {
        y[k] = __fmaf_rn(scale, y[k], -min);
    }
}

template <unsigned bias>
__device__ __forceinline__ void scaled(unsigned digits, float scale, float (&y)[4])
{
    numbers<bias>(digits, y);
    for (unsigned k = 0; k < 4; k++) {
        y[k] *= scale;
    }
}

// Scale and min of sub-block `i` of Q4_K and Q5_K, six bits each, in the low and the third byte.
template <class At>
__device__ __forceinline__ unsigned scale_and_min(Block<At> block, unsigned i)
{
    const unsigned first = block.template u8<At::scales>(i % 4);
    const unsigned second = block.template u8<At::scales>(i % 4 + 4);
    const unsigned third = block.template u8<At::scales>(i % 4 + 8);
    const unsigned low = (first | second << 16) & 0x003F003F;
    const unsigned fours = (third & 0xF) | (third & 0xF0) << 12;
    const unsigned high = fours | first >> 6 << 4 | second >> 6 << 20;
    return i < 4 ? low : high;
}

struct Q2_K {
    using At = layout::Q2_K;
    using Table = NoTable;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *,
                                                float (&y)[4])
    {
        const unsigned both = block.u8<At::scales>(j / 16);
        const float scale = block.f16<At::d>() * number<0>(both & 0xF, 0);
        const float min = block.f16<At::dmin>() * number<0>(both >> 4, 0);
        scaled_with_min(pairs<At, At::qs>(block, j), scale, min, y);
    }
};

struct Q3_K {
    using At = layout::Q3_K;
    using Table = NoTable;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *,
                                                float (&y)[4])
    {
        const unsigned i = j / 16;
        const unsigned low = block.u8<At::scales>(i % 8) >> i / 8 * 4 & 0xF;
        const unsigned high = block.u8<At::scales>(8 + i % 4) >> i / 4 * 2 & 3;
        const float scale = block.f16<At::d>() * number<32>(low | high << 4, 0);
        const unsigned third = high_bits<At, At::hmask>(block, j);
        scaled<4>(pairs<At, At::qs>(block, j) | third << 2, scale, y);
    }
};

struct Q4_K {
    using At = layout::Q4_K;
    using Table = NoTable;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *,
                                                float (&y)[4])
    {
        const unsigned both = scale_and_min(block, j / 32);
        const float scale = block.f16<At::d>() * number<0>(both, 0);
        const float min = block.f16<At::dmin>() * number<0>(both, 2);
        scaled_with_min(nibbles(block, j), scale, min, y);
    }
};

struct Q5_K {
    using At = layout::Q5_K;
    using Table = NoTable;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *,
                                                float (&y)[4])
    {
        const unsigned both = scale_and_min(block, j / 32);
        const float scale = block.f16<At::d>() * number<0>(both, 0);
        const float min = block.f16<At::dmin>() * number<0>(both, 2);
        const unsigned digits = nibbles(block, j) | high_bits<At, At::qh>(block, j) << 4;
        scaled_with_min(digits, scale, min, y);
    }
};

struct Q6_K {
    using At = layout::Q6_K;
    using Table = NoTable;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *,
                                                float (&y)[4])
    {
        const unsigned sc = biased(block.u8<At::scales>(j / 16));
        const float scale = block.f16<At::d>() * number<SIGNED>(sc, 0);
        const unsigned bytes = block.word<At::ql>(j / 128 * 64 + j % 64);
        const unsigned low = bytes >> j / 64 % 2 * 4 & 0x0F0F0F0F;
        scaled<32>(low | pairs<At, At::qh>(block, j) << 4, scale, y);
    }
};

struct Q8_K {
    using At = layout::Q8_K;
    using Table = NoTable;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *,
                                                float (&y)[4])
    {
        const float d = __uint_as_float(block.word<At::d>());
        scaled<SIGNED>(biased(block.word<At::qs>(j)), d, y);
    }
};

KERNELS(dequantize, Q2_K)
KERNELS(dequantize, Q3_K)
KERNELS(dequantize, Q4_K)
KERNELS(dequantize, Q5_K)
KERNELS(dequantize, Q6_K)
KERNELS(dequantize, Q8_K)
