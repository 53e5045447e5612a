package signin_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/cmd/signin"
	"github.com/sluice-queue/sluice/internal/oidctest"
	"github.com/sluice-queue/sluice/store/memory"
)

// people are the persons that the provider knows.
var people = []oidctest.Person{
	{ID: "ada", Email: "ada@example.com", EmailVerified: true, Groups: []string{"staff", "sluice-admins"}},
	{ID: "bob", Email: "bob@example.com", EmailVerified: true, Groups: []string{"staff", "shop"}},
	{ID: "cleo", Email: "cleo@partner.example", EmailVerified: true},
	{ID: "dan", Email: "dan@partner.example", Groups: []string{"shop"}},
	{ID: "eve", Email: "eve@partner.example"},
}

// roles maps groups and addresses of these people to roles.
var roles = []signin.Grant{
	{Group: "sluice-admins", Role: access.RoleAdmin},
	{Group: "shop", Role: access.RoleOperator, Queues: []string{"mail.*"}},
	{Email: "*@partner.example", Role: access.RoleViewer},
}

// provider starts a provider, and returns it with the settings that a server needs for it.
func provider(t *testing.T) (*oidctest.Provider, signin.Provider) {
	t.Helper()
	p := oidctest.Start(t, people...)
	return p, signin.Provider{Issuer: p.Issuer, ClientID: oidctest.Client, ClientSecret: oidctest.Secret, Name: "Example ID", Roles: roles}
}

// TestPeopleSignInByAProvider: groups and verified addresses give people roles and bounds.
func TestPeopleSignInByAProvider(t *testing.T) {
	t.Parallel()
	p, config := provider(t)
	thin := config
	thin.ClientID = oidctest.ThinClient
	for _, s := range []*served{
		serve(t, memory.New(memory.Options{}), signin.Options{Provider: &config, Home: "/"}),
		serve(t, memory.New(memory.Options{}), signin.Options{Provider: &thin, Base: "/sluice", Home: "/"}),
		serve(t, memory.New(memory.Options{}), signin.Options{Provider: &config, Insecure: true}),
	} {
		for person, want := range map[string]me{
			"ada":  {Name: "ada@example.com", Role: "admin"},
			"bob":  {Name: "bob@example.com", Role: "operator", Queues: []string{"mail.*"}},
			"cleo": {Name: "cleo@partner.example", Role: "viewer"},
			"dan":  {Name: "subject dan", Role: "operator", Queues: []string{"mail.*"}}, // the address is not verified, so only the subject names the person
		} {
			b := newBrowser(t)
			if page := b.ask("GET", s.url+"/login", nil); !strings.Contains(page.text, ">Sign in with Example ID</a>") {
				t.Errorf("the page says\n%s", page.text)
			}
			base := strings.TrimPrefix(s.url[8:][strings.Index(s.url[8:], ":"):], ":")
			_, base, _ = strings.Cut(base, "/")
			if base != "" {
				base = "/" + base
			}
			in := b.ask("GET", b.loginAt(p, s, person, base+"/queues?q=a b"), nil)
			if in.status != http.StatusSeeOther || in.to != base+"/queues?q=a%20b" && in.to != base+"/queues?q=a b" {
				t.Fatalf("%s: %d to %q\n%s", person, in.status, in.to, in.text)
			}
			got := b.whoami(s)
			if got.Status != http.StatusOK || got.Name != want.Name || got.Role != want.Role || strings.Join(got.Queues, " ") != strings.Join(want.Queues, " ") {
				t.Errorf("%s: %+v, want %+v", person, got, want)
			}
		}
		b := newBrowser(t)
		got := b.ask("GET", b.loginAt(p, s, "eve", ""), nil)
		if got.status != http.StatusForbidden || !strings.Contains(got.text, "Subject eve has none of the groups and addresses that have a role here") || b.whoami(s).Status != http.StatusUnauthorized {
			t.Errorf("eve: %d %s", got.status, got.text)
		}
		if log := s.log.String(); !strings.Contains(log, `msg="signed in" by=ada@example.com role=admin`) || !strings.Contains(log, `msg="sign-in failed"`) {
			t.Errorf("the log is\n%s", log)
		}
	}
}

