//go:build unix

package cli_test

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/internal/certtest"
)

// newCertificate writes the certificate of a server on loopback, by an authority of its own, to cert.pem, key.pem and authority.pem.
func newCertificate(t *testing.T, folder string) certtest.Authority {
	t.Helper()
	a := certtest.New(t, filepath.Join(folder, "authority.pem"))
	certtest.Write(t, filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem"), a.Server(t, "127.0.0.1"))
	return a
}

// askTLS returns the status of a server whose certificate is of the authority. 0: it shows another one.
func askTLS(t *testing.T, url string, trusted certtest.Authority) int {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: trusted.Pool(), MinVersion: tls.VersionTLS12}}}
	response, err := client.Get(url)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func TestServeReadsAChangedCertificateAgain(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	db := "sqlite:" + filepath.Join(folder, "jobs.db")
	run(t, db, "migrate")
	run(t, db, "tokens", "create", "ci", "--role", "viewer")
	first := newCertificate(t, folder)
	cert := filepath.Join(folder, "cert.pem")
	s := start(t, db, "serve", "--listen", "0.0.0.0:0", "--tls-cert", cert, "--tls-key", filepath.Join(folder, "key.pem"))
	port := s.finds(t, `address=\S*?:(\d+) answers="/healthz, /readyz, /api/v1" login=tokens`)
	url := "https://127.0.0.1:" + port
	s.says(t, "server started")
	if got := askTLS(t, url+"/healthz", first); got != 200 {
		t.Errorf("healthz: %d", got)
	}
	if got := askTLS(t, url+"/api/v1/jobs", first); got != 401 {
		t.Errorf("without a token: %d, want 401", got)
	}
	if err := os.WriteFile(cert, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.untilAsked(t, "certificate not read", func() { askTLS(t, url+"/healthz", first) })
	if got := askTLS(t, url+"/healthz", first); got != 200 {
		t.Errorf("with a broken file: %d", got)
	}
	second := newCertificate(t, folder)
	for until := time.Now().Add(patience); askTLS(t, url+"/healthz", second) != 200; {
		if time.Now().After(until) {
			t.Fatal("the new certificate is not used")
		}
	}
	s.interrupt(t)
	s.ends(t, 0)
}

// untilAsked calls ask again and again until the process prints a text.
func (p *process) untilAsked(t *testing.T, text string, ask func()) {
	t.Helper()
	said := make(chan struct{})
	go func() {
		defer close(said)
		p.says(t, text)
	}()
	for {
		ask()
		select {
		case <-said:
			return
		default:
		}
	}
}

func TestServeStaysOnLoopbackUnlessSomethingEncrypts(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	db := "sqlite:" + filepath.Join(folder, "jobs.db")
	run(t, db, "migrate")
	for flags, want := range map[string]string{
		"--listen 0.0.0.0:0":                    "encrypt with --tls-cert and --tls-key",
		"--listen 0.0.0.0:0 --login":            "encrypt with --tls-cert and --tls-key",
		"--tls-cert cert.pem":                   "go together",
		"--tls-cert none --tls-key none":        "--tls-cert, --tls-key",
		"--tls-cert " + db[7:] + " --tls-key x": "--tls-cert, --tls-key",
	} {
		p := start(t, db, append([]string{"serve"}, strings.Fields(flags)...)...)
		if rest := p.ends(t, 2); !strings.Contains(rest, want) {
			t.Errorf("%s: it says\n%s", flags, rest)
		}
	}
	run(t, db, "tokens", "create", "ended", "--role", "viewer", "--expires-at", "2026-01-01T00:00:00Z")
	for _, flags := range []string{"--listen 0.0.0.0:0 --behind-proxy", "--listen 127.0.0.1:0 --login"} {
		p := start(t, db, append([]string{"serve"}, strings.Fields(flags)...)...)
		if rest := p.ends(t, 2); !strings.Contains(rest, "the store has none that works") || !strings.Contains(rest, "sluice tokens create NAME --role ROLE") {
			t.Errorf("%s without a token: it says\n%s", flags, rest)
		}
	}
	run(t, db, "tokens", "create", "ci", "--role", "viewer")
	for flag, want := range map[string]struct{ local, rebound int }{"": {200, 421}, "--login": {401, 421}, "--behind-proxy": {401, 401}} {
		s := serve(t, db, strings.Fields(flag)...)
		s.becomes(t, 200, "ready")
		if status, text := ask(t, s.url+"/api/v1/jobs"); status != want.local {
			t.Errorf("%q: %d %s, want %d", flag, status, text, want.local)
		}
		rebound, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/api/v1/jobs", nil)
		if err != nil {
			t.Fatal(err)
		}
		rebound.Host = "rebound.example"
		answer, err := http.DefaultClient.Do(rebound)
		if err != nil {
			t.Fatal(err)
		}
		if _ = answer.Body.Close(); answer.StatusCode != want.rebound {
			t.Errorf("%q, by a name of a foreign site: %d, want %d", flag, answer.StatusCode, want.rebound)
		}
		s.interrupt(t)
		s.ends(t, 0)
	}
}
