package signin_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/signin"
	"github.com/sluice-queue/sluice/store/memory"
)

// FuzzSealedCookie sends cookies that nobody has sealed, and cookies sealed around any JSON. Only a session that names a
// person with a role, and lasts, lets anybody in.
func FuzzSealedCookie(f *testing.F) {
	config := signin.Provider{Issuer: "https://id.example.com", ClientID: "sluice", Roles: roles}
	h := signin.New(memory.New(memory.Options{}), signin.Options{Provider: &config})
	const ada = `{"issuer":"https://id.example.com","person":{"groups":["sluice-admins"]},"until":"9999-01-01T00:00:00Z"}`
	for _, text := range []string{
		ada, `{}`, `null`, `[]`, `{"secret":"x","until":"9999-01-01T00:00:00Z"}`, `{"until":7}`, `{"issuer":"https://id.example.com","person":{"groups":[null,""]}}`,
		`{"state":"a","nonce":"b","verifier":"c","next":"//evil.example","until":"9999-01-01T00:00:00Z"}`, `{"issuer":"https://id.example.com","until":"0001-01-01T00:00:00Z"}`,
	} {
		f.Add("session", text)
		f.Add("flow", text)
	}
	own := h.Seal("session", ada)
	f.Add("", own)
	f.Add("", own[:40])
	f.Add("", strings.Repeat("A", 9000))
	f.Fuzz(func(t *testing.T, purpose, text string) {
		value := text
		if purpose != "" {
			if !json.Valid([]byte(text)) {
				return // nobody seals it
			}
			value = h.Seal(purpose, text)
		}
		for _, path := range []string{"/login", "/login/callback?state=a"} {
			r := httptest.NewRequest(http.MethodGet, "https://jobs.example.com"+path, nil)
			for _, name := range []string{"__Host-sluice-session", "__Host-sluice-flow"} {
				r.AddCookie(&http.Cookie{Name: name, Value: value})
			}
			caller, err := h.Identify(r)
			switch {
			case err != nil && !errors.Is(err, access.ErrUnknown):
				t.Errorf("%q: %v", text, err)
			case err == nil && !admitted(purpose, text, own):
				t.Errorf("%q as %q lets in %+v", text, purpose, caller)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != http.StatusOK && w.Code != http.StatusBadRequest && w.Code != http.StatusForbidden && w.Code != http.StatusBadGateway {
				t.Errorf("%q: %s answers %d %s", text, path, w.Code, w.Body)
			}
		}
	})
}

// admitted reports whether a cookie lets somebody in by what it says.
func admitted(purpose, text, own string) bool {
	var s struct {
		Issuer string
		Person struct {
			Email, Subject string
			Groups         []string
		}
		Until time.Time
	}
	if purpose != "session" {
		return purpose == "" && strings.TrimRight(text, "=") == own
	}
	if json.Unmarshal([]byte(text), &s) != nil || s.Issuer != "https://id.example.com" || !s.Until.After(time.Now()) {
		return false
	}
	return s.Person.Email != "" || len(s.Person.Groups) > 0
}

// FuzzReadProvider: a file is a provider that keeps the rules, or an error. No error has the client's secret.
func FuzzReadProvider(f *testing.F) {
	const whole = "issuer: https://id.example.com\nclient_id: sluice\n"
	for _, text := range []string{
		"", whole, whole + "roles: [{group: a, role: admin}]\nclient_secret_file: secret\n", whole + "roles:\n  - {email: '*@example.com', role: viewer, queues: [mail.*], tenants: [acme]}\nclient_secret_file: secret\n",
		whole + "roles: [{group: a, role: king}]", whole + "roles: [", "issuer: [a]\n", "a: &a [*a]\n", "roles: {}\n", "client_secret: hunter2pw\n", "client_secret_file: .\n",
		"issuer: &x https://id.example.com\nclient_id: *x\nroles: [{email: a@b, role: worker}]\n", "--- a\n--- b\n", "issuer: 7\nscopes: [1, null]\n", "\x00", "issuer: http://[::1]\nclient_id: x\nroles: [{group: a, role: admin}]\n",
	} {
		f.Add(text)
	}
	folder := f.TempDir()
	path := filepath.Join(folder, "oidc.yaml")
	if err := os.WriteFile(filepath.Join(folder, "secret"), []byte("hunter2pw\n"), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "/dev/") {
			return // a file without an end
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		read, err := signin.ReadProvider(path)
		switch {
		case err == nil && (read.Check() != nil || len(read.Roles) == 0):
			t.Errorf("%q is the provider %+v: %v", text, read, read.Check())
		case err != nil && !strings.HasPrefix(err.Error(), path+": "):
			t.Errorf("%q: the error does not name the file: %v", text, err)
		case err != nil && strings.Contains(err.Error(), "hunter2pw"):
			t.Errorf("%q: the error has the secret: %v", text, err)
		}
	})
}
