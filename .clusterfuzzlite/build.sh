#!/usr/bin/env bash
# Builds every fuzz target into $OUT, each with its seeds, dictionary and options. ClusterFuzzLite and
# OSS-Fuzz run this in their container, .ci/run without one, at the root of the repository.
# fuzz/README.md says what they set.
set -euo pipefail

[[ -d fuzz/fuzz_targets ]] || { echo 'build.sh: run this at the root of the repository' >&2; exit 2; }
: "${OUT:?the folder to build into}"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-${WORK:-$PWD}/target}

# A program for here, so without what a fuzzer is built with.
env -u CC -u CXX -u CFLAGS -u CXXFLAGS -u RUSTFLAGS -u RUSTUP_TOOLCHAIN \
    cargo run --locked --quiet -p gguf-assay-fuzz --example seeds

export RUSTUP_TOOLCHAIN=${RUSTUP_TOOLCHAIN:-nightly} RUSTFLAGS=${RUSTFLAGS:-}
# ggml is compiled with $CXX and $CXXFLAGS, but linked with the library that `cc` takes for the right one.
if [[ ${CXXFLAGS:-} == *-stdlib=libc++* ]]; then export CXXSTDLIB=c++; fi

rust_sanitizer=none
case ${SANITIZER:=address} in
    address) rust_sanitizer=address ;;
    # Of ggml's code; Rust has none. clang knows what to link. ggml loads ids of types that it does not
    # know into its enums before it refuses them, which would end every run at once.
    undefined)
        RUSTFLAGS+=" -Clinker=${CXX:-clang++} -Clink-arg=-fsanitize=undefined"
        export CFLAGS="${CFLAGS:-} -fno-sanitize=enum" CXXFLAGS="${CXXFLAGS:-} -fno-sanitize=enum"
        ;;
    coverage) ;;
    none) RUSTFLAGS=${RUSTFLAGS//-Zsanitizer=none/} ;;
    *)
        echo "build.sh: SANITIZER is $SANITIZER; the targets build with address, undefined, coverage and none" >&2
        exit 2
        ;;
esac

cargo fuzz build --sanitizer "$rust_sanitizer"
built=$CARGO_TARGET_DIR/$(rustc -vV | sed -n 's/^host: //p')/release

mkdir -p "$OUT"
shopt -s nullglob
for source in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$source" .rs)
    cp "$built/$target" "$OUT/"
    # Not `zip`, which a machine may lack.
    python3 -m zipfile -c "$OUT/${target}_seed_corpus.zip" "fuzz/corpus/$target"/* "corpus/regressions/$target"/*
    dict=fuzz/corpus/$target.dict
    [[ -f $dict ]] || dict=fuzz/corpus/gguf.dict
    cp "$dict" "$OUT/$target.dict"
    printf '[libfuzzer]\nmax_len = 4096\n' >"$OUT/$target.options"
done
