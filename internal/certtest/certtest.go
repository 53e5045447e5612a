// Package certtest makes the certificates of tests: an authority, and what it signs for servers and clients.
//
// Begin with [New].
//
// Read next: the tests of package cmd/cli that encrypt.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"testing"
	"time"
)

// Authority signs certificates.
type Authority struct{ pair tls.Certificate }

// New makes an authority, and writes its certificate to a file.
func New(t testing.TB, file string) Authority {
	t.Helper()
	a := Authority{}
	a.pair = a.Sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	write(t, file, "CERTIFICATE", a.pair.Leaf.Raw)
	return a
}

// Sign signs a certificate, which holds for an hour if the form does not say. The zero Authority lets it sign itself.
func (a Authority) Sign(t testing.TB, form *x509.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if form.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		t.Fatal(err)
	}
	form.NotBefore = time.Now().Add(-2 * time.Hour)
	if form.NotAfter.IsZero() {
		form.NotAfter = time.Now().Add(time.Hour)
	}
	parent, by := form, any(key)
	if a.pair.Leaf != nil {
		parent, by = a.pair.Leaf, a.pair.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, form, parent, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: made}
}

// Server makes the certificate of a server with names or addresses.
func (a Authority) Server(t testing.TB, names ...string) tls.Certificate {
	t.Helper()
	form := &x509.Certificate{Subject: pkix.Name{CommonName: "server"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			form.IPAddresses = append(form.IPAddresses, ip)
		} else {
			form.DNSNames = append(form.DNSNames, name)
		}
	}
	return a.Sign(t, form)
}

// Client makes the certificate of a program.
func (a Authority) Client(t testing.TB, name string) tls.Certificate {
	t.Helper()
	return a.ClientUntil(t, name, time.Time{})
}

// ClientUntil makes the certificate of a program that holds until a time.
func (a Authority) ClientUntil(t testing.TB, name string, end time.Time) tls.Certificate {
	t.Helper()
	return a.Sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotAfter: end, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

// Pool trusts what the authority has signed.
func (a Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.pair.Leaf)
	return pool
}

// Write writes a certificate and its private key, as PEM.
func Write(t testing.TB, cert, key string, pair tls.Certificate) {
	t.Helper()
	secret, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write(t, cert, "CERTIFICATE", pair.Certificate[0])
	write(t, key, "PRIVATE KEY", secret)
}

func write(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
