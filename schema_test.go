package sluice_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestStoresCountTheSameSchemaSteps checks that jobs can move between the stores, because a move needs the same step on
// both sides.
func TestStoresCountTheSameSchemaSteps(t *testing.T) {
	t.Parallel()
	steps := func(store string) []string {
		paths, err := fs.Glob(os.DirFS(filepath.Join("store", store, "schema")), "*.sql")
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s has no steps: %v", store, err)
		}
		return paths
	}
	if a, b := steps("postgres"), steps("sqlite"); !slices.Equal(a, b) {
		t.Errorf("the schema steps differ: postgres %q, sqlite %q", a, b)
	}
}
