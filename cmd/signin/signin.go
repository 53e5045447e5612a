// Package signin lets people sign in to a server: by a token of the HTTP API, or by an OpenID provider. It tells the API
// who sends a request.
//
// Begin with [New], which makes a [Handler]. It is an http.Handler for /login and /logout, and its method Identify goes
// into the options of package httpapi. Sessions are sealed cookies: the server keeps nothing.
//
// Read next: docs/guide/secure.md.
package signin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/internal/event"
)

// DefaultLifetime is how long a session lasts if the options say nothing.
const DefaultLifetime = 12 * time.Hour

// Options adjust a [Handler]. The zero value signs people in by tokens.
type Options struct {
	// Base is the path below which the handler is mounted, such as /sluice. Default: none.
	Base string
	// Home is the path below the base to which people come after they sign in, unless they were on their way to
	// another. Default: /login, which shows who is signed in.
	Home string
	// Insecure sends cookies over connections without encryption too. Only right on loopback. Default: browsers send
	// cookies over https alone, and the provider returns people to https.
	Insecure bool
	// Keys seal sessions. The first seals, all open. Servers that share them share sessions. Default: a random key, so
	// that sessions end with the handler.
	Keys []Key
	// Lifetime is how long a session lasts at most. Default: [DefaultLifetime].
	Lifetime time.Duration
	// Provider signs people in. Default: people sign in by tokens only.
	Provider *Provider
	// Certificates lets programs prove who they are by the certificate of their connection, which the listener must
	// have verified: its common name is the name of a token, whose role and bounds count. Default: certificates say
	// nothing.
	Certificates bool
	// BehindProxy says that a proxy sends all requests, and adds the address of each sender to the header X-Forwarded-For. Unknown
	// tokens count by it. Default: they count by the address of the connection.
	BehindProxy bool
	// Logger gets sign-ins; see docs/events.md. Default: slog.Default.
	Logger *slog.Logger
}

// Handler answers /login, the paths below it, and /logout. Its paths do not have the base. Many goroutines may use it.
type Handler struct {
	options  Options
	gate     *access.Gate
	sealer   sealer
	provider *provider
	log      *event.Log
	mux      *http.ServeMux
}

// New makes the sign-in to a store's server.
func New(store sluice.Store, options Options) *Handler {
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	if options.Lifetime <= 0 {
		options.Lifetime = DefaultLifetime
	}
	options.Base = strings.TrimSuffix(options.Base, "/")
	if options.Home == "" {
		options.Home = "/login"
	}
	if len(options.Keys) == 0 {
		options.Keys = []Key{{}}
		_, _ = rand.Read(options.Keys[0][:]) // it never fails
	}
	h := &Handler{
		options: options, gate: access.NewGate(store), sealer: newSealer(options.Keys),
		log: event.NewLog(options.Logger, "", 0), mux: http.NewServeMux(),
	}
	if options.Provider != nil {
		h.provider = &provider{Provider: *options.Provider}
	}
	h.mux.HandleFunc("GET /login", h.showLogin)
	h.mux.HandleFunc("POST /login", h.loginByToken)
	h.mux.HandleFunc("GET /login/style.css", style)
	h.mux.HandleFunc("GET /login/oidc", h.loginByProvider)
	h.mux.HandleFunc("GET /login/callback", h.callback)
	h.mux.HandleFunc("GET /logout", h.showLogin)
	h.mux.HandleFunc("POST /logout", h.logout)
	return h
}

// policy lets a page of this package use its style sheet alone.
const policy = "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// fromThisSite refuses requests that a browser sends for a page of another site.
var fromThisSite = http.NewCrossOriginProtection()

