// Blocks of 256 elements, 8 of which are an entry of a grid of -1, 0 and 1; the reference is
// `block/iq1.rs`.

// `factor·(g ± 1/8)` for four elements of an entry: the last four if `j` is no multiple of eight.
__device__ __forceinline__ void shifted(unsigned digits, unsigned j, float factor,
                                        bool is_negative, float (&y)[4])
{
    const float delta = is_negative ? -0.125f : 0.125f;
    numbers<SIGNED>(grid_levels<table::IQ1S>(digits >> j % 8 * 4), y);
    for (unsigned k = 0; k < 4; k++) {
        y[k] = factor * (y[k] + delta);
    }
}

struct IQ1_S {
    using At = layout::IQ1_S;
    using Table = GridTable<table::IQ1S>;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *grid,
                                                float (&y)[4])
    {
        const unsigned i = j / 8;
        const unsigned word = block.u16<At::qh>(i / 4);
        const float factor = block.f16<At::d>() * number<0>((word >> 11 & 14) + 1, 0);
        const unsigned index = block.u8<At::qs>(i) | (word >> i % 4 * 3 & 7) << 8;
        shifted(grid[index], j, factor, word >> 15 != 0, y);
    }
};

struct IQ1_M {
    using At = layout::IQ1_M;
    using Table = GridTable<table::IQ1S>;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *grid,
                                                float (&y)[4])
    {
        const unsigned i = j / 8;
        const unsigned first = block.word<At::scales>(), second = block.word<At::scales>(4);
        const unsigned d = (first >> 12 & 0x000F) | (first >> 24 & 0x00F0) |
                           (second >> 4 & 0x0F00) | (second >> 16 & 0xF000);
        const unsigned sc = block.u16<At::scales>(i / 8) >> i / 2 % 4 * 3 & 7;
        const float factor = float_of_f16(d) * number<0>(2 * sc + 1, 0);
        const unsigned nibble = block.u8<At::qh>(i / 2) >> i % 2 * 4 & 0xF;
        const unsigned index = block.u8<At::qs>(i) | (nibble & 7) << 8;
        shifted(grid[index], j, factor, nibble >> 3 != 0, y);
    }
};

KERNELS(dequantize, IQ1_S)
KERNELS(dequantize, IQ1_M)
