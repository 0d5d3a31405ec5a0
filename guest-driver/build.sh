#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds the kernel side of a guest: Debian's kernel of one series, the
# modules a guest may need from it, and erdma.ko and siw.ko made from the
# unmodified sources in Debian's linux-source package.
#
# All work is done in a throw-away Debian root; nothing of the host's
# compiler or kernel takes part.  The result is one directory:
#
#   vmlinux            uncompressed kernel, for -kernel (PVH entry)
#   modules.cpio.zst   initramfs part with /usr/lib/modules/VERSION
#   addon-*.cpio.zst   more modules, those of addons/*.list
#   version            the kernel's full version
#   config             the kernel's configuration
#   sources.sha256     checksums of the driver sources that were compiled
#   src/               those sources (drivers/infiniband/{hw/erdma,sw/siw})
#   build.log          the compiler's and modinfo's output

set -eu

usage()
{
    cat <<EOT
usage: build.sh --series S --out DIR [--mirror URL] [--jobs N]
  --series S    kernel series: 6.1 (bookworm), 6.12 (trixie), 7 or 7.N
                (the newest 7.x in trixie-backports)
  --out DIR     new directory for the result
  --mirror URL  Debian mirror (default: DEBIAN_MIRROR, or apt's own)
EOT
}

die()
{
    echo "guest-driver: $*" >&2
    exit 1
}

series= out= mirror=${DEBIAN_MIRROR:-} jobs=$(nproc)
while [ $# -gt 0 ]; do
    case $1 in
    --series) series=${2:-}; shift 2 || die "--series needs a value" ;;
    --out) out=${2:-}; shift 2 || die "--out needs a value" ;;
    --mirror) mirror=${2:-}; shift 2 || die "--mirror needs a value" ;;
    --jobs) jobs=${2:-}; shift 2 || die "--jobs needs a value" ;;
    -h | --help) usage; exit 0 ;;
    *) die "unknown option '$1'" ;;
    esac
done
[ -n "$series" ] && [ -n "$out" ] || { usage >&2; exit 2; }
command -v mmdebstrap > /dev/null || die "mmdebstrap is not installed"

here=$(cd "$(dirname "$0")" && pwd)
if [ -z "$mirror" ]; then
    # shellcheck disable=SC2016
    mirror=$(apt-get indextargets --format '$(REPO_URI)' \
        'Created-By: Packages' 'Origin: Debian' 'Label: Debian' \
        2> /dev/null | sort -u | head -n 1)
fi
[ -n "$mirror" ] || die "no Debian mirror in apt's sources: set DEBIAN_MIRROR"

# The headers of a kernel ask for the compiler of its own suite.
case $series in
6.1) suite=bookworm; gcc=gcc-12; pool=bookworm; libs=libelf1,libssl3 ;;
6.12) suite=trixie; gcc=gcc-14; pool=trixie; libs=libelf1t64,libssl3t64 ;;
7 | 7.*) suite=trixie; gcc=gcc-14; pool=trixie-backports
         libs=libelf1t64,libssl3t64 ;;
*) die "kernel series '$series' is not known (6.1, 6.12, 7)" ;;
esac
pahole=pahole
[ "$suite" != bookworm ] || pahole=dwarves

set -- "deb $mirror $suite main"
[ "$pool" = "$suite" ] || set -- "$@" "deb $mirror $pool main"

mkdir -p "$out"
out=$(cd "$out" && pwd)
export ERDMA_SERIES="$series" ERDMA_JOBS="$jobs"
mmdebstrap --quiet --variant=extract \
    --aptopt='Apt::Install-Recommends "false"' \
    --aptopt='Acquire::Languages "none"' \
    --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --include="$gcc,make,kmod,xz-utils,zstd,cpio,dpkg,diffutils,$pahole,$libs" \
    --include=mawk,sed,grep,findutils,tar,bash,dash,coreutils,libc-bin \
    --extract-hook="$here/fetch-hook.sh \"\$1\"" \
    --extract-hook="upload $here/chroot-build.sh /chroot-build.sh" \
    --extract-hook="upload $here/modules.list /modules.list" \
    --extract-hook="copy-in $here/addons /" \
    --extract-hook="chroot \"\$1\" /bin/sh /chroot-build.sh" \
    --extract-hook="sync-out /out $out" \
    "$suite" /dev/null "$@" > "$out/build.log" 2>&1 ||
    { tail -n 15 "$out/build.log" >&2; die "failed, see $out/build.log"; }

for f in vmlinux modules.cpio.zst version sources.sha256; do
    [ -s "$out/$f" ] || die "$f was not made, see $out/build.log"
done
