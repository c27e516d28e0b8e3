#!/bin/sh
# Sets up a2mcp on a fresh machine, for omp, on anything with a POSIX shell.
# setup.ps1 is the same for Windows.
#
#   setup.sh [--binary PATH] [--agent-dir DIR] [--no-host] [--dry-run]
#
# In this order, a line told for each, and safe to run again:
#
#   1. The host. omp is taken from $OMP, from the PATH, or from where npm and bun
#      put programs. Only if it is nowhere, it is installed from npm, by npm (bun
#      with it, where there is none; below ~/.local where npm's own prefix cannot
#      be written to) or by bun. With neither the script stops and says so.
#   2. A placeholder model, so that a host without any model starts in all its
#      modes: models.yml in the agent folder, mode 0600. Written only if step 1
#      installed the host, and only if there is no file of models; never changed.
#   3. The binary. --binary names it; else it is a2mcp beside this script, or on
#      the PATH, or it is built with Go from the checkout that this script is in.
#   4. a2mcp install, which puts extension and binary into the agent folder.
#   5. What to do next.
#
# What steps 1 and 3 need is looked for before anything is changed. Nothing is
# run as another user, no shell profile is edited. The agent folder is omp's own:
# PI_CODING_AGENT_DIR, OMP_PROFILE, PI_PROFILE and PI_CONFIG_DIR count.
set -eu
unset CDPATH

bun_package=bun@1.4.4
host_package=@oh-my-pi/pi-coding-agent@18.2.3

usage() {
  cat <<'END'
usage: setup.sh [--binary PATH] [--agent-dir DIR] [--no-host] [--dry-run]

Installs omp if it is not there, and a2mcp into it. Safe to run again.

  --binary PATH    this a2mcp, rather than one beside the script, on the PATH, or built from the checkout
  --agent-dir DIR  agent folder of the host; default: what omp would use
  --no-host        leave out omp: neither look for it nor install it
  --dry-run        say what would be done, and change nothing
  --help           this text
END
}

say() { printf 'setup: %s\n' "$*"; }
die() {
  printf 'setup: %s\n' "$*" >&2
  exit 1
}
misused() {
  printf 'setup: %s; see setup.sh --help\n' "$*" >&2
  exit 2
}

# run tells a command and runs it, unless this is a rehearsal.
run() {
  if [ "$dry_run" ]; then
    say "would run: $*"
  else
    say "running: $*"
    "$@"
  fi
}

# quoted prints a text so that a shell which reads it has it as one word.
quoted() {
  case $1 in
    '' | *[!A-Za-z0-9_./:@%+=,-]*) ;;
    *)
      printf '%s' "$1"
      return
      ;;
  esac
  rest=$1 text=
  while [ "$rest" != "${rest#*\'}" ]; do
    text=$text${rest%%\'*}"'\\''" rest=${rest#*\'}
  done
  printf "'%s'" "$text$rest"
}