// maxForm is the largest form, in bytes.
const maxForm = 16 << 10

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{
		"Content-Security-Policy": policy, "Cache-Control": "no-store", "Referrer-Policy": "same-origin", "X-Content-Type-Options": "nosniff",
		"X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin",
	} {
		w.Header().Set(name, value)
	}
	if err := fromThisSite.Check(r); err != nil {
		h.refuse(w, r, http.StatusForbidden, "the page of another site sent the form; sign in on this page")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	h.mux.ServeHTTP(w, r)
}

// unknownError says why the sender of a request is not known. It is an [access.ErrUnknown].
type unknownError string

func (e unknownError) Error() string { return string(e) }

func (e unknownError) Is(target error) bool { return target == access.ErrUnknown } //nolint:errorlint // by identity, as errors.Is wants

// The reasons why nobody is known.
const (
	errNobody  = unknownError("the request has no token and no session")
	errNoCert  = unknownError("the request has no token and no session, and its connection no certificate")
	errCert    = unknownError("the common name of the certificate is no token's name, or the token was revoked or has ended")
	errCertEnd = unknownError("the certificate of the connection has expired")
	errEnded   = unknownError("the session has ended, or this server cannot read it: sign in again")
	errNoToken = unknownError("the token of the session was revoked, or it has ended: sign in again")
	errNoRole  = unknownError("none of the person's groups has a role here any more: sign in again, or ask an admin")
)

// Identify names the sender of a request: by the token of its header Authorization, else by its session, else by its
// certificate. An unknown sender is an [access.ErrUnknown]. Other errors are those of [access.Gate].
func (h *Handler) Identify(r *http.Request) (access.Caller, error) {
	if authorization := r.Header.Get("Authorization"); authorization != "" {
		secret, is := strings.CutPrefix(authorization, "Bearer ")
		if !is {
			return access.Caller{}, errNobody
		}
		return h.gate.Caller(h.from(r), strings.TrimSpace(secret))
	}
	cookie, err := r.Cookie(h.cookieName(r, "session"))
	if err == nil {
		return h.callerOf(r, cookie.Value)
	}
	switch {
	case !h.options.Certificates:
		return access.Caller{}, errNobody
	case r.TLS == nil || len(r.TLS.VerifiedChains) == 0:
		return access.Caller{}, errNoCert
	}
	return h.certified(r, r.TLS.VerifiedChains[0][0])
}

// from returns the context of a request for the gate: it says where the request comes from.
func (h *Handler) from(r *http.Request) context.Context {
	ctx := access.WithSender(r.Context(), r.RemoteAddr)
	if !h.options.BehindProxy {
		return ctx
	}
	told := strings.Join(r.Header.Values("X-Forwarded-For"), ",")
	return access.WithSender(ctx, strings.TrimSpace(told[strings.LastIndexByte(told, ',')+1:])) // the proxy adds the last one; senders may invent those before
}

// certified returns the caller whom a verified certificate names. A connection may outlive its certificate.
func (h *Handler) certified(r *http.Request, certificate *x509.Certificate) (access.Caller, error) {
	if time.Now().After(certificate.NotAfter) {
		return access.Caller{}, errCertEnd
	}
	caller, err := h.gate.Named(h.from(r), certificate.Subject.CommonName)
	if errors.Is(err, access.ErrUnknown) {
		return access.Caller{}, errCert
	}
	return caller, err
}

// callerOf returns whose a session is.
func (h *Handler) callerOf(r *http.Request, sealed string) (access.Caller, error) {
	var s session
	if !h.sealer.open("session", sealed, &s) || !time.Now().Before(s.Until) {
		return access.Caller{}, errEnded
	}
	if s.Secret != "" {
		caller, err := h.gate.Caller(h.from(r), s.Secret)
		if errors.Is(err, access.ErrUnknown) {
			return access.Caller{}, errNoToken
		}
		return caller, err
	}
	if h.provider == nil || s.Issuer != h.provider.Issuer {
		return access.Caller{}, errEnded
	}
	caller, has := h.provider.callerOf(s.Person)
	if !has {
		return access.Caller{}, errNoRole
	}
	return caller, nil
}

