package remote

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice/internal/feature"
)

// endpoint is a server, and the files by which it and its caller prove who they are.
type endpoint struct {
	url string // without parameters
	// ca has the certificates of the authority of the server. Empty: the authorities of the system count.
	ca string
	// cert and key are the caller's certificate and its private key.
	cert, key string
}

// IsAddress reports whether a text is the address of a server, and not of a database.
func IsAddress(text string) bool {
	return strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")
}

// HTTPClient returns a client for requests of your own to a server, and the server's URL without the parameters of the address.
// The client trusts the authority that the address names, and shows the certificate.
func HTTPClient(address string) (client *http.Client, url string, err error) {
	at, err := parseAddress(address, "")
	if err != nil {
		return nil, "", err
	}
	client, err = at.client()
	return client, at.url, err
}

// parseAddress checks the address of a server.
func parseAddress(address, token string) (endpoint, error) {
	at, err := url.Parse(address)
	switch {
	case err != nil || !IsAddress(address) || at.Host == "":
		return endpoint{}, feature.Invalid("address", fmt.Sprintf("%.80q must be the address of a server, such as https://jobs.example.com", redacted(address)))
	case at.User != nil || at.Fragment != "":
		return endpoint{}, feature.Invalid("address", "must have no user or fragment; give the token apart")
	case token != "" && at.Scheme == "http" && !isLoopback(at.Hostname()):
		return endpoint{}, feature.Invalid("address", fmt.Sprintf("http://%s would show the token to everybody on the way; use https", at.Host))
	case strings.ContainsAny(token, " \t\r\n") || strings.ContainsFunc(token, func(r rune) bool { return r < ' ' || r > '~' }):
		return endpoint{}, feature.Invalid("option Token", "must be the secret of `sluice tokens create`, without blanks")
	}
	out := endpoint{url: at.Scheme + "://" + at.Host + strings.TrimSuffix(strings.TrimSuffix(at.Path, "/"), apiRoot)}
	if err := out.setAll(at.RawQuery); err != nil {
		return endpoint{}, feature.Invalid("address", err.Error())
	}
	if at.Scheme == "http" && out.encrypts() {
		return endpoint{}, feature.Invalid("address", "ca, cert and key need https")
	}
	return out, nil
}

// setAll reads the parameters of an address. Errors repeat no value, which may be a secret.
func (e *endpoint) setAll(query string) error {
	parameters, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("the parameters cannot be read")
	}
	files := map[string]*string{"ca": &e.ca, "cert": &e.cert, "key": &e.key}
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		switch values := parameters[name]; {
		case files[name] == nil:
			return fmt.Errorf("the parameter %.40q must be ca, cert or key; give the token apart", name)
		case len(values) > 1 || values[0] == "":
			return fmt.Errorf("%s must name one file", name)
		default:
			*files[name] = values[0]
		}
	}
	if (e.cert == "") != (e.key == "") {
		return errors.New("cert and key go together")
	}
	return nil
}

// encrypts reports whether the address names a file.
func (e endpoint) encrypts() bool { return e.ca != "" || e.cert != "" }

const (
	// quiet is how long a connection may say nothing before it is asked whether it is alive, and deaf how long the answer may
	// take. Many calls share a connection of HTTP/2, and a call that times out does not close it.
	quiet, deaf = 10 * time.Second, 5 * time.Second
	// mostIdle is the most idle connections to a server.
	mostIdle = 64
)

// client makes a client for many calls at once to the server.
func (e endpoint) client() (*http.Client, error) {
	transport, _ := http.DefaultTransport.(*http.Transport)
	transport = transport.Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, mostIdle
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: quiet, PingTimeout: deaf}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if e.ca != "" {
		text, err := os.ReadFile(e.ca)
		if err != nil {
			return nil, feature.Invalid("address", "ca: "+err.Error())
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, feature.Invalid("address", "ca: "+e.ca+" has no certificate as PEM")
		}
	}
	if e.cert != "" {
		if _, err := e.certificate(nil); err != nil {
			return nil, feature.Invalid("address", err.Error())
		}
		config.GetClientCertificate = e.certificate // a renewed certificate counts from the next connection
	}
	transport.TLSClientConfig = config
	return &http.Client{Transport: transport}, nil
}

// certificate reads the caller's certificate.
func (e endpoint) certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(e.cert, e.key)
	if err != nil {
		return nil, fmt.Errorf("cert and key must be the files of a certificate and its private key, as PEM: %w", err)
	}
	return &pair, nil
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

// CertificateError says that a connection was refused by a certificate: the caller does not trust the server's, or the server does
// not accept the caller's. It is a [sluice.ErrUnavailable].
type CertificateError struct {
	// Why says the cause, and Do the remedy.
	Why string
	Do  string

	cause error
}

// Error says what is wrong, and what to do.
func (e *CertificateError) Error() string { return e.Why + "; " + e.Do }

// Unwrap returns the error of crypto/tls or net/http.
func (e *CertificateError) Unwrap() error { return e.cause }

// AsCertificateError explains an error of a client of [HTTPClient]. Nil: no certificate is the cause.
func AsCertificateError(err error) *CertificateError {
	var verification *tls.CertificateVerificationError
	var host x509.HostnameError
	var unknown x509.UnknownAuthorityError
	var refused *net.OpError
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return &CertificateError{"the server does not encrypt", "write the address with http://, or let the server encrypt (sluice serve --tls-cert)", err}
	case errors.As(err, &host):
		return &CertificateError{"the server's certificate is for another name: " + err.Error(), "name the server in the address as its certificate does", err}
	case errors.As(err, &unknown):
		return &CertificateError{
			"the authority of the server's certificate is not trusted: " + err.Error(),
			"if it is yours, name the file of its certificate in the address: https://HOST?ca=FILE", err,
		}
	case errors.As(err, &verification):
		return &CertificateError{"the server's certificate does not hold: " + err.Error(), "renew the certificate of the server, and look at the clocks", err}
	case errors.As(err, &refused) && refused.Op == "remote error" && strings.Contains(err.Error(), "certificate"):
		return &CertificateError{
			"the server refused the certificate of the address: " + err.Error(),
			"give cert and key a certificate for clients that holds, of the authority of the server's --tls-client-ca", err,
		}
	}
	return nil
}
