#!/usr/bin/env bash
# The CUDA kernels on a machine with a GPU, in less than four minutes: builds, checks every kernel
# against the reference bit for bit, measures every type beside the device's own copy, and writes
# cuda.json and cuda.txt to FOLDER.
#
#   benches/cuda.sh [FOLDER]        all of it; FOLDER is benches/record/<date>-<GPU> if not given
#   benches/cuda.sh --build         builds alone, into target/cuda: for a GPU machine without Rust,
#                                   to which the checkout and that folder are then taken
#
# Needs NVIDIA's driver, of version 580 or later, and NVRTC 13 or 12: of a CUDA toolkit, or of
# `pip install nvidia-cuda-nvrtc==13.0.88`. What it builds with, is as for the rest.
set -euo pipefail
cd "$(dirname "$0")/.."

built=target/cuda
step() { printf '\n== %s (%ds)\n' "$1" "$SECONDS"; }
fail() { printf 'cuda.sh: %s\n' "$1" >&2; exit 1; }

# The path of the program that cargo has built, from its messages.
path_of() { sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1; }

build() {
    step 'build'
    local check measure
    check=$(cargo test --locked --quiet --no-run --message-format=json \
        -p gguf-assay-quant --features cuda --test cuda | path_of)
    measure=$(cargo build --release --locked --quiet --message-format=json \
        -p gguf-assay-benches --features cuda --bin cuda | path_of)
    mkdir -p "$built"
    cp "$check" "$built/check"
    cp "$measure" "$built/measure"
    # Debug information is most of them.
    if command -v strip >/dev/null; then strip "$built/check" "$built/measure"; fi
}

# Where NVRTC usually is, after what the environment says: a toolkit, a Python package.
nvrtc_folders() {
    local folder
    for folder in /usr/local/cuda/lib64 /usr/local/cuda/targets/*/lib; do
        if [[ -d $folder ]]; then printf ':%s' "$folder"; fi
    done
    python3 - <<'PYTHON' 2>/dev/null || true
import glob, sys
for folder in sys.path:
    for found in sorted(glob.glob(f"{folder}/nvidia/*/lib/libnvrtc.so.1[23]")):
        print(":" + found.rsplit("/", 1)[0], end="")
PYTHON
}

case ${1-} in
--build)
    build
    ls -l "$built"
    exit
    ;;
-*) fail "there is no option $1" ;;
esac

command -v nvidia-smi >/dev/null || fail 'no GPU: nvidia-smi, a part of the driver, is not there'
machine=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader -i 0) ||
    fail 'no GPU: nvidia-smi finds none'
LD_LIBRARY_PATH="${LD_LIBRARY_PATH-}$(nvrtc_folders)"
export LD_LIBRARY_PATH

if command -v cargo >/dev/null; then
    build
elif [[ ! -x $built/check || ! -x $built/measure ]]; then
    fail "neither cargo nor what \`benches/cuda.sh --build\` builds is there"
fi

step 'check'
# Only kernels on the GPU; what fails is printed with its numbers.
GGUF_ASSAY_REQUIRE_GPU=1 "$built/check" cuda-gpu/ --quiet

step 'measure'
name=${machine%%,*}
slug=$(printf '%s' "$name" | tr '[:upper:] ' '[:lower:]-' | tr -cd 'a-z0-9-')
folder=${1-benches/record/$(date +%F)-$slug}
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
"$built/measure" "$folder" "$machine; commit $commit"

step 'done'
printf '%s\n' "$folder/cuda.json" "$folder/cuda.txt"
