#!/bin/sh
# Installs a release of kalypso, verified, without root: usage below.
#
# All is in functions, and the last line calls them: a script that was cut on its way
# does nothing.
set -eu

usage() {
	cat <<'TEXT'
usage: install.sh [VERSION]

Downloads a release of kalypso (such as v0.1.0; without VERSION the newest), verifies its
checksum, and where cosign is installed its signature, and puts the program into a folder.

  KALYPSO_INSTALL_DIR  the folder; ~/.local/bin if it is not set
  KALYPSO_DOWNLOADS    where releases are, for mirrors: a folder latest/download and one
                       download/VERSION for each, with what the release has
  KALYPSO_OS, KALYPSO_ARCH  what to install for; this machine if they are not set

Exit codes: 2 usage, 3 no release for this system, 4 a program is missing, 5 a download
failed, 6 a checksum or signature is not right, or the archive has a link, 7 the folder cannot
be written to, 8 the program does not run here. Nothing is installed but with 0.
TEXT
}

repository=https://github.com/kalypso-io/kalypso

say() { printf '%s\n' "install.sh: $*" >&2; }

fail() {
	code=$1
	shift
	say "$@"
	exit "$code"
}

has() { command -v "$1" >/dev/null 2>&1; }

# system sets os, arch, program and archive.
system() {
	os=${KALYPSO_OS:-$(uname -s)}
	arch=${KALYPSO_ARCH:-$(uname -m)}
	case $os in
	Linux | linux) os=linux ;;
	Darwin | darwin) os=darwin ;;
	MINGW* | MSYS* | CYGWIN* | Windows* | windows) os=windows ;;
	*) fail 3 "there is no release for the system $os; install from source: go install github.com/kalypso-io/kalypso/cmd/kalypso@latest" ;;
	esac
	case $arch in
	x86_64 | amd64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) fail 3 "there is no release for the processor $arch; install from source: go install github.com/kalypso-io/kalypso/cmd/kalypso@latest" ;;
	esac
	if [ "$os" = windows ]; then
		program=kalypso.exe archive=kalypso_${os}_$arch.zip
	else
		program=kalypso archive=kalypso_${os}_$arch.tar.gz
	fi
}

# programs looks for what is needed, and sets digest.
programs() {
	has curl || has wget || fail 4 "neither curl nor wget is installed: install one of them"
	if has sha256sum; then
		digest=sha256sum
	elif has shasum; then
		digest="shasum -a 256"
	else
		fail 4 "neither sha256sum nor shasum is installed, so that the download cannot be verified: install one of them"
	fi
	if [ "$os" = windows ]; then
		has unzip || fail 4 "unzip is not installed"
	else
		{ has tar && has gzip; } || fail 4 "tar and gzip are needed, and not both are installed"
	fi
}

# fetch downloads a file of the release into the folder for parts. What begins with https
# does not go on without it.
fetch() {
	if has curl; then
		case $address in
		https:*) curl -fsSL --retry 3 --proto '=https' -o "$parts/$1" "$address/$1" ;;
		*) curl -fsSL --retry 3 -o "$parts/$1" "$address/$1" ;;
		esac
	else
		wget -q -t 3 -O "$parts/$1" "$address/$1"
	fi || fail 5 "$address/$1 cannot be downloaded: is ${version:-the newest} a release, and can this machine connect?"
}

# signature verifies who made checksums.txt.
signature() {
	if ! has cosign; then
		say "cosign is not installed: the checksum is verified, and not who made it"
		return
	fi
	fetch checksums.txt.sigstore.json
	tag='v.*'
	[ -z "$version" ] || tag=$(printf '%s' "$version" | sed 's/[.+]/\\&/g')
	cosign verify-blob --bundle "$parts/checksums.txt.sigstore.json" \
		--certificate-identity-regexp "^$repository/\\.github/workflows/release\\.yaml@refs/tags/$tag\$" \
		--certificate-oidc-issuer https://token.actions.githubusercontent.com \
		"$parts/checksums.txt" >"$parts/cosign" 2>&1 ||
		fail 6 "the signature of $address/checksums.txt is not right: $(cat "$parts/cosign")"
}

