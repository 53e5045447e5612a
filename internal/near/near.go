// Package near finds the names that a misspelt name may stand for, so that an error can suggest
// them.
//
// Begin with [Setting], which finds a setting or suggests three, and [Meant], which lists likely
// names. [Names] sorts any names by distance.
//
// Read next: the commands in package cmd/cli and the scenarios in package cmd/internal/sim, which use it.
package near

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-queue/sluice"
)

// Setting returns a setting by its name. For an unknown name, it returns a [sluice.ErrNotFound]
// with the nearest 3.
func Setting(name string) (sluice.Setting, error) {
	setting, err := sluice.SettingNamed(name)
	if err == nil {
		return setting, nil
	}
	var names []string
	for _, s := range sluice.AllSettings() {
		names = append(names, s.Name)
	}
	return setting, fmt.Errorf("setting %.60q: %w; the nearest are %s", name, sluice.ErrNotFound, strings.Join(Names(name, names, 3), ", "))
}

// Names returns the nearest names, up to most, the nearest first.
func Names(wrong string, names []string, most int) []string {
	sorted := slices.SortedFunc(slices.Values(names), func(a, b string) int {
		return cmp.Or(cmp.Compare(distance(wrong, a), distance(wrong, b)), cmp.Compare(a, b))
	})
	return sorted[:min(most, len(sorted))]
}

// Meant returns the names that a wrong name is likely to stand for, up to most. At most a third of
// the wrong name is misspelt, or it is a prefix.
func Meant(wrong string, names []string, most int) []string {
	likely := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		begins := len(wrong) > 1 && strings.HasPrefix(name, wrong)
		return !begins && distance(wrong, name) > (len(wrong)+2)/3
	})
	return Names(wrong, likely, most)
}

// distance counts the letters to add, drop or change, or neighbours to swap, to turn one word into
// the other.
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			change := row[j]
			if a[i] != b[j] {
				change++
			}
			next[j+1] = min(change, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
