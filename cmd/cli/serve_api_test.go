//go:build unix

package cli_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// newCertificate writes a certificate for 127.0.0.1 into a folder, and returns it.
func newCertificate(t *testing.T, folder string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "server"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// askTLS returns the status of a server that shows the trusted certificate. 0: it shows another one.
func askTLS(t *testing.T, url string, trusted *x509.Certificate) int {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(trusted)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
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
