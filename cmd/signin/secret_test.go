package signin_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/cmd/signin"
	"github.com/sluice-queue/sluice/internal/oidctest"
	"github.com/sluice-queue/sluice/store/memory"
)

// recorder keeps each answer that a browser gets, without its cookies.
type recorder struct {
	http.RoundTripper
	answers []string
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(text))
	header := response.Header.Clone()
	header.Del("Set-Cookie")
	r.answers = append(r.answers, fmt.Sprintf("%s %s: %d\n%v\n%s", request.Method, request.URL.Path, response.StatusCode, header, text))
	return response, nil
}

// secretive drives a server, and knows the secrets that nobody may see.
type secretive struct {
	*served
	recorder *recorder
	browser  *browser
	secrets  map[string]string
}

// TestNoSecretIsLoggedOrAnswered signs in by tokens and by a provider, and makes and rotates tokens. It sends wrong secrets,
// and asks a provider and a store that are gone. No secret is in the log, and none but a new one is in an answer.
func TestNoSecretIsLoggedOrAnswered(t *testing.T) {
	t.Parallel()
	p, config := provider(t)
	wrong := config
	wrong.ClientSecret = "wrong-client-secret-7741"
	store := memory.New(memory.Options{})
	s := secretive{served: serve(t, store, signin.Options{Provider: &config}), browser: newBrowser(t), secrets: map[string]string{
		"client secret": oidctest.Secret, "unknown token": "sluice_" + strings.Repeat("x", 43), "basic": "YWRhOmh1bnRlcjI=", "wrong client secret": wrong.ClientSecret,
	}}
	s.recorder = &recorder{RoundTripper: s.browser.Transport}
	s.browser.Transport = s.recorder
	s.secrets["root"] = token(t, store, access.Token{Name: "root", Role: access.RoleAdmin})
	s.byTokens()
	back := s.byProvider(p)
	s.withWrongSecrets(back)
	mistaken := secretive{served: serve(t, store, signin.Options{Provider: &wrong}), recorder: s.recorder, browser: s.browser, secrets: s.secrets}
	if got := s.browser.ask("GET", s.browser.loginAt(p, mistaken.served, "ada", ""), nil); got.status != http.StatusForbidden {
		t.Errorf("with a wrong secret of the client: %d", got.status)
	}
	last := s.browser.loginAt(p, s.served, "bob", "")
	s.keepCode("code to a dead provider", last)
	p.Stop()
	if got := s.browser.ask("GET", last, nil); got.status != http.StatusBadGateway {
		t.Errorf("with a dead provider: %d", got.status)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	s.withWrongSecrets(back)
	log := s.log.String() + mistaken.log.String()
	for _, event := range []string{"signed in", "sign-in failed", "request unanswered"} {
		if !strings.Contains(log, event) {
			t.Errorf("the log lacks %q:\n%s", event, log)
		}
	}
	for name, secret := range s.secrets {
		if secret == "" || strings.Contains(log, secret) {
			t.Errorf("the %s %q is in the log:\n%s", name, secret, log)
		}
		for _, answer := range s.recorder.answers {
			if strings.Contains(answer, secret) {
				t.Errorf("the %s %q is in the answer %s", name, secret, answer)
			}
		}
	}
}

// byTokens makes and rotates tokens, and signs in and out by one.
func (s secretive) byTokens() {
	s.t.Helper()
	const admin = httpapi.Root + "/tokens"
	for _, request := range []struct{ path, body string }{{admin, `{"name":"ci","role":"worker"}`}, {admin + "/ci/rotate", `{"overlap":"1h"}`}} {
		s.post(request.path, request.body, s.secrets["root"])
		last := &s.recorder.answers[len(s.recorder.answers)-1]
		made := regexp.MustCompile(`sluice_[A-Za-z0-9_-]{43}`).FindString(*last)
		if made == "" {
			s.t.Fatalf("no new secret: %s", *last)
		}
		s.secrets[request.path] = made
		*last = strings.Replace(*last, made, "", 1) // it is shown once
	}
	if got := s.browser.loginByToken(s.served, s.secrets["root"], ""); got.status != http.StatusSeeOther {
		s.t.Fatalf("%d %s", got.status, got.text)
	}
	_, s.secrets["session of a token"] = s.browser.sessionOf(s.served)
	for _, path := range []string{"/login", httpapi.Root + "/whoami", admin} {
		s.browser.ask("GET", s.url+path, nil)
	}
	s.browser.ask("POST", s.url+"/logout", url.Values{})
}

// byProvider signs a person in by the provider, and returns the address by which the provider answered.
func (s secretive) byProvider(p *oidctest.Provider) (back string) {
	s.t.Helper()
	back = s.browser.loginAt(p, s.served, "ada", "")
	s.keepCode("code", back)
	if got := s.browser.ask("GET", back, nil); got.status != http.StatusSeeOther {
		s.t.Fatalf("%d %s", got.status, got.text)
	}
	_, s.secrets["session of a person"] = s.browser.sessionOf(s.served)
	return back
}

// keepCode keeps the code in an address by which the provider answers.
func (s secretive) keepCode(name, back string) {
	s.t.Helper()
	at, err := url.Parse(back)
	if err != nil {
		s.t.Fatal(err)
	}
	s.secrets[name] = at.Query().Get("code")
}

// withWrongSecrets sends secrets that are unknown, at a wrong place, or used up.
func (s secretive) withWrongSecrets(back string) {
	s.t.Helper()
	for _, secret := range s.secrets {
		for _, authorization := range []string{"Bearer " + secret, "bearer " + secret, "Basic " + secret, secret} {
			s.browser.ask("GET", s.url+httpapi.Root+"/jobs", nil, "Authorization", authorization)
		}
		s.browser.ask("GET", s.url+httpapi.Root+"/jobs?token="+url.QueryEscape(secret), nil)
		s.browser.ask("GET", s.url+httpapi.Root+"/jobs", nil, "Cookie", "__Host-sluice-session="+url.QueryEscape(secret)+"A")
		s.browser.loginByToken(s.served, secret+"A", "")
		s.browser.ask("GET", s.url+"/login/callback?state=x&code="+url.QueryEscape(secret), nil)
		s.post(httpapi.Root+"/tokens", `{"name":"ci","role":"worker","secret":"`+secret+`"}`, s.secrets["root"])
	}
	s.browser.ask("GET", back, nil)
}

// post sends JSON with a token.
func (s secretive) post(path, body, token string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := s.browser.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = response.Body.Close()
}
