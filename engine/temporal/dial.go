package temporal

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

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
	// TLS turns on TLS without the files below.
	TLS bool
	// Cert and Key are PEM files of the client's certificate and its private key; both or none.
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
	dial := client.Options{
		HostPort: server.Address, Namespace: options.Namespace, Identity: options.Identity, DataConverter: options.DataConverter,
		FailureConverter: options.FailureConverter, Logger: log.NewStructuredLogger(options.Logger), ConnectionOptions: client.ConnectionOptions{TLS: encryption},
	}
	if server.APIKey != "" {
		dial.Credentials = client.NewAPIKeyStaticCredentials(server.APIKey)
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
	if s.APIKey == "" && !s.TLS && s.Cert == "" && s.Key == "" && s.CA == "" && s.Name == "" {
		return nil, nil
	}
	config := &tls.Config{ServerName: s.Name, MinVersion: tls.VersionTLS12}
	if s.Cert != "" || s.Key != "" {
		pair, err := tls.LoadX509KeyPair(s.Cert, s.Key)
		if err != nil {
			return nil, unusable("the certificate and its key", err)
		}
		config.Certificates = []tls.Certificate{pair}
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

func unusable(what string, err error) error {
	return fmt.Errorf("%w: read %s for Temporal: %w", sluice.ErrInvalid, what, err)
}
