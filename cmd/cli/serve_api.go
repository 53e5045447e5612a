package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/api"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/internal/event"
)

// apiFlags say how callers reach the HTTP API.
type apiFlags struct {
	cert, key   string
	behindProxy bool
	login       bool
	signin      signinFlags
}

func (f *apiFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.cert, "tls-cert", "", "certificate of --listen, as PEM; read again when the file changes")
	flags.StringVar(&f.key, "tls-key", "", "private key of --tls-cert, as PEM")
	flags.BoolVar(&f.behindProxy, "behind-proxy", false, "a proxy in front of --listen encrypts; callers need a token")
	flags.BoolVar(&f.login, "login", false, "callers need a token on loopback too")
	f.signin.addTo(flags)
}

// check refuses an address that others reach, unless something encrypts.
func (f *apiFlags) check(listen string) error {
	if (f.cert == "") != (f.key == "") {
		return usagef("--tls-cert and --tls-key go together")
	}
	at, err := listenAddress(listen)
	if err != nil || onLoopback(at) || f.cert != "" || f.behindProxy {
		return nil //nolint:nilerr // the door reports it
	}
	return codedError{
		usagef("--listen %s is reached by others, who could read what callers send", listen), exitUsage,
		"encrypt with --tls-cert and --tls-key, or let a proxy do it and add --behind-proxy; for health and metrics alone, use --monitor",
	}
}

// needsLogin reports whether callers need a token or a session.
func (f *apiFlags) needsLogin(listen string) bool {
	return f.login || f.signin.oidc != "" || f.behindProxy || !onLoopback(listen)
}

// checkTokens refuses to ask callers for tokens if no token works.
func (s *server) checkTokens(ctx context.Context, store sluice.Store) error {
	if !s.login || s.signin.Provider != nil {
		return nil
	}
	now, err := store.Now(ctx)
	if err != nil {
		return err
	}
	for after := ""; ; {
		page, err := access.Tokens(ctx, store, after, tokensPage)
		if err != nil {
			return err
		}
		for _, token := range page {
			if after = token.Name; token.ExpiresAt.IsZero() || token.ExpiresAt.After(now) {
				return nil
			}
		}
		if len(page) < tokensPage {
			return codedError{
				errors.New("callers of the API need a token, and the store has none that works"), exitUsage,
				"make one first: sluice tokens create NAME --role ROLE; on loopback alone, leave out --login and --behind-proxy",
			}
		}
	}
}

// tokensPage is how many tokens one call lists.
const tokensPage = 1000

// maxAPIConnections is the most open connections of --listen; many callers wait.
const maxAPIConnections = 10_000

// apiDoor answers the API once the store is open.
type apiDoor struct{ opened atomic.Pointer[httpapi.API] }

// ServeHTTP answers a request.
func (d *apiDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if opened := d.opened.Load(); opened != nil {
		opened.ServeHTTP(w, r)
		return
	}
	notYet(w)
}

// notYet answers while the store is not open.
func notYet(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	api.WriteProblem(w, api.Problem{Status: http.StatusServiceUnavailable, Detail: "the store is not open yet; send it again"})
}

// open lets callers reach a store.
func (s *server) openAPI(store sluice.Store) {
	s.api.opened.Store(httpapi.New(store, httpapi.Options{
		NoLogin: !s.login, Identify: s.openSignin(store), Engines: s.engines, Metrics: s.app.metrics.handler(), Logger: s.app.logger(),
		Clean: func(text string) string { return redact(s.app.log.clean()(text)) },
	}))
}

// certificate reads a certificate again when its file changes.
type certificate struct {
	cert, key string
	log       *event.Log

	mu     sync.Mutex
	loaded *tls.Certificate
	at     [2]time.Time // of the files
	next   time.Time    // look
}

// tlsConfig returns the encryption of the flags. Nil: none.
func (f *apiFlags) tlsConfig(log *event.Log) (*tls.Config, error) {
	if f.cert == "" {
		return nil, nil
	}
	c := &certificate{cert: f.cert, key: f.key, log: log}
	if err := c.load(); err != nil {
		return nil, codedError{fmt.Errorf("--tls-cert, --tls-key: %w", err), exitUsage, "name the files of a certificate and its private key, as PEM"}
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get, NextProtos: []string{"h2", "http/1.1"}}, nil
}

// certificateLook is how often the files are looked at.
const certificateLook = time.Second

// get returns the certificate, read again if a file has changed. A certificate that cannot be read leaves the last one.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.After(c.next) {
		c.next = now.Add(certificateLook)
		if changed, err := c.changes(); err == nil && changed == c.at {
			return c.loaded, nil
		}
		if err := c.load(); err != nil {
			c.log.Emit(event.CertificateKept, "", "error", err)
		}
	}
	return c.loaded, nil
}

func (c *certificate) changes() (at [2]time.Time, err error) {
	for i, path := range []string{c.cert, c.key} {
		info, err := os.Stat(path)
		if err != nil {
			return at, err
		}
		at[i] = info.ModTime()
	}
	return at, nil
}

func (c *certificate) load() error {
	at, err := c.changes()
	if err != nil {
		return err
	}
	loaded, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return errors.New("the certificate or its key cannot be used: " + err.Error())
	}
	c.loaded, c.at = &loaded, at
	return nil
}
