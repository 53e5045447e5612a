package clients_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sluice-queue/sluice/internal/clienttest"
)

// prepareTypeScript builds the package and its tests, and returns the function that runs the tests.
func prepareTypeScript(t *testing.T) func(t *testing.T, env []string) {
	t.Helper()
	path := clienttest.Node(t)
	folder := clienttest.TypeScript(t, path)
	clienttest.Run(t, folder, append(os.Environ(), "PATH="+path), "npx", "tsc", "-p", "test")
	if err := os.RemoveAll(filepath.Join(folder, "node_modules")); err != nil { // the package needs no modules to run
		t.Fatal(err)
	}
	return func(t *testing.T, env []string) {
		own := t.TempDir() // the tests write files beside the package
		if err := os.CopyFS(own, os.DirFS(folder)); err != nil {
			t.Fatal(err)
		}
		tests, err := filepath.Glob(filepath.Join(own, "build", "test", "*.test.js"))
		if err != nil || len(tests) < 5 {
			t.Fatalf("%d tests, %v", len(tests), err)
		}
		env = append(slices.Clone(env), "PATH="+path) // the last PATH counts
		clienttest.Run(t, own, env, "node", append([]string{"--test", "--test-concurrency=3"}, tests...)...)
	}
}
