//go:build unix

package cli_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/internal/oidctest"
)

// oidcFile writes the guide's file for --oidc, with the issuer replaced, and returns its path.
func oidcFile(t *testing.T, issuer string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"oidc-secret": oidctest.Secret,
		"oidc.yaml":   strings.Replace(guideFile(t), "https://id.example.com/realms/staff", issuer, 1),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(folder, "oidc.yaml")
}

// guideFile returns the file for --oidc that the guide shows.
func guideFile(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/guide/secure.md")
	if err != nil {
		t.Fatal(err)
	}
	_, file, found := strings.Cut(string(text), "```yaml\n")
	if !found {
		t.Fatal("the guide shows no file of --oidc")
	}
	file, _, _ = strings.Cut(file, "```")
	return file
}

// TestServeLetsPeopleSignIn signs a person in at one server. Another server with the same key accepts the session.
func TestServeLetsPeopleSignIn(t *testing.T) {
	t.Parallel()
	provider := oidctest.Start(t, oidctest.Person{ID: "ada", Email: "ada@example.com", EmailVerified: true, Groups: []string{"shop"}})
	config := oidcFile(t, provider.Issuer)
	db := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
	run(t, db, "migrate")
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 48)), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, db, "serve", "--listen", "127.0.0.1:0", "--base", "/sluice", "--oidc", config, "--session-key-file", key)
	url := "http://" + s.finds(t, `address=(\S+) answers=.* login="tokens, `+provider.Issuer+`"`)
	s.says(t, "server started")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	get := func(at string) (int, string, string) {
		response, err := browser.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, response.Header.Get("Location"), string(text)
	}
	if status, _, text := get(url + "/api/v1/jobs"); status != http.StatusUnauthorized {
		t.Errorf("before: %d %s", status, text)
	}
	if status, to, text := get(url + "/jobs?q=state:dead"); status != http.StatusSeeOther || to != "/sluice/login?next=%2Fsluice%2Fjobs%3Fq%3Dstate%3Adead" {
		t.Errorf("the console before: %d %s %s", status, to, text)
	}
	_, away, _ := get(url + "/login/oidc?next=%2Fsluice%2Fjobs%3Fq%3Dstate%3Adead")
	back, err := provider.Answer(t.Context(), away, "ada")
	if err != nil {
		t.Fatal(err)
	}
	if status, to, text := get(back); status != http.StatusSeeOther || to != "/sluice/jobs?q=state:dead" {
		t.Fatalf("the sign-in got %d to %q, want %d to /sluice/jobs?q=state:dead: %s", status, to, http.StatusSeeOther, text)
	}
	if _, _, text := get(url + "/api/v1/whoami"); !strings.Contains(text, `"name":"ada@example.com","by":"ada@example.com","role":"operator","queues":["shop.*"]`) {
		t.Errorf("the API says %s", text)
	}
	if status, _, text := get(url + "/"); status != http.StatusOK || !strings.Contains(text, "ada@example.com") {
		t.Errorf("the console: %d %s", status, text)
	}
	_, _, settings := get(url + "/settings")
	for _, want := range []string{"<dt>Role</dt><dd>operator</dd>", "<dt>Queues</dt><dd>shop.* </dd>", "a session, which ends at <time", "tokens, " + provider.Issuer, "this machine alone can connect"} {
		if !strings.Contains(settings, want) {
			t.Errorf("the page Settings lacks %q", want)
		}
	}
	if strings.Contains(settings, oidctest.Secret) {
		t.Error("the page Settings shows the secret of the provider")
	}
	s.interrupt(t)
	if rest := s.ends(t, 0); !strings.Contains(rest, `msg="signed in" by=ada@example.com role=operator`) || strings.Contains(rest, "sessions end with the process") {
		t.Errorf("it says\n%s", rest)
	}
	again := start(t, db, "serve", "--listen", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/sluice"), "--base", "/sluice", "--oidc", config, "--session-key-file", key)
	again.says(t, "server started")
	if status, _, text := get(url + "/api/v1/jobs"); status != http.StatusOK {
		t.Errorf("at another server: %d %s", status, text)
	}
	again.interrupt(t)
	again.ends(t, 0)
}

func TestServeRefusesSignInsThatCannotWork(t *testing.T) {
	t.Parallel()
	db := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
	run(t, db, "migrate")
	wrong := filepath.Join(t.TempDir(), "wrong")
	if err := os.WriteFile(wrong, []byte("issuer: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for flags, want := range map[string]string{
		"--oidc " + wrong:             "--oidc: " + wrong + ": issuer:",
		"--oidc none.yaml":            "--oidc: open none.yaml",
		"--session-key-file " + wrong: "--session-key-file: " + wrong + ": key 1 has 9 characters",
		"--session-key-file none":     "--session-key-file: open none",
		"--session-lifetime 0s":       "--session-lifetime",
	} {
		p := start(t, db, append([]string{"serve", "--listen", "127.0.0.1:0"}, strings.Fields(flags)...)...)
		if rest := p.ends(t, 2); !strings.Contains(rest, want) {
			t.Errorf("%s: it says\n%s", flags, rest)
		}
	}
	s := start(t, db, "serve", "--listen", "127.0.0.1:0")
	url := "http://" + s.answersAt(t)
	s.says(t, "server started")
	if status, text := ask(t, url+"/login"); status != http.StatusNotFound {
		t.Errorf("nobody needs to sign in: %d %s", status, text)
	}
	s.interrupt(t)
	s.ends(t, 0)
	run(t, db, "tokens", "create", "ci", "--role", "viewer")
	s = start(t, db, "serve", "--listen", "127.0.0.1:0", "--login")
	url = "http://" + s.answersAt(t)
	s.says(t, "sessions end with the process")
	s.says(t, "server started")
	if status, text := ask(t, url+"/login"); status != http.StatusOK || !strings.Contains(text, "API token") || strings.Contains(text, "oidc") {
		t.Errorf("the login page is %d %s, want 200 with an API token alone", status, text)
	}
	s.interrupt(t)
	s.ends(t, 0)
}
