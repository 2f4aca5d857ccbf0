#!/usr/bin/env bash
# Builds every fuzz target into $OUT, each with its seeds, dictionary and options. ClusterFuzzLite and
# OSS-Fuzz run this in their container, .ci/run without one, at the root of the repository.
# fuzz/README.md says what they set.
set -euo pipefail

[[ -d fuzz/fuzz_targets ]] || { echo 'build.sh: run this at the root of the repository' >&2; exit 2; }
: "${OUT:?the folder to build into}"
export RUSTUP_TOOLCHAIN=${RUSTUP_TOOLCHAIN:-nightly}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-${WORK:-$PWD}/target}
export RUSTFLAGS=${RUSTFLAGS:-}

# ggml is compiled with $CXX and $CXXFLAGS, but linked with the library that `cc` takes for the right one.
if [[ ${CXXFLAGS:-} == *-stdlib=libc++* ]]; then export CXXSTDLIB=c++; fi

rust_sanitizer=none
case ${SANITIZER:=address} in
    address) rust_sanitizer=address ;;
    # Rust has none, ggml has: the compiler knows what to link.
    undefined) RUSTFLAGS+=" -Clinker=${CXX:-clang++} -Clink-arg=-fsanitize=undefined" ;;
    coverage) ;;
    none) RUSTFLAGS=${RUSTFLAGS//-Zsanitizer=none/} ;;
    *)
        echo "build.sh: SANITIZER is $SANITIZER; the targets build with address, undefined, coverage and none" >&2
        exit 2
        ;;
esac

cargo fuzz build --sanitizer "$rust_sanitizer"
built=$CARGO_TARGET_DIR/$(rustc -vV | sed -n 's/^host: //p')/release
"$built/seeds"

mkdir -p "$OUT"
shopt -s nullglob
for source in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$source" .rs)
    cp "$built/$target" "$OUT/"
    # Not `zip`, which a machine may lack.
    python3 -m zipfile -c "$OUT/${target}_seed_corpus.zip" "fuzz/corpus/$target"/* "corpus/regressions/$target"/*
    cp fuzz/corpus/gguf.dict "$OUT/$target.dict"
    printf '[libfuzzer]\nmax_len = 4096\n' >"$OUT/$target.options"
done
