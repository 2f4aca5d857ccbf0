// Blocks of 256 elements, 4 of which are an entry of a grid; the reference is `block/iq3.rs`.

// `±factor·g` for an entry.
template <class Grid>
__device__ __forceinline__ void with_factor(unsigned digits, unsigned signs, float factor,
                                            float (&y)[4])
{
    numbers<SIGNED>(with_signs(grid_levels<Grid>(digits), signs), y);
    for (unsigned k = 0; k < 4; k++) {
        y[k] *= factor;
    }
}

struct IQ3_XXS {
    using At = layout::IQ3_XXS;
    using Table = GridTable<table::IQ3XXS>;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *grid,
                                                float (&y)[4])
    {
        const unsigned word = block.word<At::scales_and_signs>(j / 32 * 4);
        const float factor = block.f16<At::d>() * (0.5f + number<0>(word >> 28, 0)) * 0.5f;
        const unsigned seven = word >> j / 8 % 4 * 7 & 0x7F;
        // The eighth makes the number of set bits even.
        const unsigned signs = (seven | (__popc(seven) & 1) << 7) >> j % 8;
        with_factor<table::IQ3XXS>(grid[block.u8<At::qs>(j / 4)], signs, factor, y);
    }
};

struct IQ3_S {
    using At = layout::IQ3_S;
    using Table = GridTable<table::IQ3S>;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *grid,
                                                float (&y)[4])
    {
        const unsigned i = j / 4;
        const unsigned sc = block.u8<At::scales>(i / 16) >> i / 8 % 2 * 4 & 0xF;
        const float factor = block.f16<At::d>() * number<0>(2 * sc + 1, 0);
        const unsigned high = block.u8<At::qh>(i / 8) >> i % 8 & 1;
        const unsigned index = block.u8<At::qs>(i) | high << 8;
        const unsigned signs = block.u8<At::signs>(i / 2) >> i % 2 * 4;
        with_factor<table::IQ3S>(grid[index], signs, factor, y);
    }
};

KERNELS(dequantize, IQ3_XXS)
KERNELS(dequantize, IQ3_S)
