package signin_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/cmd/signin"
	"github.com/sluice-queue/sluice/store/memory"
)

func TestPersonSignsInByATokenAndOut(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "/jobs/sluice"} {
		s := serve(t, memory.New(memory.Options{}), signin.Options{Base: base, Home: "/"})
		secret := token(t, s.store, access.Token{Name: "ada", Role: access.RoleOperator, Bounds: access.Bounds{Queues: []string{"mail.*"}}})
		b := newBrowser(t)
		if got := b.whoami(s); got.Status != http.StatusUnauthorized {
			t.Errorf("before: %+v", got)
		}
		page := b.ask("GET", s.url+"/login?next="+base+"/queues?q=a", nil)
		for _, want := range []string{`<html lang="en">`, `<label for="token">`, `value="` + base + `/queues?q=a"`, `action="` + base + `/login"`, `href="` + base + `/login/style.css"`} {
			if page.status != http.StatusOK || !strings.Contains(page.text, want) {
				t.Errorf("%d, without %s:\n%s", page.status, want, page.text)
			}
		}
		if policy := page.header.Get("Content-Security-Policy"); strings.Contains(policy, "unsafe") || !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("the policy is %q", policy)
		}
		if got := b.ask("GET", s.url+"/login/style.css", nil); got.status != http.StatusOK || !strings.Contains(got.header.Get("Content-Type"), "text/css") {
			t.Errorf("the style: %d %s", got.status, got.header)
		}
		in := b.loginByToken(s, secret, base+"/queues?q=a")
		if in.status != http.StatusSeeOther || in.to != base+"/queues?q=a" {
			t.Fatalf("%d to %q: %s", in.status, in.to, in.text)
		}
		cookie := in.header.Get("Set-Cookie")
		if !strings.HasPrefix(cookie, "__Host-sluice-session") || strings.Contains(cookie, secret) {
			t.Errorf("the cookie is %s", cookie)
		}
		for _, want := range []string{"; Secure", "; HttpOnly", "; SameSite=Lax", "; Path=/", "; Max-Age=43200"} {
			if !strings.Contains(cookie, want) {
				t.Errorf("the cookie is without %s: %s", want, cookie)
			}
		}
		if got := b.whoami(s); got.Status != http.StatusOK || got.Name != "token ada" || got.Role != "operator" || len(got.Queues) != 1 {
			t.Errorf("in: %+v", got)
		}
		if page := b.ask("GET", s.url+"/login", nil); !strings.Contains(page.text, "token ada") || !strings.Contains(page.text, "Sign out") {
			t.Errorf("the page says\n%s", page.text)
		}
		if out := b.ask("POST", s.url+"/logout", url.Values{}); out.status != http.StatusSeeOther || out.to != base+"/login?out=1" {
			t.Errorf("out: %d to %q", out.status, out.to)
		}
		if got := b.whoami(s); got.Status != http.StatusUnauthorized {
			t.Errorf("after: %+v", got)
		}
	}
}

// TestSessionMayWhatItsTokenMay: a queue out of the token's bounds does not exist for the session either.
func TestSessionMayWhatItsTokenMay(t *testing.T) {
	t.Parallel()
	s := serve(t, memory.New(memory.Options{}), signin.Options{})
	client := sluice.NewClient(s.store, sluice.ClientOptions{})
	for _, queue := range []string{"mail.a", "sms"} {
		if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: queue, Payload: []byte("1")}); err != nil {
			t.Fatal(err)
		}
	}
	b := newBrowser(t)
	b.loginByToken(s, token(t, s.store, access.Token{Name: "ada", Role: access.RoleViewer, Bounds: access.Bounds{Queues: []string{"mail.*"}}}), "")
	for path, want := range map[string]int{"/queues/mail.a": 200, "/queues/sms": 404, "/tokens": 403} {
		if got := b.ask("GET", s.url+httpapi.Root+path, nil); got.status != want {
			t.Errorf("%s: %d %s, want %d", path, got.status, got.text, want)
		}
	}
	if got := b.ask("POST", s.url+httpapi.Root+"/queues/mail.a/pause", nil); got.status != http.StatusForbidden {
		t.Errorf("a viewer pauses: %d %s", got.status, got.text)
	}
}

