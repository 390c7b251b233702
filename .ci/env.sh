# Sourced by every script of this folder: one environment and one way of reporting a stage.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1

export PATH="$root/.tools/bin:$PATH"
export UV_PROJECT_ENVIRONMENT="$root/.venv"
export UV_PYTHON_DOWNLOADS=never # the machine's Python, checked by set-up, and no other
export CARGO_TERM_PROGRESS_WHEN=never
# A process that writes no bytecode compiles all that it imports: seconds for each of hundreds.
unset PYTHONDONTWRITEBYTECODE
unset VIRTUAL_ENV PYTHONPATH # another project's environment must not leak into this one

# A rustup proxy on PATH finds its toolchains in the home folder. With another home folder (a CI
# user, an empty one) they still lie beside the proxy.
if [ -z "${RUSTUP_HOME:-}" ] && ! rustc --version >/dev/null 2>&1; then
  proxy=$(command -v rustc || true)
  beside="$(dirname "$(dirname "$(dirname "${proxy:-/}")")")/.rustup"
  if [ -d "$beside/toolchains" ]; then export RUSTUP_HOME="$beside"; fi
fi

stage_names=()
stage_seconds=()

# stage NAME COMMAND...: runs the command, says when it begins and how long it took. A failing
# stage prints what failed and ends the script with the command's status.
stage() {
  local name=$1 begin=$SECONDS status=0
  shift
  printf '\n==> %s\n' "$name"
  "$@" || status=$?
  stage_names+=("$name")
  stage_seconds+=($((SECONDS - begin)))
  if [ "$status" -ne 0 ]; then
    printf '==> %s FAILED after %d s (exit %d): %s\n' \
      "$name" $((SECONDS - begin)) "$status" "$*" >&2
    exit "$status"
  fi
  printf '==> %s: done in %d s\n' "$name" $((SECONDS - begin))
}

# reuse NAME PATH... -- COMMAND...: a stage that is not run again while all files below the paths,
# the compiler and these scripts are as they were when it passed. For checks, and for the tests of
# the crates, of which `.ci/test-all engine` tries the random seeds at length.
reuse() {
  local name=$1 paths=(.ci) passed state
  passed=.tools/passed/${name//[^a-z]/-}
  shift
  while [ "$1" != -- ]; do
    paths+=("$1")
    shift
  done
  shift
  # Without an answer of git there is nothing to compare with, and the stage runs.
  state=$({
    rustc --version
    git ls-files -z --cached --others --exclude-standard -- "${paths[@]}" | sort -z \
      | xargs -0 sha256sum
  } | sha256sum) || state=
  if [ -n "$state" ] && [ "$(cat "$passed" 2>/dev/null)" = "$state" ]; then
    printf '\n==> %s: reused, it passed with the same files in %s\n' "$name" "${paths[*]}"
    return
  fi
  rm -f "$passed"
  stage "$name" "$@"
  mkdir -p "${passed%/*}"
  if [ -n "$state" ]; then printf '%s\n' "$state" >"$passed"; fi
}

# begin NAME COMMAND...: the command runs beside what follows, until `end NAME`. It writes a log of
# its own, which is shown if it fails.
begin() {
  local name=$1
  shift
  "$@" >".tools/$name.log" 2>&1 &
  eval "begun_$name=$!"
}

end() {
  local name=$1 status=0
  wait "$(begun "$name")" || status=$?
  if [ "$status" -ne 0 ]; then cat ".tools/$name.log" >&2; fi
  return "$status"
}

# begun NAME: prints the process id of what `begin` started.
begun() {
  local pid="begun_$1"
  printf '%s' "${!pid}"
}

# together [NAME COMMAND... --]... COMMAND...: all at once; what the named ones write is shown after
# the last one. Ends when all have, and fails if one does. The end of a failed one is shown again,
# below all that the others wrote.
together() {
  local names=() failed=() name words=()
  while [[ " $* " == *" -- "* ]]; do
    name=$1 words=()
    shift
    while [ "$1" != -- ]; do
      words+=("$1")
      shift
    done
    shift
    begin "$name" "${words[@]}"
    names+=("$name")
  done
  ("$@") 2>&1 | tee .tools/last.log || failed+=(last)
  for name in "${names[@]}"; do
    wait "$(begun "$name")" || failed+=("$name")
    cat ".tools/$name.log"
  done
  for name in "${failed[@]}"; do
    printf '\n==> failed, the end of .tools/%s.log:\n' "$name" >&2
    tail -n 100 ".tools/$name.log" >&2
  done
  [ "${#failed[@]}" -eq 0 ]
}

# Prints a table of the stages so far. A stage that doubles is worth a look.
stage_table() {
  local i
  printf '\n%-28s %8s\n' "stage" "seconds"
  for i in "${!stage_names[@]}"; do
    printf '%-28s %8d\n' "${stage_names[$i]}" "${stage_seconds[$i]}"
  done
  printf '%-28s %8d\n' "all" "$SECONDS"
}
