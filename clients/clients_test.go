package clients_test

import (
	"path/filepath"
	"testing"

	"github.com/sluice-queue/sluice/internal/clienttest"
	"github.com/sluice-queue/sluice/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestClients runs the tests of each client against a server on SQLite, and against one on PostgreSQL. One of them has an older
// Python.
func TestClients(t *testing.T) {
	t.Parallel()
	program := clienttest.Build(t)
	typescript := prepareTypeScript(t)
	for store, on := range map[string]struct{ address, python string }{
		"sqlite":   {"sqlite:" + filepath.Join(t.TempDir(), "sluice.db"), clienttest.OldPython(t)},
		"postgres": {pgtest.NewDatabase(t), clienttest.Python(t, "unittest", "python3")},
	} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			env := clienttest.Serve(t, program, on.address, "--login")
			t.Run("python", func(t *testing.T) {
				t.Parallel()
				testPython(t, env, on.python)
			})
			t.Run("typescript", func(t *testing.T) {
				t.Parallel()
				typescript(t, env)
			})
		})
	}
}
