// Package oidctest starts a real OpenID provider for tests, on loopback: the certified one of github.com/zitadel/oidc.
//
// Begin with [Start], which builds the provider of tools/oidc if needed and starts it with people and their groups.
// [Provider.Answer] does at the provider what a person does there.
//
// Read next: package cmd/signin, whose tests use it.
package oidctest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/internal/testcache"
)

// The clients of the provider, whose secret is [Secret].
const (
	// Client gets all claims in the ID token.
	Client = "sluice"
	// ThinClient gets email and groups at the userinfo endpoint alone.
	ThinClient = "sluice-thin"
	Secret     = "a secret of the clients"
)

// Password is that of every person.
const Password = "very secure"

// Person can sign in at the provider.
type Person struct {
	ID            string   `json:"-"`
	Email         string   `json:"email"`
	EmailVerified bool     `json:"email_verified"`
	Groups        []string `json:"groups"`
}

// Provider is a provider that runs. It ends with the test, and with this process.
type Provider struct {
	// Issuer is the provider's address.
	Issuer string

	cmd   *exec.Cmd
	stdin io.Closer
}

// Start starts a provider that knows these people. Go builds it from tools/oidc and keeps it in its cache: about 8 CPU
// seconds the first time.
func Start(t testing.TB, people ...Person) *Provider {
	t.Helper()
	program, err := testcache.Tool(t.Context(), "oidc")
	if err != nil {
		t.Fatal(err)
	}
	type known struct {
		Person
		Password string `json:"password"`
	}
	all := make(map[string]known)
	for _, p := range people {
		all[p.ID] = known{p, Password}
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	p := &Provider{cmd: exec.Command(program, "-people", string(text), "-secret", Secret)}
	p.cmd.Stderr = t.Output()
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the provider does not say its address: %v", err)
	}
	p.Issuer = strings.TrimSpace(line)
	return p
}

// Stop ends the provider.
func (p *Provider) Stop() {
	_ = p.stdin.Close() // it ends
	_ = p.cmd.Wait()
}

// Answer signs a person in at the provider, at the address to which a server has sent them. It returns the address to
// which the provider sends them back.
func (p *Provider) Answer(ctx context.Context, at, id string) (callback string, err error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return "", err
	}
	browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	login, err := follow(ctx, browser, http.MethodGet, at, nil)
	if err != nil {
		return "", err
	}
	page, err := url.Parse(login)
	if err != nil {
		return "", err
	}
	form := url.Values{"id": {page.Query().Get("authRequestID")}, "username": {id}, "password": {Password}}
	page.RawQuery = ""
	granted, err := follow(ctx, browser, http.MethodPost, page.String(), form)
	if err != nil {
		return "", err
	}
	return follow(ctx, browser, http.MethodGet, granted, nil)
}

// follow sends a request, and returns where its answer sends the browser.
func follow(ctx context.Context, browser *http.Client, method, at string, form url.Values) (string, error) {
	request, err := http.NewRequestWithContext(ctx, method, at, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := browser.Do(request)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return "", err
	}
	to, err := response.Location()
	if err != nil {
		return "", fmt.Errorf("the provider answered %s at %s: %s", response.Status, at, text)
	}
	return to.String(), nil
}
