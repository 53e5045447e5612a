package cli

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/httpapi"
)

// apiFlags say how callers reach the HTTP API.
type apiFlags struct {
	cert, key   string
	clientCA    string
	behindProxy bool
	login       bool
	signin      signinFlags
}

func (f *apiFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.cert, "tls-cert", "", "certificate of --listen, as PEM; read again when the file changes")
	flags.StringVar(&f.key, "tls-key", "", "private key of --tls-cert, as PEM")
	flags.StringVar(&f.clientCA, "tls-client-ca", "", "authority of certificates, as PEM, by which callers prove the name of a token; read again when the file changes")
	flags.BoolVar(&f.behindProxy, "behind-proxy", false, "a proxy in front of --listen encrypts; callers need a token")
	flags.BoolVar(&f.login, "login", false, "callers need a token on loopback too")
	f.signin.addTo(flags)
}

// check refuses an address that others reach, unless something encrypts.
func (f *apiFlags) check(listen string) error {
	if (f.cert == "") != (f.key == "") {
		return usagef("--tls-cert and --tls-key go together")
	}
	if f.clientCA != "" && f.cert == "" {
		return usagef("--tls-client-ca needs --tls-cert and --tls-key: what ends the encryption must see the certificates")
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
	return f.login || f.clientCA != "" || f.signin.oidc != "" || f.behindProxy || !onLoopback(listen)
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

// maxAPIConnections is the most open connections of --listen: the requests of one caller that wait leave room for those of others,
// since one connection too many closes another.
var maxAPIConnections = 4 * httpapi.DefaultBounds().Waiting

// openAPI lets callers reach a store.
func (s *server) openAPI(store sluice.Store) {
	s.api.open(httpapi.New(store, httpapi.Options{
		NoLogin: !s.login, Identify: s.openSignin(store), Engines: s.engines, Receivers: s.receivers, Metrics: s.app.metrics.handler(), Logger: s.app.logger(),
		Clean: func(text string) string { return redact(s.app.log.clean()(text)) },
	}))
}
