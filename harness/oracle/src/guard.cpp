// Lets a caller outlive the asserts of ggml: its callback is called before it aborts, and may throw.
// What ggml had allocated by then is lost.

#include "ggml.h"
#include "gguf.h"

namespace {
struct aborted {};
thread_local bool guarded = false;
ggml_abort_callback_t last_words = nullptr;

void on_abort(const char * message) {
    if (guarded) {
        throw aborted();
    }
    if (last_words != nullptr) {
        last_words(message);
    }
}
} // namespace

extern "C" void gguf_assay_set_abort_callback(ggml_abort_callback_t callback) {
    last_words = callback;
    ggml_set_abort_callback(on_abort);
}

// As gguf_init_from_buffer; whether ggml would have ended the process instead of returning.
extern "C" bool gguf_assay_init_guarded(const void * data, size_t size,
        struct gguf_init_params params, struct gguf_context ** gguf) {
    guarded = true;
    bool survived = true;
    try {
        *gguf = gguf_init_from_buffer(data, size, params);
    } catch (const aborted &) {
        survived = false;
    } catch (...) {
        guarded = false;
        throw;
    }
    guarded = false;
    return !survived;
}