// TestAnAddressIsVerifiedByWhoTellsOfIt puts the claims of an ID token and of the userinfo endpoint together. A role by address needs a
// verified one.
func TestAnAddressIsVerifiedByWhoTellsOfIt(t *testing.T) {
	t.Parallel()
	const ada, eve = "ada@example.com", "eve@example.com"
	for name, c := range map[string]struct {
		token, told map[string]any
		verified    any
	}{
		"of another address":  {map[string]any{"email": ada}, map[string]any{"email": eve, "email_verified": true}, nil},
		"of no address":       {map[string]any{"email_verified": true}, map[string]any{"email": ada}, nil},
		"of the same address": {map[string]any{"email": ada}, map[string]any{"email": ada, "email_verified": true}, true},
		"told alone":          {map[string]any{}, map[string]any{"email": ada, "email_verified": true}, true},
		"in the token alone":  {map[string]any{"email": ada, "email_verified": true}, map[string]any{"groups": []any{"shop"}}, true},
	} {
		if got := signin.Told(c.token, c.told); got["email"] != ada || got["email_verified"] != c.verified {
			t.Errorf("%s: %v, want %s verified: %v", name, got, ada, c.verified)
		}
	}
}

func TestActsOfAPersonAreTheirsInTheAudit(t *testing.T) {
	t.Parallel()
	p, config := provider(t)
	s := serve(t, memory.New(memory.Options{}), signin.Options{Provider: &config})
	if _, err := sluice.NewClient(s.store, sluice.ClientOptions{}).Enqueue(t.Context(), sluice.NewJob{Queue: "mail.a", Payload: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t)
	b.ask("GET", b.loginAt(p, s, "bob", ""), nil)
	for path, want := range map[string]int{"/queues/mail.a/pause": http.StatusOK, "/queues/sms/pause": http.StatusNotFound} {
		if got := b.ask("POST", s.url+httpapi.Root+path, nil, "Sec-Fetch-Site", "same-origin", "Content-Type", "application/json"); got.status != want {
			t.Errorf("%s: %d %s, want %d", path, got.status, got.text, want)
		}
	}
	if by := lastBy(t, s.store); by != "bob@example.com" {
		t.Errorf("the audit names %q", by)
	}
}

// TestAnswersOfOtherSignInsAreRefused: a browser gets no session from an answer to another sign-in, nor from a repeated
// answer.
func TestAnswersOfOtherSignInsAreRefused(t *testing.T) {
	t.Parallel()
	p, config := provider(t)
	s := serve(t, memory.New(memory.Options{}), signin.Options{Provider: &config})
	change := func(at, name, value string) string {
		parsed, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		query := parsed.Query()
		query.Set(name, value)
		parsed.RawQuery = query.Encode()
		return parsed.String()
	}
	for name, c := range map[string]struct {
		callback func(*browser) string
		status   int
		says     string
	}{
		"wrong state":     {func(b *browser) string { return change(b.loginAt(p, s, "ada", ""), "state", "other") }, http.StatusBadRequest, "The answer of the provider belongs to another sign-in"},
		"no state":        {func(b *browser) string { return change(b.loginAt(p, s, "ada", ""), "state", "") }, http.StatusBadRequest, "The answer of the provider belongs to another sign-in"},
		"no sign-in here": {func(*browser) string { return newBrowser(t).loginAt(p, s, "ada", "") }, http.StatusBadRequest, "began elsewhere"},
		"code of another": {func(b *browser) string {
			theirs, err := url.Parse(newBrowser(t).loginAt(p, s, "ada", ""))
			if err != nil {
				t.Fatal(err)
			}
			return change(b.loginAt(p, s, "bob", ""), "code", theirs.Query().Get("code")) // the provider notices the foreign code by PKCE
		}, http.StatusForbidden, "The provider refused the code"},
		"replayed code": {func(b *browser) string {
			var away answer
			keep := b.Jar
			away = b.ask("GET", s.url+"/login/oidc", nil)
			at, err := url.Parse(s.url)
			if err != nil {
				t.Fatal(err)
			}
			cookies := keep.Cookies(at)
			back, err := p.Answer(t.Context(), away.to, "ada")
			if err != nil {
				t.Fatal(err)
			}
			if got := b.ask("GET", back, nil); got.status != http.StatusSeeOther {
				t.Fatalf("the first time: %d %s", got.status, got.text)
			}
			b.ask("POST", s.url+"/logout", url.Values{})
			for _, c := range cookies { // the thief has stolen the cookies of the sign-in
				c.Secure, c.Path = true, "/"
			}
			keep.SetCookies(at, cookies)
			return back
		}, http.StatusForbidden, "The provider refused the code"},
		"wrong nonce": {func(b *browser) string {
			away := b.ask("GET", s.url+"/login/oidc", nil)
			back, err := p.Answer(t.Context(), change(away.to, "nonce", "other"), "ada")
			if err != nil {
				t.Fatal(err)
			}
			return back
		}, http.StatusForbidden, "its nonce is wrong"},
		"refusal of the provider": {func(b *browser) string {
			back := change(b.loginAt(p, s, "ada", ""), "error", "access_denied")
			return change(back, "error_description", "<b>no</b>")
		}, http.StatusForbidden, "&lt;b&gt;no&lt;/b&gt;"},
		"another provider": {func(b *browser) string { return change(b.loginAt(p, s, "ada", ""), "iss", "https://evil.example") }, http.StatusForbidden, "Another provider answered"},
	} {
		b := newBrowser(t)
		got := b.ask("GET", c.callback(b), nil)
		if got.status != c.status || !strings.Contains(got.text, c.says) {
			t.Errorf("%s: %d, want %d and %q:\n%s", name, got.status, c.status, c.says, got.text)
		}
		if who := b.whoami(s); who.Status != http.StatusUnauthorized {
			t.Errorf("%s: signed in as %+v", name, who)
		}
	}
}

// TestSealsAreForOnePurpose: the cookie of an unfinished sign-in is not accepted as a session.
func TestSealsAreForOnePurpose(t *testing.T) {
	t.Parallel()
	p, config := provider(t)
	s := serve(t, memory.New(memory.Options{}), signin.Options{Provider: &config})
	b := newBrowser(t)
	away := b.ask("GET", s.url+"/login/oidc", nil)
	flow, value, _ := strings.Cut(strings.Split(away.header.Get("Set-Cookie"), ";")[0], "=")
	if got := newBrowser(t).whoami(s, "Cookie", strings.Replace(flow, "flow", "session", 1)+"="+value); got.Status != http.StatusUnauthorized || !strings.Contains(got.Why, "the session has ended") {
		t.Errorf("the cookie of a sign-in as a session: got %+v, want 401", got)
	}
	b.ask("GET", b.loginAt(p, s, "ada", ""), nil)
	_, session := b.sessionOf(s)
	if got := newBrowser(t).ask("GET", s.url+"/login/callback?state=", nil, "Cookie", flow+"="+session); got.status != http.StatusBadRequest {
		t.Errorf("a session as the cookie of a sign-in: got %d, want 400: %s", got.status, got.text)
	}
}

// TestChangedRolesChangeSessions: servers with the same key accept each other's sessions, but each applies its own
// roles.
func TestChangedRolesChangeSessions(t *testing.T) {
	t.Parallel()
	p, config := provider(t)
	keys := []signin.Key{{1}}
	store := memory.New(memory.Options{})
	s := serve(t, store, signin.Options{Provider: &config, Keys: keys})
	b := newBrowser(t)
	b.ask("GET", b.loginAt(p, s, "bob", ""), nil)
	lowered, gone, moved := config, config, config
	lowered.Roles = []signin.Grant{{Email: "BOB@example.com", Role: access.RoleViewer, Tenants: []string{"acme"}}, roles[1]}
	gone.Roles = roles[:1]
	moved.Issuer = "https://id.example.com"
	for name, c := range map[string]struct {
		options signin.Options
		status  int
		says    string
	}{
		"as before": {signin.Options{Provider: &config}, http.StatusOK, "operator"},
		"lowered":   {signin.Options{Provider: &lowered}, http.StatusOK, "viewer"},
		"gone":      {signin.Options{Provider: &gone}, http.StatusUnauthorized, "has a role here any more"},
		"moved":     {signin.Options{Provider: &moved}, http.StatusUnauthorized, "the session has ended"},
		"none":      {signin.Options{}, http.StatusUnauthorized, "the session has ended"},
	} {
		c.options.Keys = keys
		other := serve(t, store, c.options)
		if got := b.whoami(other); got.Status != c.status || !strings.Contains(got.Role+got.Why, c.says) {
			t.Errorf("%s: %+v, want %d %s", name, got, c.status, c.says)
		}
	}
	short := serve(t, store, signin.Options{Provider: &config, Keys: keys, Lifetime: time.Nanosecond})
	late := newBrowser(t)
	late.ask("GET", late.loginAt(p, short, "ada", ""), nil)
	if got := late.whoami(short); got.Status != http.StatusUnauthorized || !strings.Contains(got.Why, "the session has ended") {
		t.Errorf("after its lifetime the session gets %+v, want 401", got)
	}
}

// TestProviderIsDown stops the provider. The person and the log learn of it, and tokens still work. The server finds
// the provider when it is back.
func TestProviderIsDown(t *testing.T) {
	t.Parallel()
	p, config := provider(t)
	before := serve(t, memory.New(memory.Options{}), signin.Options{Provider: &config})
	b := newBrowser(t)
	back := b.loginAt(p, before, "ada", "")
	p.Stop()
	if got := b.ask("GET", back, nil); got.status != http.StatusBadGateway || !strings.Contains(got.text, "The provider does not exchange the code") {
		t.Errorf("the answer of a dead provider: got %d, want 502: %s", got.status, got.text)
	}
	s := serve(t, memory.New(memory.Options{}), signin.Options{Provider: &config})
	for range 2 {
		if got := b.ask("GET", s.url+"/login/oidc", nil); got.status != http.StatusBadGateway || !strings.Contains(got.text, "The provider "+p.Issuer+" does not answer as one") {
			t.Errorf("a sign-in without a provider: got %d, want 502: %s", got.status, got.text)
		}
	}
	if log := s.log.String(); !strings.Contains(log, "connection refused") {
		t.Errorf("the log is\n%s", log)
	}
	if got := b.loginByToken(s, token(t, s.store, access.Token{Name: "ada", Role: access.RoleAdmin}), ""); got.status != http.StatusSeeOther {
		t.Errorf("a token: %d %s", got.status, got.text)
	}
	without := serve(t, memory.New(memory.Options{}), signin.Options{})
	for _, path := range []string{"/login/oidc", "/login/callback?state=x&code=y"} {
		if got := b.ask("GET", without.url+path, nil); got.status != http.StatusNotFound || !strings.Contains(got.text, "knows no provider") {
			t.Errorf("%s without a configured provider: got %d, want 404: %s", path, got.status, got.text)
		}
	}
}

func TestWrongSecretOfTheClientIsSaid(t *testing.T) {
	t.Parallel()
	p, config := provider(t)
	config.ClientSecret = "wrong"
	s := serve(t, memory.New(memory.Options{}), signin.Options{Provider: &config})
	b := newBrowser(t)
	if got := b.ask("GET", b.loginAt(p, s, "ada", ""), nil); got.status != http.StatusForbidden || !strings.Contains(got.text, "check client_id and client_secret_file") {
		t.Errorf("a wrong client secret: got %d, want 403: %s", got.status, got.text)
	}
}

func TestProviderIsReadFromAFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("secret", "hunter2\n")
	const whole = "issuer: https://id.example.com\nclient_id: sluice\n"
	got, err := signin.ReadProvider(write("oidc.yaml", whole+"client_secret_file: secret\nname: ID\nscopes: [roles]\ngroups_claim: roles\nroles:\n  - {group: admins, role: admin}\n  - email: '*@example.com'\n    role: viewer\n    queues: [mail.*]\n    tenants: [acme]\n"))
	if err != nil || got.ClientSecret != "hunter2" || got.GroupsClaim != "roles" || len(got.Scopes) != 1 || len(got.Roles) != 2 || got.Roles[1].Queues[0] != "mail.*" || got.Roles[1].Tenants[0] != "acme" {
		t.Errorf("the file reads as %+v, %v", got, err)
	}
	const role = "roles: [{group: a, role: admin}]\n"
	for text, says := range map[string]string{
		"":                         "issuer: must be set",
		"issuer: id.example.com\n": "must be an address that begins with https://",
		"issuer: http://id.example.com\nclient_id: x\n" + role: "must be an address that begins with https://",
		"issuer: https://id.example.com\n" + role:              "client_id: must be set",
		whole:                            "roles: must have an entry",
		whole + "roles: [{role: admin}]": "roles[0]: must have either group or email",
		whole + "roles: [{group: a, email: b, role: admin}]":       "roles[0]: must have either group or email",
		whole + "roles: [{group: a, role: king}]":                  `"king" must be one of`,
		whole + "roles: [{group: a, role: admin, queues: ['*x']}]": "must be a name, or the beginning of one and a *",
		whole + "roles: [{email: 'a*@example.com', role: admin}]":  "must be an address, or *@ and a domain",
		whole + role + "client_secret: hunter2\n":                  "client_secret",
		whole + role + "client_secret_file: none\n":                "client_secret_file",
		whole + "roles: [": "oidc.yaml",
	} {
		if _, err := signin.ReadProvider(write("oidc.yaml", text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
	if _, err := signin.ReadProvider(filepath.Join(folder, "none.yaml")); err == nil {
		t.Error("a missing file is a provider")
	}
}