# program prints where a program is on the PATH: a file, whatever else has the name.
program() {
  found=$(command -v "$1" 2>/dev/null) || return 1
  case $found in
    */*) [ -f "$found" ] && [ -x "$found" ] && printf '%s\n' "$found" ;;
    *) return 1 ;;
  esac
}

# writable says whether a folder can be written to, or made.
writable() {
  dir=$1
  while [ ! -e "$dir" ]; do dir=$(dirname "$dir"); done
  [ -d "$dir" ] && [ -w "$dir" ]
}

# find_host sets omp to where the host is, or to nothing, and off_path if a shell
# would not find it.
find_host() {
  omp=
  if [ "${OMP:-}" ]; then
    omp=$(program "$OMP") || die "\$OMP is $OMP, which is no program; correct it or unset it"
    return
  fi
  if omp=$(program omp); then return; fi
  for bin in "$HOME/.local/bin" "${BUN_INSTALL:-$HOME/.bun}/bin" ${npm:+"$npm_prefix/bin"}; do
    if [ -x "$bin/omp" ]; then
      omp=$bin/omp off_path=1
      return
    fi
  done
}

# plan_host decides who installs the host: manager, and target for npm's prefix
# where it has to be another one.
plan_host() {
  target=
  bun=$(program bun) || bun=
  npm_prefix=
  if npm=$(program npm); then
    # To ask with its cache leaves logs in the home folder.
    npm_prefix=$(npm_config_cache=/dev/null "$npm" prefix --global) ||
      die "$npm does not run; mend it first, or take it off the PATH"
  fi
  find_host
  if [ "$omp" ]; then
    say "omp is here: $omp"
  elif [ "$npm" ]; then
    manager=npm
    if ! writable "$npm_prefix/lib/node_modules" || ! writable "$npm_prefix/bin"; then target=$HOME/.local; fi
  elif [ "$bun" ]; then
    manager=bun
  else
    die "omp is not here, and neither npm nor bun to install it with; install Node.js (https://nodejs.org) or bun (https://bun.sh) and run this again, or leave out the host with --no-host"
  fi
}

# install_host sets omp to the new host. A bun that is there stays the bun.
install_host() {
  case $manager in
    npm)
      [ -z "$target" ] || say "npm's global prefix $npm_prefix cannot be written to; using $target"
      set -- "$npm" install --global --no-audit --no-fund --loglevel=error ${target:+--prefix "$target"}
      [ "$bun" ] || set -- "$@" --allow-scripts=bun "$bun_package" # bun's own script puts its binary in place
      run "$@" "$host_package" || die "npm did not install omp; its messages are above"
      omp=${target:-$npm_prefix}/bin/omp
      ;;
    bun)
      run "$bun" install --global "$host_package" || die "bun did not install omp; its messages are above"
      [ "$dry_run" ] || omp=$("$bun" pm bin --global)/omp
      ;;
  esac
}

# check_host proves that what was installed runs. Its folder goes first on the
# PATH, because omp looks for bun there.
check_host() {
  [ -x "$omp" ] || die "$manager said that it installed omp, but $omp is not there; look at its messages above"
  program omp >/dev/null || off_path=1
  PATH=$(dirname "$omp"):$PATH
  version=$("$omp" --version) || die "$omp was installed but does not run; it needs bun 1.3.14 or later on the PATH (bun upgrade)"
  say "omp is installed: $version at $omp"
}

# check_profile sets profile, if that is to say where the agent folder is. a2mcp
# refuses the same ones: they lead out of omp's folder.
check_profile() {
  profile=
  [ -z "$agent_dir" ] || return 0
  profile=${OMP_PROFILE-${PI_PROFILE-}}
  case $profile in
    default) profile= ;;
    .* | */* | *\\* | *:*) misused "the profile $profile is none of omp's; set OMP_PROFILE to the name alone, or give the folder with --agent-dir" ;;
  esac
}

# agent_folder is the rule of a2mcp, which is that of omp.
agent_folder() {
  root=$HOME/${PI_CONFIG_DIR:-.omp}
  if [ "$agent_dir" ]; then
    printf '%s\n' "$agent_dir"
  elif [ "$profile" ]; then
    printf '%s\n' "$root/profiles/$profile/agent"
  else
    printf '%s\n' "${PI_CODING_AGENT_DIR:-$root/agent}"
  fi
}

# write_placeholder is for a host that nobody can have configured yet. A file by
# one of the older names is a file of models too: omp would not see it beside ours.
write_placeholder() {
  agent=$(agent_folder)
  file=$agent/models.yml
  for other in "$file" "$agent/models.yaml" "$agent/models.json"; do
    if [ -e "$other" ] || [ -L "$other" ]; then
      say "models are configured already; left alone: $other"
      return
    fi
  done
  if [ "$dry_run" ]; then
    say "would write a placeholder model: $file"
    return
  fi
  # Private, and -C so that a file which appears meanwhile stays as it is.
  (umask 077 && mkdir -p "$agent" && set -C && placeholder >"$file") || die "$file could not be written; see above"
  say "wrote a placeholder model: $file"
}

