package clients_test

import (
	"path/filepath"
	"testing"

	"github.com/sluice-queue/sluice/internal/clienttest"
	"github.com/sluice-queue/sluice/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// clients maps each client to a function that prepares its tests. The tests then run in an environment that names a
// server.
var clients = map[string]func(t *testing.T) func(t *testing.T, env []string){"python": preparePython, "typescript": prepareTypeScript}

// TestClients runs the tests of each client against a server on SQLite, and against one on PostgreSQL.
func TestClients(t *testing.T) {
	t.Parallel()
	program := clienttest.Build(t)
	tests := make(map[string]func(t *testing.T, env []string))
	for client, prepare := range clients {
		tests[client] = prepare(t)
	}
	for store, address := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "sluice.db") },
		"postgres": func(t *testing.T) string { return pgtest.NewDatabase(t) },
	} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			env := clienttest.Serve(t, program, address(t), "--login")
			for client, test := range tests {
				t.Run(client, func(t *testing.T) {
					t.Parallel()
					test(t, env)
				})
			}
		})
	}
}
