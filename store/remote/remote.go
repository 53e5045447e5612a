// Package remote is a store behind a server's HTTP API: workers, clients and the command line use `https://jobs.example.com` as
// they use a database.
//
// Begin with [Open]. The server does the upkeep and keeps the rules; its token decides what the program may do. What only the
// database can do, such as transactions, is an [*UnsupportedError].
//
// Read next: docs/guide/remote.md.
package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Options adjust a [Store]. The zero value works on a server that asks for no token.
type Options struct {
	// Token is the secret of `sluice tokens create`. Default: none.
	Token string
	// Client sends the requests, such as through a proxy or with a certificate of its own. Its Timeout must be 0.
	// Default: a client of the store's own.
	Client *http.Client
	// CallTimeout is how long a call tries again while the server or its store is out of reach. Default: 30 s.
	CallTimeout time.Duration
}

// Store is a store behind a server. It implements [sluice.Store]. Many goroutines may share it.
type Store struct {
	root    string // of the API
	options Options
	client  *http.Client
	closing context.Context
	close   context.CancelFunc
	calls   sync.WaitGroup
}

// apiRoot begins the path of every request, below the path of the server's address.
const apiRoot = "/api/v1"

// Open opens the store of a server at an address, such as https://jobs.example.com. It asks the server who the token is.
//
// A server out of reach is a [sluice.ErrUnavailable], and a token that it does not know an [ErrRefused]. Over http, a token
// goes only to this machine: elsewhere, everybody on the way could read it.
func Open(ctx context.Context, address string, options Options) (*Store, error) {
	at, err := parseAddress(address, options.Token)
	if err != nil {
		return nil, err
	}
	if options.CallTimeout < 0 {
		return nil, feature.Invalid("option CallTimeout", fmt.Sprintf("%s must be 0 (the default) or more", options.CallTimeout))
	}
	options.CallTimeout = cmp.Or(options.CallTimeout, 30*time.Second)
	s := &Store{root: at + apiRoot, options: options, client: options.Client}
	if s.client == nil {
		s.client = ownClient()
	}
	s.closing, s.close = context.WithCancel(context.Background())
	var who struct {
		Name string `json:"name"`
	}
	if err := s.call(ctx, request{verb: "open the store", path: "/whoami", out: &who}); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// ownClient makes a client for many calls at once to one server.
func ownClient() *http.Client {
	transport, _ := http.DefaultTransport.(*http.Transport)
	transport = transport.Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 64
	return &http.Client{Transport: transport}
}

// IsAddress reports whether a text is the address of a server, and not of a database.
func IsAddress(text string) bool {
	return strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")
}

// parseAddress checks the address of a server.
func parseAddress(address, token string) (string, error) {
	at, err := url.Parse(address)
	switch {
	case err != nil || !IsAddress(address) || at.Host == "":
		return "", feature.Invalid("address", fmt.Sprintf("%.80q must be the address of a server, such as https://jobs.example.com", redacted(address)))
	case at.User != nil || at.RawQuery != "" || at.Fragment != "":
		return "", feature.Invalid("address", "must have no user, query or fragment; give the token apart")
	case token != "" && at.Scheme == "http" && !isLoopback(at.Hostname()):
		return "", feature.Invalid("address", fmt.Sprintf("http://%s would show the token to everybody on the way; use https", at.Host))
	case strings.ContainsAny(token, " \t\r\n") || strings.ContainsFunc(token, func(r rune) bool { return r < ' ' || r > '~' }):
		return "", feature.Invalid("option Token", "must be the secret of `sluice tokens create`, without blanks")
	}
	return at.Scheme + "://" + at.Host + strings.TrimSuffix(strings.TrimSuffix(at.Path, "/"), apiRoot), nil
}

// redacted removes what may be a secret from an address.
func redacted(address string) string {
	if at, err := url.Parse(address); err == nil {
		return at.Redacted()
	}
	return "an address"
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Close ends the calls under way with [sluice.ErrUnavailable].
func (s *Store) Close() error {
	s.close()
	s.calls.Wait()
	s.client.CloseIdleConnections()
	return nil
}

// Outage reports whether an error says that the server or its store was out of reach.
func (s *Store) Outage(err error) bool { return errors.Is(err, sluice.ErrUnavailable) }
