package cli

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/sluice-queue/sluice/cmd/console"
)

// consoleNotOpen answers people while the store is not open.
func consoleNotOpen(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1")
	w.Header().Set("Refresh", "1")
	http.Error(w, "The store is not open yet. This page tries again.", http.StatusServiceUnavailable)
}

// openConsole lets people reach the console.
func (s *server) openConsole() error {
	options := console.Options{
		API: s.api.handler(), Base: s.doors[0].site.Base(), Environment: s.flags.environment, RunPage: s.flags.runPage, TracePage: s.flags.tracePage, Store: storeName(s.at), Samples: s.samples,
	}
	for _, text := range s.flags.views {
		name, where, _ := strings.Cut(text, "=")
		options.Views = append(options.Views, console.View{Name: strings.TrimSpace(name), Filter: strings.TrimSpace(where)})
	}
	options.Access = s.accessFacts()
	if s.login {
		options.SignIn = "/login"
	}
	opened, err := console.New(options)
	if err != nil {
		return err
	}
	s.console.open(opened)
	return nil
}

// accessFacts say how people reach the server.
func (s *server) accessFacts() *console.Access {
	at := s.doors[0].listener.Addr().String()
	facts := &console.Access{Ways: s.ways(), Address: at, Reach: "other machines can connect"}
	switch {
	case onLoopback(at) && s.flags.api.behindProxy:
		facts.Reach = "this machine alone can connect, and a proxy on it lets others through"
	case onLoopback(at):
		facts.Reach = "this machine alone can connect"
	}
	if s.login {
		facts.SessionEnd = s.signinDoor.handler().SessionEnd
	}
	return facts
}

// storeName says where a store is, without users and passwords.
func storeName(at address) string {
	if at.sqlite != "" {
		return "SQLite " + filepath.Base(at.sqlite)
	}
	u, err := url.Parse(at.postgres)
	if err != nil || u.Host == "" {
		return "PostgreSQL"
	}
	return "PostgreSQL " + u.Hostname() + u.Path
}
