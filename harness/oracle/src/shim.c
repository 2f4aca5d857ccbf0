// What the four compiled files of ggml lack, and what its headers say only to a C compiler.

#include "ggml-backend.h"
#include "ggml.h"
#include "ggml-quants.h"
#include "gguf.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

// Layouts that sys.rs repeats.
_Static_assert(sizeof(struct gguf_init_params) == 2 * sizeof(void *), "gguf_init_params");
_Static_assert(offsetof(struct gguf_init_params, no_alloc) == 0, "gguf_init_params.no_alloc");
_Static_assert(offsetof(struct gguf_init_params, ctx) == sizeof(void *), "gguf_init_params.ctx");
_Static_assert(sizeof(enum gguf_type) == sizeof(int), "gguf_type");
_Static_assert(sizeof(enum ggml_type) == sizeof(int), "ggml_type");
_Static_assert(sizeof(enum ggml_log_level) == sizeof(int), "ggml_log_level");
_Static_assert(sizeof(bool) == 1, "bool");
_Static_assert(GGML_MAX_DIMS == 4, "GGML_MAX_DIMS");
_Static_assert(GGML_LOG_LEVEL_ERROR == 4, "GGML_LOG_LEVEL_ERROR");
_Static_assert(GGUF_TYPE_COUNT == 13, "GGUF_TYPE_COUNT");

int gguf_assay_type_count(void) {
    return GGML_TYPE_COUNT;
}

// The function of the type traits, which for Q8_K name none although ggml has one. Null where there
// is none, and for an id that is no type. No field of the traits is repeated in sys.rs, so they may
// differ between versions.
ggml_to_float_t gguf_assay_to_float(int type) {
    if (type < 0 || type >= GGML_TYPE_COUNT) {
        return NULL;
    }
    if (type == GGML_TYPE_Q8_K) {
        return (ggml_to_float_t) dequantize_row_q8_K;
    }
    return ggml_get_type_traits((enum ggml_type) type)->to_float;
}

// ggml.c and ggml-quants.c refer to these from code that no reader of files comes to. The rest of
// the backend layer is left out.

static void unreachable_here(const char * name) {
    fprintf(stderr, "gguf-assay-oracle: %s is not part of this build of ggml\n", name);
    abort();
}

enum ggml_backend_buffer_usage ggml_backend_buffer_get_usage(ggml_backend_buffer_t buffer) {
    (void) buffer;
    unreachable_here(__func__);
    return GGML_BACKEND_BUFFER_USAGE_ANY;
}

void ggml_backend_tensor_get(const struct ggml_tensor * tensor, void * data,
        size_t offset, size_t size) {
    (void) tensor, (void) data, (void) offset, (void) size;
    unreachable_here(__func__);
}

void ggml_backend_tensor_set(struct ggml_tensor * tensor, const void * data,
        size_t offset, size_t size) {
    (void) tensor, (void) data, (void) offset, (void) size;
    unreachable_here(__func__);
}

void ggml_backend_tensor_memset(struct ggml_tensor * tensor, uint8_t value,
        size_t offset, size_t size) {
    (void) tensor, (void) value, (void) offset, (void) size;
    unreachable_here(__func__);
}
