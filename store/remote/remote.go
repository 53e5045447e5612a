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
	"net/http"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Options adjust a [Store]. The zero value works on a server that asks for no token.
type Options struct {
	// Token is the secret of `sluice tokens create`. Default: none.
	Token string
	// Client sends the requests, such as through a proxy or with a certificate in memory. Its Timeout must be 0, and the address
	// then names no files. Default: [HTTPClient] of the address.
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
// Parameters of the address name files, as PEM: https://jobs.example.com?ca=authority.pem trusts the certificates of that
// authority alone, and cert=FILE&key=FILE shows a certificate to a server that takes it in place of a token. A renewed
// certificate counts from the next connection on.
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
	s := &Store{root: at.url + apiRoot, options: options, client: options.Client}
	switch {
	case s.client == nil:
		if s.client, err = at.client(); err != nil {
			return nil, err
		}
	case at.encrypts():
		return nil, feature.Invalid("option Client", "must be nil, or the address must name no files")
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

// Close ends the calls under way with [sluice.ErrUnavailable].
func (s *Store) Close() error {
	s.close()
	s.calls.Wait()
	s.client.CloseIdleConnections()
	return nil
}

// Outage reports whether an error says that the server or its store was out of reach.
func (s *Store) Outage(err error) bool { return errors.Is(err, sluice.ErrUnavailable) }
