package signin_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/api"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/cmd/signin"
	"github.com/sluice-queue/sluice/internal/oidctest"
)

// served is a server with the API and the sign-in, below a base path.
type served struct {
	t       testing.TB
	url     string // includes the base path
	store   sluice.Store
	handler *signin.Handler
	log     *buffer
}

// serve starts a server on loopback.
func serve(t testing.TB, store sluice.Store, options signin.Options) *served {
	t.Helper()
	s := &served{t: t, store: store, log: &buffer{}}
	site, err := api.New(api.Options{Base: options.Base})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(site)
	options.Logger = slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.handler = signin.New(store, options)
	site.HandleAll("/login", s.handler)
	site.HandleAll("/login/", s.handler)
	site.HandleAll("/logout", s.handler)
	site.HandleAll(httpapi.Root+"/", httpapi.New(store, httpapi.Options{Identify: s.handler.Identify, Logger: options.Logger}))
	if options.Insecure {
		server.Start()
	} else {
		server.StartTLS()
	}
	t.Cleanup(server.Close)
	s.url = server.URL + options.Base
	return s
}

// token makes a token, and returns its secret.
func token(t testing.TB, store sluice.Store, token access.Token) string {
	t.Helper()
	_, secret, err := access.Create(t.Context(), store, token, sluice.Act{By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// browser keeps cookies, and does not follow redirects.
type browser struct {
	*http.Client
	t testing.TB
}

func newBrowser(t testing.TB) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // the test's own servers
	t.Cleanup(transport.CloseIdleConnections)
	return &browser{&http.Client{Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, t}
}

// answer is the answer to a browser's request.
type answer struct {
	status int
	text   string
	to     string // the target of a redirect
	header http.Header
}

// ask sends a request, with a form if form is not nil.
func (b *browser) ask(method, at string, form url.Values, header ...string) answer {
	b.t.Helper()
	body := form.Encode()
	if form == nil && method == http.MethodPost {
		body = "{}"
	}
	request, err := http.NewRequestWithContext(b.t.Context(), method, at, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := b.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	_ = response.Body.Close()
	return answer{response.StatusCode, string(text), response.Header.Get("Location"), response.Header}
}

// loginByToken signs in with a token, as the form of the login page does.
func (b *browser) loginByToken(s *served, secret, next string) answer {
	b.t.Helper()
	return b.ask("POST", s.url+"/login", url.Values{"token": {secret}, "next": {next}})
}

// loginAt signs a person in at the provider, and returns the address to which the provider redirects.
func (b *browser) loginAt(p *oidctest.Provider, s *served, person, next string) string {
	b.t.Helper()
	away := b.ask("GET", s.url+"/login/oidc?next="+url.QueryEscape(next), nil)
	if away.status != http.StatusSeeOther || !strings.HasPrefix(away.to, p.Issuer) {
		b.t.Fatalf("%d %s %s", away.status, away.to, away.text)
	}
	back, err := p.Answer(b.t.Context(), away.to, person)
	if err != nil {
		b.t.Fatal(err)
	}
	return back
}

// me is the caller that the API sees in a browser's request.
type me struct {
	Status          int `json:"-"`
	Why             string
	Name, Role      string
	Queues, Tenants []string
}

// whoami asks the API who the caller is.
func (b *browser) whoami(s *served, header ...string) me {
	b.t.Helper()
	got := b.ask("GET", s.url+httpapi.Root+"/whoami", nil, header...)
	m := me{Status: got.status}
	if err := json.Unmarshal([]byte(got.text), &m); err != nil {
		b.t.Fatalf("%v: %s", err, got.text)
	}
	m.Status = got.status
	return m
}

// sessionOf returns the name and the value of the session's cookie.
func (b *browser) sessionOf(s *served) (name, value string) {
	b.t.Helper()
	at, err := url.Parse(s.url)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range b.Jar.Cookies(at) {
		if strings.Contains(c.Name, "sluice-session") {
			return c.Name, c.Value
		}
	}
	return "", ""
}

// buffer is a log for many goroutines.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
