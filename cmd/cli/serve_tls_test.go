//go:build unix

package cli_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/internal/certtest"
)

// certified sends a request, with a certificate unless it is nil. 0: the server closed the connection.
func certified(t *testing.T, method, url string, certificate *tls.Certificate, header ...string) (int, string) {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true} // the server is the test's own
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: config, ForceAttemptHTTP2: true}}
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(`{"worker":"w","queues":["mail.a"]}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(text)
}

// TestServeKnowsProgramsByTheirCertificates: the common name of a certificate names a token. The token's role and
// bounds count, and an admin can revoke it. The authority can change while the server runs.
func TestServeKnowsProgramsByTheirCertificates(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	db := "sqlite:" + filepath.Join(folder, "jobs.db")
	run(t, db, "migrate")
	secret := regexp.MustCompile(`sluice_\S+`).FindString(run(t, db, "tokens", "create", "eu-worker", "--role", "worker", "--queue", "mail.*"))
	newCertificate(t, folder)
	ca := filepath.Join(folder, "workers.pem")
	authority := certtest.New(t, ca)
	s := start(t, db, "serve", "--listen", "127.0.0.1:0", "--tls-cert", filepath.Join(folder, "cert.pem"), "--tls-key", filepath.Join(folder, "key.pem"), "--tls-client-ca", ca)
	url := "https://" + s.finds(t, `address=(\S+) answers=.* login="tokens, certificates"`) + "/api/v1"
	s.says(t, "server started")

	worker := authority.Client(t, "eu-worker")
	if status, text := certified(t, "GET", url+"/whoami", &worker); status != http.StatusOK || !strings.Contains(text, `"name":"token eu-worker","by":"token eu-worker","role":"worker","queues":["mail.*"]`) {
		t.Errorf("the worker: %d %s", status, text)
	}
	if status, text := certified(t, "POST", url+"/work/claim", &worker); status != http.StatusOK {
		t.Errorf("a claim: %d %s", status, text)
	}
	if status, text := certified(t, "GET", url+"/tokens", &worker); status != http.StatusForbidden {
		t.Errorf("more than its role: %d %s", status, text)
	}
	if status, _ := certified(t, "GET", url+"/whoami", nil); status != http.StatusUnauthorized {
		t.Errorf("without a certificate: %d", status)
	}
	if status, text := certified(t, "GET", url+"/whoami", nil, "Authorization", "Bearer "+secret); status != http.StatusOK {
		t.Errorf("with the token alone: %d %s", status, text)
	}
	if status, _ := certified(t, "GET", url+"/whoami", &worker, "Authorization", "Bearer wrong"); status != http.StatusUnauthorized {
		t.Errorf("with a wrong token too: %d", status)
	}
	for _, name := range []string{"unknown", "", "eu-worker ", "EU-WORKER", "*"} {
		other := authority.Client(t, name)
		if status, text := certified(t, "GET", url+"/whoami", &other); status != http.StatusUnauthorized || !strings.Contains(text, "the common name of the certificate is no token's name") {
			t.Errorf("the name %q: %d %s", name, status, text)
		}
	}
	foreign := certtest.New(t, filepath.Join(folder, "foreign.pem")).Client(t, "eu-worker")
	for what, form := range map[string]*x509.Certificate{
		"expired":      {Subject: pkix.Name{CommonName: "eu-worker"}, NotAfter: time.Now().Add(-time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
		"for a server": {Subject: pkix.Name{CommonName: "eu-worker"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}},
	} {
		made := authority.Sign(t, form)
		if status, text := certified(t, "GET", url+"/whoami", &made); status != 0 {
			t.Errorf("a certificate that is %s: %d %s", what, status, text)
		}
	}
	if status, text := certified(t, "GET", url+"/whoami", &foreign); status != 0 {
		t.Errorf("of another authority: %d %s", status, text)
	}
	becomes := func(want int, why string, certificate *tls.Certificate) {
		t.Helper()
		for until := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			status, text := certified(t, "GET", url+"/whoami", certificate)
			if status == want {
				return
			}
			if time.Now().After(until) {
				t.Fatalf("%s: got %d, want %d: %s", why, status, want, text)
			}
		}
	}
	second := certtest.New(t, ca)
	newWorker := second.Client(t, "eu-worker")
	becomes(http.StatusOK, "the authority changes", &newWorker)
	becomes(0, "the old authority ends", &worker)
	run(t, db, "tokens", "revoke", "eu-worker")
	becomes(http.StatusUnauthorized, "the token is revoked", &newWorker)
	s.interrupt(t)
	s.ends(t, 0)
}

// TestServeTakesTheCertificateOfCurl sends requests with curl, as the guide shows.
func TestServeTakesTheCertificateOfCurl(t *testing.T) {
	t.Parallel()
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Fatal("curl is missing; `make test` installs it")
	}
	folder := t.TempDir()
	db := "sqlite:" + filepath.Join(folder, "jobs.db")
	run(t, db, "migrate")
	run(t, db, "tokens", "create", "eu-worker", "--role", "worker")
	newCertificate(t, folder)
	a := certtest.New(t, filepath.Join(folder, "workers.pem"))
	certtest.Write(t, filepath.Join(folder, "eu-worker.pem"), filepath.Join(folder, "eu-worker-key.pem"), a.Client(t, "eu-worker"))
	s := start(t, db, "serve", "--listen", "127.0.0.1:0", "--tls-cert", filepath.Join(folder, "cert.pem"), "--tls-key", filepath.Join(folder, "key.pem"), "--tls-client-ca", filepath.Join(folder, "workers.pem"))
	url := "https://" + s.answersAt(t)
	s.says(t, "server started")
	cmd := exec.CommandContext(t.Context(), curl, "-sS", "--cacert", "authority.pem", "--cert", "eu-worker.pem", "--key", "eu-worker-key.pem", url+"/api/v1/whoami")
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), `"name":"token eu-worker"`) {
		t.Errorf("curl: %v\n%s", err, out)
	}
	s.interrupt(t)
	s.ends(t, 0)
	for flags, want := range map[string]string{
		"--tls-client-ca " + filepath.Join(folder, "workers.pem"):                                   "--tls-client-ca needs --tls-cert and --tls-key",
		"--tls-cert cert.pem --tls-key key.pem --tls-client-ca none":                                "--tls-client-ca: stat none",
		"--tls-cert cert.pem --tls-key key.pem --tls-client-ca " + filepath.Join(folder, "key.pem"): "has no certificate as PEM",
	} {
		for _, name := range []string{"cert.pem", "key.pem"} {
			flags = strings.Replace(flags, "-"+strings.TrimSuffix(name, ".pem")+" "+name, "-"+strings.TrimSuffix(name, ".pem")+" "+filepath.Join(folder, name), 1)
		}
		p := start(t, db, append([]string{"serve", "--listen", "127.0.0.1:0"}, strings.Fields(flags)...)...)
		if rest := p.ends(t, 2); !strings.Contains(rest, want) {
			t.Errorf("%s: it says\n%s", flags, rest)
		}
	}
}
