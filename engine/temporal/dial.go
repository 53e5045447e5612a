package temporal

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/sluice-queue/sluice"
)

// Server holds the address and the credentials of a Temporal server.
type Server struct {
	// Address is the server's host and port. Default: localhost:7233.
	Address string
	// APIKey is sent with each call. A key turns on TLS.
	APIKey string
	// APIKeyFile is a file with the key, instead of APIKey. Each call reads it again, so a new key needs no restart.
	APIKeyFile string
	// TLS turns on TLS without the files below.
	TLS bool
	// Cert and Key are PEM files of the client's certificate and its private key; both or none. Each new connection reads
	// them again, so a renewed certificate needs no restart.
	Cert, Key string
	// CA is a PEM file of the authorities that may have signed the server's certificate. Default: the system's.
	CA string
	// Name is the name in the server's certificate. Default: the host of the address.
	Name string
}

// Dial makes an engine with its own connection, which [Engine.Close] ends. The server need not be reachable
// yet; the first call shows it. Unusable files are a [sluice.ErrInvalid].
func Dial(server Server, options Options) (*Engine, error) {
	options = withDefaults(options)
	encryption, err := server.encryption()
	if err != nil {
		return nil, err
	}
	credentials, err := server.credentials()
	if err != nil {
		return nil, err
	}
	dial := client.Options{
		Credentials: credentials,
		HostPort:    server.Address, Namespace: options.Namespace, Identity: options.Identity, DataConverter: options.DataConverter,
		FailureConverter: options.FailureConverter, Logger: log.NewStructuredLogger(options.Logger), ConnectionOptions: client.ConnectionOptions{TLS: encryption},
	}
	c, err := client.NewLazyClient(dial)
	if err != nil {
		return nil, fmt.Errorf("connect to Temporal at %q: %w", server.Address, err)
	}
	e := New(c, options)
	e.close = c.Close
	return e, nil
}

// encryption returns nil for a connection without TLS.
func (s Server) encryption() (*tls.Config, error) {
	if s.APIKey == "" && s.APIKeyFile == "" && !s.TLS && s.Cert == "" && s.Key == "" && s.CA == "" && s.Name == "" {
		return nil, nil
	}
	config := &tls.Config{ServerName: s.Name, MinVersion: tls.VersionTLS12}
	if s.Cert != "" || s.Key != "" {
		first, err := s.pair()
		if err != nil {
			return nil, unusable("the certificate and its key", err)
		}
		pair := newest(first, s.pair)
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			now := pair()
			return &now, nil
		}
	}
	if s.CA != "" {
		text, err := os.ReadFile(s.CA)
		if err != nil {
			return nil, unusable("the certificates of the authority", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, unusable("the certificates of the authority", errors.New(s.CA+" holds none, as PEM"))
		}
	}
	return config, nil
}

// newest returns a function that reads a value anew at each call. While it cannot be read, such as in the middle of a change,
// the last value counts.
func newest[T any](first T, read func() (T, error)) func() T {
	var last atomic.Pointer[T]
	last.Store(&first)
	return func() T {
		if value, err := read(); err == nil {
			last.Store(&value)
		}
		return *last.Load()
	}
}

// pair reads the client's certificate and its private key.
func (s Server) pair() (tls.Certificate, error) { return tls.LoadX509KeyPair(s.Cert, s.Key) }

// key reads the file with the API key. Without a key, the connection would be neither encrypted nor permitted.
func (s Server) key() (string, error) {
	text, err := os.ReadFile(s.APIKeyFile)
	if err != nil {
		return "", err
	}
	key := strings.TrimSpace(string(text))
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("the file %s must hold one key and nothing else", s.APIKeyFile)
	}
	return key, nil
}

// credentials returns the API key for each call; nil: there is none.
func (s Server) credentials() (client.Credentials, error) {
	switch {
	case s.APIKeyFile != "":
		first, err := s.key()
		if err != nil {
			return nil, unusable("the API key", err)
		}
		key := newest(first, s.key)
		return client.NewAPIKeyDynamicCredentials(func(context.Context) (string, error) { return key(), nil }), nil
	case s.APIKey != "":
		return client.NewAPIKeyStaticCredentials(s.APIKey), nil
	}
	return nil, nil
}

func unusable(what string, err error) error {
	return fmt.Errorf("%w: read %s for Temporal: %w", sluice.ErrInvalid, what, err)
}
