#!/bin/sh
# release.sh [notes|sbom] - what a release consists of, into DIST (dist): wheel, source distribution, package for Debian, page for browsers, notes out of
# CHANGELOG.md, bill of materials (SPDX) and SHA256SUMS. The same commit gives the same bytes. With a word only that, to stdout.
set -e
out=${DIST:-dist}; version=$(sed -n 's/^VERSION := //p' Makefile)
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || echo 0)}"
notes() { # the section of that version, else the one at the top
	head=$(grep -E "^## $version( |$)" CHANGELOG.md || grep -m 1 '^## ' CHANGELOG.md)
	printf '# vramcast %s\n' "$version"
	awk -v head="$head" '/^## / { on = $0 == head; next } on' CHANGELOG.md
}
sbom() {
	zstd=$(sed -nE 's/^#define ZSTD_VERSION_(MAJOR|MINOR|RELEASE) +([0-9]+).*/\2/p' /usr/include/zstd.h 2> /dev/null | paste -sd.)
	zlib=$(sed -nE 's/^#define ZLIB_VERSION "(.*)"/\1/p' /usr/include/zlib.h 2> /dev/null)
	package() { printf '{"SPDXID":"SPDXRef-%s","name":"%s","versionInfo":"%s","licenseDeclared":"%s","downloadLocation":"NOASSERTION","filesAnalyzed":false}' "$1" "$1" "$2" "$3"; }
	printf '{"spdxVersion":"SPDX-2.3","dataLicense":"CC0-1.0","SPDXID":"SPDXRef-DOCUMENT","name":"vramcast-%s","documentNamespace":"urn:vramcast:%s",' "$version" "$version"
	printf '"creationInfo":{"created":"%s","creators":["Tool: vramcast scripts/release.sh"]},"packages":[' "$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)"
	package vramcast "$version" Apache-2.0; printf ,; package zstd "${zstd:-NOASSERTION}" BSD-3-Clause; printf ,; package zlib "${zlib:-NOASSERTION}" Zlib
	printf '],"relationships":[{"spdxElementId":"SPDXRef-DOCUMENT","relationshipType":"DESCRIBES","relatedSpdxElement":"SPDXRef-vramcast"}'
	for part in zstd zlib; do printf ',{"spdxElementId":"SPDXRef-vramcast","relationshipType":"STATIC_LINK","relatedSpdxElement":"SPDXRef-%s"}' $part; done
	printf ']}\n'
}
case $1 in notes|sbom) "$1"; exit ;; esac
rm -rf "$out"; mkdir -p "$out"
make -s wheel DIST="$out" DEPS=skip
make -s deb DIST="$out" DEPS=skip
if command -v emcc > /dev/null; then make -s page DIST="$out" DEPS=skip; else echo "release.sh: no page for browsers, for want of Emscripten" >&2; fi
notes > "$out/NOTES.md"; sbom > "$out/vramcast-$version.spdx.json"
(cd "$out" && sha256sum -- * > SHA256SUMS && cat SHA256SUMS)
