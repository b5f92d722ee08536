# shellcheck shell=sh
# Sourced by ./demo and ./test: makes sure that what the build (and the tests) need is there. What is missing is
# installed when that is possible without a question, or with sudo at a terminal; otherwise the exact command is shown.
#
#   . scripts/prerequisites.sh
#   prerequisites cc make cmake [bash git nginx haproxy caddy wget curl openssl nghttp h2load wrk promtool
#       apache2 chromium systemd-analyze pebble pebble-challtestsrv redis-server]

# Servers live in sbin, which ordinary users do not search.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export PATH

has() { command -v "$1" >/dev/null 2>&1; }

# Prints the name of the system's package manager.
package_manager() {
    for manager in apt-get dnf apk pacman zypper brew; do
        if has "$manager"; then
            echo "$manager"
            return
        fi
    done
}

# Prints the packages of manager $1 that bring command $2.
packages_for() {
    case "$1:$2" in
        apt-get:cc) echo gcc libc6-dev ;;
        dnf:cc | zypper:cc) echo gcc ;;
        apk:cc) echo gcc musl-dev ;;
        pacman:cc) echo gcc ;;
        brew:cc) echo ;; # comes with xcode-select --install
        brew:make) echo ;;
        # The program alone: the whole package starts a server.
        apt-get:apache2) echo apache2-bin ;;
        apk:httpd) echo apache2 apache2-proxy ;;
        pacman:httpd) echo apache ;;
        dnf:promtool) echo golang-github-prometheus ;;
        zypper:promtool) echo golang-github-prometheus-prometheus ;;
        *:promtool) echo prometheus ;;
        apt-get:nghttp | apt-get:h2load) echo nghttp2-client ;;
        *:nghttp | *:h2load) echo nghttp2 ;;
        *:systemd-analyze) echo systemd ;;
        *:pebble-challtestsrv) echo pebble ;;
        apt-get:redis-server) echo redis-server ;;
        # Where Valkey took its place, it has this name as well.
        *:redis-server) echo redis ;;
        dnf:shellcheck | zypper:shellcheck) echo ShellCheck ;;
        *) echo "$2" ;;
    esac
}

# Runs a command while no package may start a server: the tests need programs, and a Prometheus on port 9090 or an nginx
# on port 80 would be in the way of what this machine is for. (policy-rc.d: see invoke-rc.d(8). One that is there stays.)
without_servers() (
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        trap '$as_root rm -f "$policy"' EXIT
        trap 'exit 130' INT TERM
        printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null && $as_root chmod 755 "$policy"
    fi
    "$@"
)

# Runs the installation of packages; nothing asks.
install_with() {
    manager=$1
    shift
    as_root=
    if [ "$manager" != brew ] && [ "$(id -u)" -ne 0 ]; then
        as_root=sudo
    fi
    case $manager in
        apt-get)
            $as_root apt-get update -qq &&
                without_servers $as_root env DEBIAN_FRONTEND=noninteractive \
                    apt-get install -y -qq --no-install-recommends "$@" >/dev/null
            installed=$?
            # The packages would have these start with the machine.
            for server in prometheus caddy redis-server; do
                case " $* " in *" $server "*)
                    if [ -d /run/systemd/system ]; then
                        $as_root systemctl disable --quiet "$server.service" || true
                    fi ;;
                esac
            done
            return $installed
            ;;
        dnf) $as_root dnf install -y -q "$@" ;;
        apk) $as_root apk add --quiet --no-cache "$@" ;;
        pacman) $as_root pacman -Sy --noconfirm --needed --quiet "$@" ;;
        zypper) $as_root zypper --non-interactive --quiet install "$@" ;;
        brew) HOMEBREW_NO_AUTO_UPDATE=1 brew install --quiet "$@" ;;
    esac
}

# The command that install_with would run, for a person.
install_command() {
    manager=$1
    shift
    case $manager in
        apt-get) echo "sudo apt-get update && sudo apt-get install -y --no-install-recommends $*" ;;
        dnf) echo "sudo dnf install -y $*" ;;
        apk) echo "sudo apk add $*" ;;
        pacman) echo "sudo pacman -Sy --needed $*" ;;
        zypper) echo "sudo zypper install $*" ;;
        brew) echo "brew install $*" ;;
    esac
}

# Whether packages can be installed from here.
may_install() {
    [ "$1" = brew ] && return 0
    [ "$(id -u)" -eq 0 ] && return 0
    has sudo || return 1
    sudo -n true 2>/dev/null || [ -t 0 ]
}

require_cargo() {
    if ! has cargo && [ -x "${CARGO_HOME:-$HOME/.cargo}/bin/cargo" ]; then
        PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH
        export PATH
    fi
    if ! has cargo; then
        echo "Rust is missing. Install it and start again:" >&2
        echo "    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh" >&2
        exit 3
    fi
}

prerequisites() {
    require_cargo
    missing=
    for tool in "$@"; do
        has "$tool" || missing="$missing $tool"
    done
    [ -n "$missing" ] || return 0

    manager=$(package_manager)
    packages=
    for tool in $missing; do
        packages="$packages $(packages_for "$manager" "$tool")"
    done
    # Word splitting is wanted: a list of package names.
    # shellcheck disable=SC2086
    set -- $packages
    if [ -n "$manager" ] && [ $# -gt 0 ] && may_install "$manager"; then
        echo "installing:$missing" >&2
        install_with "$manager" "$@" || echo "the installation failed" >&2
    fi

    still=
    for tool in $missing; do
        has "$tool" || still="$still $tool"
    done
    [ -n "$still" ] || return 0
    echo "These commands are needed and missing:$still" >&2
    if [ -z "$manager" ]; then
        echo "Install them with your system's package manager and start again." >&2
    else
        [ $# -eq 0 ] || echo "Install them and start again:  $(install_command "$manager" "$@")" >&2
        [ "$manager" != brew ] || echo "The C compiler and make come with:  xcode-select --install" >&2
    fi
    exit 3
}
