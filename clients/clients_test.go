package clients_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/internal/certtest"
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
	encrypted := serveEncrypted(t, program)
	for store, on := range map[string]struct{ address, python string }{
		"sqlite":   {"sqlite:" + filepath.Join(t.TempDir(), "sluice.db"), clienttest.OldPython(t)},
		"postgres": {pgtest.NewDatabase(t), clienttest.Python(t, "unittest", "python3")},
	} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			env := append(clienttest.Serve(t, program, on.address, "--login"), encrypted...)
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

// serveEncrypted starts a server with a certificate of a private authority, which knows programs by theirs. It returns variables
// that name the server, its token, and a folder with certificates.
func serveEncrypted(t *testing.T, program string) []string {
	t.Helper()
	folder := t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	workers := certtest.New(t, file("workers.pem"))
	certtest.Write(t, file("cert.pem"), file("key.pem"), certtest.New(t, file("authority.pem")).Server(t, "127.0.0.1"))
	certtest.Write(t, file("eu-worker.pem"), file("eu-worker-key.pem"), workers.Client(t, "eu-worker"))
	certtest.Write(t, file("ended.pem"), file("ended-key.pem"), workers.ClientUntil(t, "eu-worker", time.Now().Add(-time.Hour)))
	certtest.Write(t, file("foreign.pem"), file("foreign-key.pem"), certtest.New(t, file("other.pem")).Client(t, "eu-worker"))
	env := clienttest.Serve(t, program, "sqlite:"+file("jobs.db"), "--tls-cert", file("cert.pem"), "--tls-key", file("key.pem"), "--tls-client-ca", file("workers.pem"), "--login")
	clienttest.Run(t, "", env, program, "tokens", "create", "eu-worker", "--role", "worker")
	guides, err := filepath.Abs("../docs/guide")
	if err != nil {
		t.Fatal(err)
	}
	return []string{"SLUICE_GUIDES=" + guides, "SLUICE_TLS_URL=https://" + addressOf(env), "SLUICE_TLS_TOKEN=" + clienttest.Value(env, "SLUICE_TOKEN"), "SLUICE_TLS_FOLDER=" + folder}
}