// SessionEnd returns when the session of a request ends at the latest. It is zero if the request has none that is open. Whether
// its token or person still has a role, Identify says.
func (h *Handler) SessionEnd(r *http.Request) time.Time {
	var s session
	cookie, err := r.Cookie(h.cookieName(r, "session"))
	if err != nil || r.Header.Get("Authorization") != "" || !h.sealer.open("session", cookie.Value, &s) || !time.Now().Before(s.Until) {
		return time.Time{}
	}
	return s.Until
}

// session is what its cookie says, sealed.
type session struct {
	// Secret is that of the token by which somebody signed in. The session ends with the token.
	Secret string `json:"secret,omitempty"`
	// Issuer is the provider that named the person. Their role is looked up again for each request.
	Issuer string    `json:"issuer,omitempty"`
	Person person    `json:"person,omitzero"`
	Until  time.Time `json:"until"`
}

// begin gives a browser a session.
func (h *Handler) begin(w http.ResponseWriter, r *http.Request, s session) error {
	s.Until = time.Now().Add(h.options.Lifetime)
	return h.setCookie(w, r, "session", s, h.options.Lifetime)
}

// maxCookie is the longest value of a cookie that every browser keeps, in bytes.
const maxCookie = 3800

// errTooLong refuses a cookie that no browser keeps.
var errTooLong = errors.New("the session is too long for a cookie: let the provider send fewer and shorter groups")

// setCookie gives a browser a sealed cookie.
func (h *Handler) setCookie(w http.ResponseWriter, r *http.Request, purpose string, value any, lifetime time.Duration) error {
	sealed := h.sealer.seal(purpose, value)
	if len(sealed) > maxCookie {
		return errTooLong
	}
	http.SetCookie(w, h.cookie(r, purpose, sealed, int(max(lifetime, time.Second)/time.Second)))
	return nil
}

// clearCookie takes a cookie from a browser.
func (h *Handler) clearCookie(w http.ResponseWriter, r *http.Request, purpose string) {
	http.SetCookie(w, h.cookie(r, purpose, "", -1))
}

// cookie returns a cookie that scripts cannot read, and that browsers send for pages of this site alone. Lax lets them
// send it when the provider returns somebody.
func (h *Handler) cookie(r *http.Request, purpose, value string, seconds int) *http.Cookie {
	return &http.Cookie{
		Name: h.cookieName(r, purpose), Value: value, Path: "/", MaxAge: seconds,
		Secure: !h.options.Insecure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
}

// cookieName names a cookie. Servers of one host share its cookies, so the name tells bases, and ports of loopback, apart.
func (h *Handler) cookieName(r *http.Request, purpose string) string {
	apart, name := h.options.Base, "sluice-"+purpose
	if h.options.Insecure {
		_, port, _ := net.SplitHostPort(r.Host) // without a port it is 80
		apart += ":" + port
	} else {
		name = "__Host-" + name
	}
	if apart == "" {
		return name
	}
	sum := sha256.Sum256([]byte(apart))
	return name + "-" + hex.EncodeToString(sum[:4])
}

// local returns a path of this server, from what a request says where its sender wants to go. Anything else is the home.
func (h *Handler) local(next string) string {
	home := h.options.Base + h.options.Home
	at, err := url.Parse(next)
	if err != nil || !strings.HasPrefix(next, "/") || at.IsAbs() || at.Host != "" || path.Clean(at.Path) != strings.TrimSuffix(at.Path, "/") && at.Path != "/" || strings.Contains(at.Path, "\\") {
		return home
	}
	if base := h.options.Base; base != "" && at.Path != base && !strings.HasPrefix(at.Path, base+"/") {
		return home
	}
	for _, ours := range []string{"/login", "/logout"} {
		if at.Path == h.options.Base+ours || strings.HasPrefix(at.Path, h.options.Base+ours+"/") {
			return home
		}
	}
	return at.String()
}