func TestWrongTokenIsRefusedAndGuessesAreBounded(t *testing.T) {
	t.Parallel()
	s := serve(t, memory.New(memory.Options{}), signin.Options{})
	b := newBrowser(t)
	for _, secret := range []string{"", "wrong", "sluice_" + strings.Repeat("x", 43), strings.Repeat("x", 1000)} {
		got := b.loginByToken(s, secret, "/queues")
		if got.status != http.StatusUnauthorized || !strings.Contains(got.text, `role="alert">The token is not known, or it has ended.`) || len(got.header["Set-Cookie"]) > 0 {
			t.Errorf("the secret %.20q got %d %s %s, want 401 and no cookie", secret, got.status, got.header["Set-Cookie"], got.text)
		}
	}
	if log := s.log.String(); !strings.Contains(log, `msg="sign-in failed"`) {
		t.Errorf("the log is\n%s", log)
	}
	if got := b.loginByToken(s, strings.Repeat("x", 20_000), ""); got.status != http.StatusBadRequest {
		t.Errorf("a long form: %d", got.status)
	}
	synctest.Test(t, func(t *testing.T) { // the fake clock keeps all guesses within one second
		h := signin.New(memory.New(memory.Options{}), signin.Options{Logger: slog.New(slog.DiscardHandler)})
		for n := range 101 {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, form("/login", url.Values{"token": {fmt.Sprintf("sluice_%043d", n)}}))
			if want := http.StatusUnauthorized; n < 100 && w.Code != want {
				t.Fatalf("guess %d: %d, want %d", n, w.Code, want)
			} else if want := http.StatusTooManyRequests; n == 100 && (w.Code != want || w.Header().Get("Retry-After") == "") {
				t.Errorf("guess %d: %d, want %d", n, w.Code, want)
			}
		}
	})
}

// TestGuessesBehindAProxyCountByTheirSender lets one sender behind a proxy guess tokens, who invents other addresses before its own.
func TestGuessesBehindAProxyCountByTheirSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := signin.New(memory.New(memory.Options{}), signin.Options{Logger: slog.New(slog.DiscardHandler), BehindProxy: true})
		guess := func(n int, from string) int {
			r := form("/login", url.Values{"token": {fmt.Sprintf("sluice_%043d", n)}})
			r.Header.Set("X-Forwarded-For", from)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code
		}
		for n := range 200 {
			code := guess(n, fmt.Sprintf("203.0.113.%d, 192.0.2.1", n))
			if want := http.StatusUnauthorized; n < 100 && code != want {
				t.Fatalf("guess %d: %d, want %d", n, code, want)
			} else if want := http.StatusTooManyRequests; n >= 100 && code != want {
				t.Fatalf("guess %d: %d, want %d", n, code, want)
			}
		}
		if code, want := guess(200, "192.0.2.1, 192.0.2.2"), http.StatusUnauthorized; code != want {
			t.Errorf("another sender: %d, want %d", code, want)
		}
	})
}

// form returns a request that posts a form.
func form(path string, values url.Values) *http.Request {
	r := httptest.NewRequest("POST", path, strings.NewReader(values.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

// TestSessionEnds: a session ends after its lifetime, and when its token ends.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	act := sluice.Act{By: "test"}
	for name, c := range map[string]struct {
		token access.Token
		end   func(*testing.T, sluice.Store)
		says  string
	}{
		"lifetime": {access.Token{}, func(*testing.T, sluice.Store) { time.Sleep(12 * time.Hour) }, "the session has ended"},
		"revoked": {access.Token{}, func(t *testing.T, store sluice.Store) {
			if err := access.Revoke(t.Context(), store, "ada", act); err != nil {
				t.Fatal(err)
			}
			time.Sleep(access.Kept)
		}, "the token of the session was revoked"},
		"expired": {access.Token{ExpiresAt: time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC)}, func(*testing.T, sluice.Store) { time.Sleep(time.Hour) }, "the token of the session was revoked"},
		"rotated": {access.Token{}, func(t *testing.T, store sluice.Store) {
			if _, _, err := access.Rotate(t.Context(), store, "ada", time.Hour, act); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour + access.Kept)
		}, "the token of the session was revoked"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(memory.Options{})
				h := signin.New(store, signin.Options{Logger: slog.New(slog.DiscardHandler)})
				c.token.Name, c.token.Role = "ada", access.RoleAdmin
				w := httptest.NewRecorder()
				h.ServeHTTP(w, form("/login", url.Values{"token": {token(t, store, c.token)}}))
				r := httptest.NewRequest("GET", "/", nil)
				for _, cookie := range w.Result().Cookies() {
					r.AddCookie(cookie)
				}
				if caller, err := h.Identify(r); err != nil || caller.Name != "token ada" {
					t.Fatalf("before its end the session is of %+v, %v, want token ada", caller, err)
				}
				time.Sleep(59 * time.Minute)
				if _, err := h.Identify(r); err != nil {
					t.Errorf("before the end: %v", err)
				}
				c.end(t, store)
				if caller, err := h.Identify(r); err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("after the end: %+v, %v", caller, err)
				}
			})
		})
	}
}

func TestForgedCookiesAreRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, memory.New(memory.Options{}), signin.Options{})
	b := newBrowser(t)
	b.loginByToken(s, token(t, s.store, access.Token{Name: "ada", Role: access.RoleAdmin}), "")
	name, value := b.sessionOf(s)
	flipped := []byte(value)
	flipped[len(flipped)/2] ^= 1
	for what, forged := range map[string]string{
		"nothing": "", "text": "admin", "JSON": "eyJzZWNyZXQiOiJ4In0", "one bit": string(flipped), "its beginning": value[:len(value)-4], "more": value + "AAAA", "long": strings.Repeat("A", 9000),
	} {
		other := newBrowser(t)
		if got := other.whoami(s, "Cookie", name+"="+forged); got.Status != http.StatusUnauthorized || got.Name != "" {
			t.Errorf("%s: got %+v, want 401", what, got)
		}
	}
	if got := newBrowser(t).whoami(s, "Cookie", name+"="+value); got.Status != http.StatusOK {
		t.Errorf("the cookie itself: %+v", got)
	}
}

// TestServersShareSessionsByTheirKey: an older key in second place still opens sessions, and an unknown key does not.
func TestServersShareSessionsByTheirKey(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	keys := func(lines ...string) []signin.Key {
		path := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		read, err := signin.ReadKeys(path)
		if err != nil {
			t.Fatal(err)
		}
		return read
	}
	old, fresh := strings.Repeat("old", 20), strings.Repeat("new", 20)
	first := serve(t, store, signin.Options{Keys: keys(old)})
	b := newBrowser(t)
	b.loginByToken(first, token(t, store, access.Token{Name: "ada", Role: access.RoleAdmin}), "")
	for name, c := range map[string]struct {
		options signin.Options
		want    int
	}{
		"the key":        {signin.Options{Keys: keys(old)}, http.StatusOK},
		"rotated":        {signin.Options{Keys: keys(fresh, old)}, http.StatusOK},
		"another key":    {signin.Options{Keys: keys(fresh)}, http.StatusUnauthorized},
		"a random key":   {signin.Options{}, http.StatusUnauthorized},
		"another's base": {signin.Options{Keys: keys(old), Base: "/other"}, http.StatusUnauthorized},
	} {
		if got := b.whoami(serve(t, store, c.options)); got.Status != c.want {
			t.Errorf("%s: %+v, want %d", name, got, c.want)
		}
	}
	for text, says := range map[string]string{"": "has no key", "short\n": "key 1 has 5 characters", old + "\nshort": "key 2 has 5 characters"} {
		path := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := signin.ReadKeys(path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("keys of %q: got the error %v, want %q", text, err, says)
		}
	}
	if _, err := signin.ReadKeys(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a missing file has keys")
	}
}

