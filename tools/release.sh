#!/bin/sh
# Makes a release: one commit in which the three modules require each other at VERSION, and a tag for each. Pushes nothing.
#
#   tools/release.sh v1.2.3
set -eu
version=${1:?usage: tools/release.sh vX.Y.Z}
cd "$(dirname "$0")/.."
root=github.com/sluice-queue/sluice
if [ -n "$(git status --porcelain)" ]; then
	echo "release: the tree has changes; commit or undo them first" >&2
	exit 1
fi
old=$(sed -n "s|^\t$root \(v[^ ]*\) => \.$|\1|p" go.work)
[ -n "$old" ] || { echo "release: go.work does not say at which version the modules require each other" >&2; exit 1; }
(cd engine/temporal && go mod edit -require="$root@$version")
(cd cmd && go mod edit -require="$root@$version" -require="$root/engine/temporal@$version")
go work edit -dropreplace="$root@$old" -dropreplace="$root/engine/temporal@$old" \
	-replace="$root@$version=." -replace="$root/engine/temporal@$version=./engine/temporal"
git commit --quiet --all --message="release: $version"
for part in "" cmd/ engine/temporal/; do
	git tag --annotate --message="Sluice $version" "$part$version"
done
echo "tagged $version, cmd/$version and engine/temporal/$version; push with: git push --follow-tags"
