package cli

import (
	"net/http"
	"net/url"
	"path/filepath"
	"sync/atomic"

	"github.com/sluice-queue/sluice/cmd/console"
)

// consoleDoor answers the console once the store is open.
type consoleDoor struct {
	opened atomic.Pointer[console.Console]
}

// ServeHTTP answers a request.
func (d *consoleDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if opened := d.opened.Load(); opened != nil {
		opened.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Retry-After", "1")
	w.Header().Set("Refresh", "1")
	http.Error(w, "The store is not open yet. This page tries again.", http.StatusServiceUnavailable)
}

// openConsole lets people reach the console.
func (s *server) openConsole() error {
	options := console.Options{
		API: s.api.opened.Load(), Base: s.doors[0].site.Base(), Environment: s.flags.environment, RunPage: s.flags.runPage, Store: storeName(s.at),
	}
	if s.login {
		options.SignIn = "/login"
	}
	opened, err := console.New(options)
	s.console.opened.Store(opened)
	return err
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
