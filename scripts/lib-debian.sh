# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Downloads from Debian's archive with lists and settings of our own: the
# host's apt is only asked which mirror it uses. Source lib.sh first.

debian_key=/usr/share/keyrings/debian-archive-keyring.gpg

# debian_find_mirror: what the host's apt calls Debian, in whatever form its
# sources are written; proxies and credentials stay apt's business
debian_find_mirror() {
    # shellcheck disable=SC2016 # apt expands it
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
        'Origin: Debian' 'Label: Debian' 2>/dev/null | sort -u | head -n 1
}

# debian_mirror: print the mirror's address; DEBIAN_MIRROR overrides it
debian_mirror() {
    deb_mirror=${DEBIAN_MIRROR:-$(debian_find_mirror)}
    if [ -z "$deb_mirror" ]; then
        # No index on this machine yet. Only root may make one.
        apt-get -q update >&2 || :
        deb_mirror=$(debian_find_mirror)
    fi
    [ -n "$deb_mirror" ] ||
        die_env "no Debian mirror in apt's sources: set DEBIAN_MIRROR"
    printf '%s\n' "$deb_mirror"
}

# debian_apt_init DIR SUITE: set up and update a private apt below DIR, after
# which debian_apt ARGS... works on it
debian_apt_init() {
    deb_dir=$1
    [ -f "$debian_key" ] ||
        die_env "$debian_key is missing (run ./erdma deps)"
    deb_mirror=$(debian_mirror)
    mkdir -p -- "$deb_dir/lists/partial" "$deb_dir/cache/archives/partial"
    printf '%s [signed-by=%s] %s %s main\n' \
        deb "$debian_key" "$deb_mirror" "$2" \
        deb-src "$debian_key" "$deb_mirror" "$2" >"$deb_dir/sources.list"
    cat >"$deb_dir/apt.conf" <<END
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Dir::Etc::sourcelist "$deb_dir/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State::lists "$deb_dir/lists";
Dir::Cache "$deb_dir/cache";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::Retries "3";
END
    debian_apt update ||
        die_env "cannot reach the Debian mirror (no network?)"
}

# Read after the host's own settings, so that proxies stay in force.
debian_apt() {
    apt-get -q -c "$deb_dir/apt.conf" "$@"
}