func TestNobodyIsSentToAnotherSite(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	secret := token(t, store, access.Token{Name: "ada", Role: access.RoleAdmin})
	for base, cases := range map[string]map[string]string{
		"": {"/queues?q=a%2Fb": "/queues?q=a%2Fb", "/": "/", "/jobs/": "/jobs/", "/a?next=http://x": "/a?next=http://x"},
		"/sluice": {
			"/sluice/queues": "/sluice/queues", "/sluice": "/sluice", "/sluice/": "/sluice/", "/queues": "/sluice/home", "/sluicer": "/sluice/home", "/sluice/../x": "/sluice/home", "/sluice/%2e%2e/x": "/sluice/home",
			"/sluice/login": "/sluice/home", "/sluice/login/oidc": "/sluice/home", "/sluice/logout": "/sluice/home",
		},
	} {
		s := serve(t, store, signin.Options{Base: base, Home: "/home"})
		for _, evil := range []string{"https://evil.example", "//evil.example", `/\evil.example`, `\\evil.example`, "/%5cevil.example", "///evil.example", "/%2f/evil.example", "javascript:alert(1)", "\t//evil.example", "/\t/evil.example", "evil.example", "", "/\r\nx: y"} {
			cases[evil] = base + "/home"
		}
		for next, want := range cases {
			if got := newBrowser(t).loginByToken(s, secret, next); got.to != want {
				t.Errorf("%q below %q leads to %q, want %q", next, base, got.to, want)
			}
		}
	}
}

func TestPagesOfOtherSitesSignNobodyInOrOut(t *testing.T) {
	t.Parallel()
	s := serve(t, memory.New(memory.Options{}), signin.Options{})
	secret := token(t, s.store, access.Token{Name: "ada", Role: access.RoleAdmin})
	b := newBrowser(t)
	b.loginByToken(s, secret, "")
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
		for _, path := range []string{"/login", "/logout"} {
			if got := b.ask("POST", s.url+path, url.Values{"token": {secret}}, header...); got.status != http.StatusForbidden || len(got.header["Set-Cookie"]) > 0 {
				t.Errorf("%s from %s: %d", path, header, got.status)
			}
		}
		if got := b.ask("POST", s.url+httpapi.Root+"/jobs", nil, header...); got.status != http.StatusForbidden {
			t.Errorf("a request to the API from %s: %d", header, got.status)
		}
	}
	if got := b.whoami(s); got.Status != http.StatusOK {
		t.Errorf("%+v", got)
	}
}

// TestTokenOfTheHeaderGoesFirst: the token in the header counts before the session. A wrong token is refused despite
// the session.
func TestTokenOfTheHeaderGoesFirst(t *testing.T) {
	t.Parallel()
	s := serve(t, memory.New(memory.Options{}), signin.Options{})
	b := newBrowser(t)
	b.loginByToken(s, token(t, s.store, access.Token{Name: "ada", Role: access.RoleAdmin}), "")
	secret := token(t, s.store, access.Token{Name: "ci", Role: access.RoleViewer})
	for header, want := range map[string]string{"Bearer " + secret: "token ci", "Bearer wrong": "", "Basic " + secret: "", "": "token ada"} {
		if got := b.whoami(s, "Authorization", header); got.Name != want {
			t.Errorf("%.10s: %+v, want %q", header, got, want)
		}
	}
}

// TestCookiesOfLoopbackAreApartByPort: browsers share cookies between ports. Without names of their own, two servers
// would sign each other's people out.
func TestCookiesOfLoopbackAreApartByPort(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	secret := token(t, store, access.Token{Name: "ada", Role: access.RoleAdmin})
	first, second := serve(t, store, signin.Options{Insecure: true}), serve(t, store, signin.Options{Insecure: true})
	b := newBrowser(t)
	for _, s := range []*served{first, second} {
		if got := b.loginByToken(s, secret, ""); strings.Contains(got.header.Get("Set-Cookie"), "Secure") {
			t.Errorf("no browser sends it back: %s", got.header.Get("Set-Cookie"))
		}
	}
	for _, s := range []*served{first, second} {
		if got := b.whoami(s); got.Status != http.StatusOK {
			t.Errorf("%+v", got)
		}
	}
}

// lastBy returns the actor of the last act in the audit.
func lastBy(t *testing.T, store sluice.Store) string {
	t.Helper()
	entries, err := store.Audit(t.Context(), sluice.AuditFilter{Limit: 1})
	if err != nil || len(entries) == 0 {
		t.Fatalf("the audit has the entries %v, %v, want the last one", entries, err)
	}
	return entries[0].Actor
}
