package signin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
)

const (
	// flowTime is how long somebody may take at the provider.
	flowTime = 10 * time.Minute
	// providerTime is the longest wait for one answer of the provider.
	providerTime = 10 * time.Second
	// flowEnd is the longest wait for all answers of the provider to one request, which the listener ends after 30 s.
	flowEnd = 18 * time.Second
	// failureKept is how long the provider is not asked again after a failure.
	failureKept = 2 * time.Second
)

// provider asks an OpenID provider.
type provider struct {
	Provider

	mu     sync.Mutex
	found  *oidc.Provider // nil until the provider has answered
	scopes []string
	failed error
	until  time.Time // failed is the answer
}

// flow is a way to the provider and back, in a sealed cookie. A browser has one at a time.
type flow struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	Next     string    `json:"next"`
	Until    time.Time `json:"until"`
}

// client asks the provider. It follows no redirects, which no provider needs there.
var client = &http.Client{
	Timeout:       providerTime,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// discover returns the provider, as it describes itself. It is asked until it has answered once.
func (p *provider) discover(ctx context.Context) (*oidc.Provider, []string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil {
		return p.found, p.scopes, nil
	}
	if p.failed != nil && time.Now().Before(p.until) {
		return nil, nil, p.failed
	}
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), client), p.Issuer)
	if err != nil {
		p.failed, p.until = fmt.Errorf("the provider %s does not answer as one: %w", p.Issuer, err), time.Now().Add(failureKept)
		return nil, nil, p.failed
	}
	var described struct {
		Scopes []string `json:"scopes_supported"`
	}
	if err := found.Claims(&described); err != nil {
		return nil, nil, fmt.Errorf("the description of the provider %s is not readable: %w", p.Issuer, err)
	}
	scopes := []string{oidc.ScopeOpenID, "email", "profile"}
	if slices.Contains(described.Scopes, "groups") {
		scopes = append(scopes, "groups")
	}
	p.found, p.scopes = found, append(scopes, p.Scopes...)
	return p.found, p.scopes, nil
}

// config returns how to ask for tokens. The provider returns people to the host that they asked.
func (h *Handler) config(r *http.Request, found *oidc.Provider, scopes []string) oauth2.Config {
	scheme := "https"
	if h.options.Insecure {
		scheme = "http"
	}
	return oauth2.Config{
		ClientID: h.provider.ClientID, ClientSecret: h.provider.ClientSecret, Endpoint: found.Endpoint(), Scopes: scopes,
		RedirectURL: scheme + "://" + r.Host + h.options.Base + "/login/callback",
	}
}

// loginByProvider sends somebody to the provider.
func (h *Handler) loginByProvider(w http.ResponseWriter, r *http.Request) {
	if h.provider == nil {
		h.refuse(w, r, http.StatusNotFound, "this server knows no provider; sign in with a token")
		return
	}
	found, scopes, err := h.provider.discover(r.Context())
	if err != nil {
		h.failed(w, r, http.StatusBadGateway, err)
		return
	}
	f := flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Next: h.local(r.FormValue("next")), Until: time.Now().Add(flowTime)}
	if err := h.setCookie(w, r, "flow", f, flowTime); err != nil {
		f.Next = h.local("") // the way on was too long
		if err := h.setCookie(w, r, "flow", f, flowTime); err != nil {
			h.failed(w, r, http.StatusInternalServerError, err)
			return
		}
	}
	config := h.config(r, found, scopes)
	http.Redirect(w, r, config.AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), http.StatusSeeOther)
}

// refusedError says why a sign-in is refused, to the person.
type refusedError string

func (e refusedError) Error() string { return string(e) }

// callback begins the session of somebody whom the provider returns.
func (h *Handler) callback(w http.ResponseWriter, r *http.Request) {
	if h.provider == nil {
		h.refuse(w, r, http.StatusNotFound, "this server knows no provider; sign in with a token")
		return
	}
	var f flow
	cookie, err := r.Cookie(h.cookieName(r, "flow"))
	h.clearCookie(w, r, "flow") // a code is used once
	if err != nil || !h.sealer.open("flow", cookie.Value, &f) || !time.Now().Before(f.Until) {
		h.refuse(w, r, http.StatusBadRequest, "the sign-in took too long, began elsewhere, or was done already; begin again")
		return
	}
	if subtle.ConstantTimeCompare([]byte(r.FormValue("state")), []byte(f.State)) != 1 {
		h.refuse(w, r, http.StatusBadRequest, "the answer of the provider belongs to another sign-in; begin again")
		return
	}
	if code := r.FormValue("error"); code != "" {
		h.failed(w, r, http.StatusForbidden, fmt.Errorf("the provider refused the sign-in: %.60s (%.200s)", code, r.FormValue("error_description")))
		return
	}
	who, err := h.personOf(r, f)
	var refused refusedError
	switch {
	case errors.As(err, &refused):
		h.failed(w, r, http.StatusForbidden, err)
		return
	case err != nil:
		h.failed(w, r, http.StatusBadGateway, err)
		return
	}
	caller, has := h.provider.callerOf(who)
	if !has {
		h.failed(w, r, http.StatusForbidden, fmt.Errorf("%s has none of the groups and addresses that have a role here; ask an admin of the server", who.name()))
		return
	}
	if err := h.begin(w, r, session{Issuer: h.provider.Issuer, Person: who}); err != nil {
		h.failed(w, r, http.StatusForbidden, err)
		return
	}
	h.log.Emit(event.SignedIn, "", "by", caller.Name, "role", string(caller.Role))
	http.Redirect(w, r, f.Next, http.StatusSeeOther)
}