placeholder() {
  cat <<'END'
# Lets omp start without a model; a prompt to this one fails. Delete it once you have another.
providers:
  a2mcp:
    baseUrl: http://a2mcp.invalid/v1
    api: anthropic-messages
    apiKey: not-a-real-key
    models:
      - id: offline
        name: no model (a2mcp)
        contextWindow: 100000
END
}

# plan_binary sets a2mcp to the binary, and checkout if it has to be built first.
plan_binary() {
  checkout=
  here=
  if [ -f "$0" ]; then here=$(cd "$(dirname "$0")" && pwd); fi # not so where a shell reads the script from a pipe
  if [ "$binary" ]; then
    a2mcp=$binary
    if [ ! -f "$a2mcp" ] || [ ! -x "$a2mcp" ]; then die "$a2mcp is no program; give the path of an a2mcp binary with --binary"; fi
  elif [ "$here" ] && [ -f "$here/a2mcp" ] && [ -x "$here/a2mcp" ]; then
    a2mcp=$here/a2mcp
  elif a2mcp=$(program a2mcp); then
    :
  elif [ "$here" ] && grep -qs '^module github.com/a2mcp/a2mcp$' "$here/../../go.mod"; then
    program go >/dev/null || die "there is no a2mcp, and no Go to build it with; install Go (https://go.dev/dl) or give a binary with --binary"
    checkout=$(cd "$here/../.." && pwd)
    a2mcp=$checkout/bin/a2mcp
    return
  else
    die "there is no a2mcp beside this script or on the PATH; give one with --binary, or run the script from a checkout"
  fi
  case $a2mcp in
    /*) ;;
    *) a2mcp=./$a2mcp ;; # a name alone would be looked for on the PATH
  esac
  say "a2mcp is here: $a2mcp"
}

build() {
  (cd "$checkout" && export CGO_ENABLED=0 && run go build -trimpath -ldflags '-s -w' -o bin/a2mcp ./cmd/a2mcp) ||
    die "Go did not build a2mcp; its messages are above"
}

next_steps() {
  if [ "$off_path" ]; then
    say "next: put omp on the PATH, in your shell's profile too: export PATH=$(quoted "$(dirname "$omp")"):\"\$PATH\""
  fi
  say "next: start omp${agent_dir:+ with PI_CODING_AGENT_DIR=$(quoted "$agent_dir")}; it loads the bridge by itself, and /a2mcp in it shows the address"
  say "next: while omp runs, this examines all of it: $(quoted "$a2mcp") doctor${agent_dir:+ --agent-dir $(quoted "$agent_dir")}"
}

binary='' agent_dir='' no_host='' dry_run='' manager='' omp='' off_path=''
while [ $# -gt 0 ]; do
  case $1 in
    --binary=?*) binary=${1#*=} ;;
    --agent-dir=?*) agent_dir=${1#*=} ;;
    --binary= | --agent-dir=) misused "${1%=} needs a value" ;;
    --binary | --agent-dir)
      case ${2:-} in
        '' | --*) misused "$1 needs a value" ;; # the next option is none
      esac
      if [ "$1" = --binary ]; then binary=$2; else agent_dir=$2; fi
      shift
      ;;
    --no-host) no_host=1 ;;
    --dry-run) dry_run=1 ;;
    --help | -h)
      usage
      exit 0
      ;;
    *) misused "$1 is not understood" ;;
  esac
  shift
done
[ "${HOME:-}" ] || die "HOME is not set; set it to your home folder"
check_profile

if [ "$no_host" ]; then say "omp is left out, as asked"; else plan_host; fi
plan_binary
if [ "$manager" ]; then
  install_host
  write_placeholder
  if [ -z "$dry_run" ]; then check_host; fi
fi
if [ "$checkout" ]; then build; fi
run "$a2mcp" install ${agent_dir:+--agent-dir "$agent_dir"}
next_steps
