package cli

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/pflag"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/signin"
	"github.com/sluice-queue/sluice/internal/event"
)

// signinFlags say how people sign in.
type signinFlags struct {
	oidc, keys string
	lifetime   time.Duration
}

func (f *signinFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.oidc, "oidc", "", "file with the OpenID provider by which people sign in, and with their roles")
	flags.StringVar(&f.keys, "session-key-file", "", "file with the key of sessions, which servers share; default: a random one per process")
	flags.Var(newDuration(&f.lifetime, signin.DefaultLifetime), "session-lifetime", "how long people stay signed in")
}

// read returns the options of the flags.
func (f *signinFlags) read() (options signin.Options, err error) {
	if f.lifetime <= 0 {
		return options, usagef("--session-lifetime must be more than 0s")
	}
	options.Lifetime = f.lifetime
	if f.keys != "" {
		if options.Keys, err = signin.ReadKeys(f.keys); err != nil {
			return options, codedError{fmt.Errorf("--session-key-file: %w", err), exitUsage, "name a file with a long random text, as `openssl rand -base64 48` makes one"}
		}
	}
	if f.oidc != "" {
		provider, err := signin.ReadProvider(f.oidc)
		if err != nil {
			return options, codedError{fmt.Errorf("--oidc: %w", err), exitUsage, "docs/guide/secure.md shows such a file"}
		}
		options.Provider = &provider
	}
	return options, nil
}

// openSignin lets people sign in, and returns how the API knows them. Nil: nobody needs to.
func (s *server) openSignin(store sluice.Store) func(*http.Request) (access.Caller, error) {
	if !s.login {
		return nil
	}
	options, door := s.signin, s.doors[0]
	options.Base, options.Home, options.Logger = door.site.Base(), "/", s.app.logger()
	options.Insecure = door.options.TLS == nil && !s.flags.api.behindProxy
	options.BehindProxy = s.flags.api.behindProxy
	options.Certificates = s.flags.api.clientCA != ""
	if len(options.Keys) == 0 {
		s.log.Emit(event.SessionsEndEarly, "")
	}
	handler := signin.New(store, options)
	s.signinDoor.open(handler)
	return handler.Identify
}