# verify compares the archive with the checksums.
verify() {
	want=$(awk -v name="$archive" '$2 == name || $2 == "*" name {print $1}' "$parts/checksums.txt")
	[ -n "$want" ] || fail 3 "${version:-the newest release} has no $archive"
	fetch "$archive"
	got=$($digest <"$parts/$archive")
	got=${got%% *}
	[ "$got" = "$want" ] || fail 6 "$address/$archive has the checksum $got, and is to have $want: the download was cut, or is not what was released"
}

# links refuses an archive with anything but files and folders: no release has a link, which
# could lead out of the folder. What lists archives of Windows may not be there; unpack follows
# no link in any case.
links() {
	if [ "$os" = windows ]; then
		listed=$(unzip -Z "$parts/$archive" 2>/dev/null | awk '/^l/')
	else
		listed=$(LC_ALL=C tar -tvzf "$parts/$archive" 2>/dev/null) || fail 6 "$archive cannot be unpacked"
		listed=$(printf '%s\n' "$listed" | awk '/^[^-d]/ || / -> / || / link to /')
	fi
	[ -z "$listed" ] || fail 6 "$archive has a link, which no release has: $listed"
}

# unpack writes the program alone, as a new file.
unpack() {
	if [ "$os" = windows ]; then
		unzip -p "$parts/$archive" "$program"
	else
		tar -xzOf "$parts/$archive" "$program"
	fi >"$parts/$program" || fail 6 "$archive cannot be unpacked"
	[ -s "$parts/$program" ] || fail 6 "$archive has no $program"
}

# place puts the program into the folder, by a rename, so that it is there whole or not at all.
place() {
	chmod 755 "$parts/$program"
	if [ -z "${KALYPSO_OS:-}${KALYPSO_ARCH:-}" ]; then
		said=$("$parts/$program" version 2>&1) || fail 8 "the program does not run here: $said"
		said=$(printf '%s\n' "$said" | awk '$1 == "kalypso" {print $2; exit}')
		[ -z "$version" ] || [ "$said" = "$version" ] || fail 6 "$address has kalypso $said, and not $version"
	fi
	[ ! -d "$folder/$program" ] || fail 7 "$folder/$program is a folder"
	mv -f "$parts/$program" "$folder/$program" || fail 7 "$folder/$program cannot be replaced"
	say "installed kalypso ${said:-$version for $os on $arch} as $folder/$program"
	case :$PATH: in
	*:"$folder":*) ;;
	*) say "$folder is not in PATH; add it: export PATH=\"$folder:\$PATH\"" ;;
	esac
}

main() {
	case ${1:-} in
	-h | --help)
		usage
		exit
		;;
	esac
	version=${1:-} said=
	case $version in
	'' | latest) version= ;;
	v[0-9]*) ;;
	[0-9]*) version=v$version ;;
	*) fail 2 "$version is not a version such as v0.1.0" ;;
	esac
	case $version in *[!0-9A-Za-z.+-]*) fail 2 "$version is not a version such as v0.1.0" ;; esac
	[ $# -le 1 ] || fail 2 "one version, and not $#: install.sh --help"
	address=${KALYPSO_DOWNLOADS:-$repository/releases}
	if [ -n "$version" ]; then
		address=${address%/}/download/$version
	else
		address=${address%/}/latest/download
	fi
	folder=${KALYPSO_INSTALL_DIR:-${HOME:+$HOME/.local/bin}}
	[ -n "$folder" ] || fail 2 "neither KALYPSO_INSTALL_DIR nor HOME is set: where to?"
	system
	programs
	{ mkdir -p "$folder" && folder=$(cd "$folder" && pwd) && parts=$(mktemp -d "$folder/.kalypso.XXXXXX"); } ||
		fail 7 "$folder cannot be written to: set KALYPSO_INSTALL_DIR to a folder that can"
	trap 'rm -rf "$parts"' EXIT
	trap 'exit 130' HUP INT TERM
	fetch checksums.txt
	signature
	verify
	links
	unpack
	place
}

main "$@"