// personOf exchanges the code for tokens, and returns whom they name.
func (h *Handler) personOf(r *http.Request, f flow) (person, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(r.Context(), client), flowEnd)
	defer cancel()
	found, scopes, err := h.provider.discover(ctx)
	if err != nil {
		return person{}, err
	}
	if issuer := r.FormValue("iss"); issuer != "" && issuer != h.provider.Issuer { // RFC 9207
		return person{}, refusedError("another provider answered the sign-in")
	}
	config := h.config(r, found, scopes)
	tokens, err := config.Exchange(ctx, r.FormValue("code"), oauth2.VerifierOption(f.Verifier))
	var answered *oauth2.RetrieveError
	if errors.As(err, &answered) {
		return person{}, refusedError(fmt.Sprintf("the provider refused the code: %.60s (%.200s); begin again, and if that does not help, check client_id and client_secret_file", answered.ErrorCode, answered.ErrorDescription))
	}
	if err != nil {
		return person{}, fmt.Errorf("the provider does not exchange the code: %w", err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	verified, err := found.Verifier(&oidc.Config{ClientID: h.provider.ClientID}).Verify(ctx, raw)
	if err != nil {
		return person{}, refusedError("the ID token of the provider is not valid: " + err.Error())
	}
	if subtle.ConstantTimeCompare([]byte(verified.Nonce), []byte(f.Nonce)) != 1 {
		return person{}, refusedError("the ID token belongs to another sign-in: its nonce is wrong; begin again")
	}
	claims := make(map[string]any)
	if err := verified.Claims(&claims); err != nil {
		return person{}, refusedError("the ID token of the provider is not readable: " + err.Error())
	}
	if by, has := claims["azp"]; has && by != h.provider.ClientID {
		return person{}, refusedError("the ID token was made for another client")
	}
	return h.describe(ctx, found, tokens, verified.Subject, claims)
}

// describe returns a person by the claims of the ID token, and of the userinfo endpoint if the token lacks some.
func (h *Handler) describe(ctx context.Context, found *oidc.Provider, tokens *oauth2.Token, subject string, claims map[string]any) (person, error) {
	groups := h.provider.GroupsClaim
	if groups == "" {
		groups = "groups"
	}
	_, hasGroups := claims[groups]
	_, hasEmail := claims["email"]
	if (!hasGroups || !hasEmail) && found.UserInfoEndpoint() != "" {
		more, err := found.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
		if err != nil {
			return person{}, fmt.Errorf("the provider does not describe the person: %w", err)
		}
		if more.Subject != subject {
			return person{}, refusedError("the provider described another person")
		}
		told := make(map[string]any)
		if err := more.Claims(&told); err != nil {
			return person{}, fmt.Errorf("the provider's description of the person is not readable: %w", err)
		}
		addTold(claims, told)
	}
	who := person{Subject: subject, Groups: h.provider.mentions(texts(claims[groups]))}
	email, _ := claims["email"].(string)
	if isTrue(claims["email_verified"]) && sluice.StoredText(email) == email {
		who.Email = email
	}
	return who, nil
}

// addTold adds to claims what the userinfo endpoint tells. That an address is verified says nothing of another one.
func addTold(claims, told map[string]any) {
	if _, has := claims["email"]; !has {
		delete(claims, "email_verified")
	} else if other, is := told["email"].(string); is && other != claims["email"] {
		delete(told, "email_verified")
	}
	for name, value := range told {
		if _, has := claims[name]; !has {
			claims[name] = value
		}
	}
}

// texts returns a claim as a list: some providers send one name as a text.
func texts(claim any) []string {
	switch claim := claim.(type) {
	case string:
		return []string{claim}
	case []any:
		var list []string
		for _, one := range claim {
			if text, is := one.(string); is {
				list = append(list, text)
			}
		}
		return list
	case map[string]any: // roles by name
		var list []string
		for name := range claim {
			list = append(list, name)
		}
		return list
	}
	return nil
}

// isTrue reports whether a claim is true: some providers send it as a text.
func isTrue(claim any) bool {
	text, err := json.Marshal(claim)
	return err == nil && strings.Trim(string(text), `"`) == "true"
}
