package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/sluice-queue/sluice/internal/event"
)

// tlsConfig returns the encryption of the flags. Nil: none.
func (f *apiFlags) tlsConfig(log *event.Log) (*tls.Config, error) {
	if f.cert == "" {
		return nil, nil
	}
	own, err := watchFiles(log, func() (*tls.Certificate, error) { return loadCertificate(f.cert, f.key) }, f.cert, f.key)
	if err != nil {
		return nil, codedError{fmt.Errorf("--tls-cert, --tls-key: %w", err), exitUsage, "name the files of a certificate and its private key, as PEM"}
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own.get(), nil },
	}
	if f.clientCA == "" {
		return config, nil
	}
	authority, err := watchFiles(log, func() (*x509.CertPool, error) { return loadAuthority(f.clientCA) }, f.clientCA)
	if err != nil {
		return nil, codedError{fmt.Errorf("--tls-client-ca: %w", err), exitUsage, "name the file of the certificate of the authority, as PEM"}
	}
	config.ClientAuth = tls.VerifyClientCertIfGiven
	config.ClientCAs = authority.get()
	config.SessionTicketsDisabled = true // a resumed connection would not be verified by a changed authority
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		current := config.Clone()
		current.GetConfigForClient, current.ClientCAs = nil, authority.get()
		return current, nil
	}
	return config, nil
}

// renewal is how long before its certificate ends a connection should. It is longer than a connection may be idle.
const renewal = 2 * time.Minute

// renewing asks callers to close a connection whose certificate ends soon, and so to come again with a renewed one. A busy
// caller keeps a connection of HTTP/2 for days, and is not known by it any more when the certificate has ended.
func renewing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
			shown := r.TLS.PeerCertificates[0]
			if time.Until(shown.NotAfter) < min(renewal, shown.NotAfter.Sub(shown.NotBefore)/10) {
				w.Header().Set("Connection", "close")
			}
		}
		next.ServeHTTP(w, r)
	})
}

func loadCertificate(cert, key string) (*tls.Certificate, error) {
	loaded, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, errors.New("the certificate or its key cannot be used: " + err.Error())
	}
	return &loaded, nil
}

func loadAuthority(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate as PEM", path)
	}
	return pool, nil
}

// watched is what files say, read again when one changes.
type watched[T any] struct {
	paths []string
	load  func() (T, error)
	log   *event.Log

	mu     sync.Mutex
	loaded T
	at     []time.Time // of the files
	next   time.Time   // look
}

// watchFiles reads files for the first time.
func watchFiles[T any](log *event.Log, load func() (T, error), paths ...string) (*watched[T], error) {
	w := &watched[T]{paths: paths, load: load, log: log}
	at, err := w.changes()
	if err != nil {
		return nil, err
	}
	return w, w.read(at)
}

// filesLook is how often the files are looked at.
const filesLook = time.Second

// get returns what the files say now. Files that cannot be read leave what they said last.
func (w *watched[T]) get() T {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); now.After(w.next) {
		w.next = now.Add(filesLook)
		at, err := w.changes()
		if err == nil && !slices.Equal(at, w.at) {
			err = w.read(at)
		}
		if err != nil {
			w.log.Emit(event.CertificateKept, "", "error", err)
		}
	}
	return w.loaded
}

func (w *watched[T]) changes() ([]time.Time, error) {
	var at []time.Time
	for _, path := range w.paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		at = append(at, info.ModTime())
	}
	return at, nil
}

// read reads the files, which were changed at these times.
func (w *watched[T]) read(at []time.Time) error {
	loaded, err := w.load()
	if err != nil {
		return err
	}
	w.loaded, w.at = loaded, at
	return nil
}
