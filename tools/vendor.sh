#!/bin/sh
# Gets what the console uses of others, by npm, in the versions below: htmx with its extension for streams, and uPlot. Each file
# is as its authors published it; vendor.sums has the hashes, which a test compares.
set -eu
htmx=4.0.1
uplot=1.6.32

cd "$(dirname "$0")/../cmd/console"
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
(
	cd "$folder"
	npm pack --silent "htmx.org@$htmx" "uplot@$uplot" >packed
	tar -xzf "htmx.org-$htmx.tgz" && mv package htmx
	tar -xzf "uplot-$uplot.tgz" && mv package uplot
)
to=static/vendor
cp "$folder/htmx/dist/htmx.min.js" "$folder/htmx/dist/ext/hx-sse.min.js" "$to"
cp "$folder/htmx/LICENSE" "$to/htmx.LICENSE"
cp "$folder/uplot/dist/uPlot.iife.min.js" "$folder/uplot/dist/uPlot.min.css" "$to"
cp "$folder/uplot/LICENSE" "$to/uPlot.LICENSE"
{
	echo "# htmx.org $htmx, uplot $uplot; written by tools/vendor.sh"
	(cd "$to" && sha256sum -- *)
} >vendor.sums
