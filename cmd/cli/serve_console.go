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
		API: s.api.handler(), Base: s.doors[0].site.Base(), Environment: s.flags.environment, RunPage: s.flags.runPage, TracePage: s.flags.tracePage, Store: storeName(s.at),
	}
	for _, text := range s.flags.views {
		name, where, _ := strings.Cut(text, "=")
		options.Views = append(options.Views, console.View{Name: strings.TrimSpace(name), Filter: strings.TrimSpace(where)})
	}
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
