package temporal_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	adapter "github.com/sluice-queue/sluice/engine/temporal"
)

// certificate writes a self-signed certificate and its key.
func certificate(t *testing.T, name string) (cert, key string, pair tls.Certificate) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	plan := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	signed, err := x509.CreateCertificate(rand.Reader, plan, plan, secret.Public(), secret)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if pair, err = tls.LoadX509KeyPair(cert, key); err != nil {
		t.Fatal(err)
	}
	return cert, key, pair
}

func TestDialShowsItsCertificateAndKey(t *testing.T) {
	t.Parallel()
	serverCert, _, serverPair := certificate(t, "temporal.example")
	clientCert, clientKey, _ := certificate(t, "sluice.example")
	clients := x509.NewCertPool()
	text, err := os.ReadFile(clientCert)
	if err != nil || !clients.AppendCertsFromPEM(text) {
		t.Fatal("no certificate of clients", err)
	}
	key := make(chan []string, 3)
	f := &fake{start: func(ctx context.Context, _ *workflowservice.StartWorkflowExecutionRequest) error {
		given, _ := metadata.FromIncomingContext(ctx)
		key <- given.Get("authorization")
		return nil
	}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{serverPair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert,
	})))
	workflowservice.RegisterWorkflowServiceServer(server, f)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)

	known := adapter.Server{
		Address: listener.Addr().String(), APIKey: "open sesame", Cert: clientCert, Key: clientKey, CA: serverCert, Name: "temporal.example",
	}
	stranger, mistrusting := known, known
	stranger.Cert, stranger.Key = "", ""
	mistrusting.CA = clientCert
	for _, c := range []struct {
		server adapter.Server
		want   error
	}{{known, nil}, {stranger, engine.ErrUnavailable}, {mistrusting, engine.ErrUnavailable}} {
		e, err := adapter.Dial(c.server, adapter.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Start(t.Context(), anywhere, manyRuns(1))[0]; !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.server, err, c.want)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	if shown := <-key; len(shown) != 1 || shown[0] != "Bearer open sesame" {
		t.Errorf("the server was shown the key %q", shown)
	}
}

func TestDialRefusesFilesThatItCannotUse(t *testing.T) {
	t.Parallel()
	cert, key, _ := certificate(t, "x")
	for _, server := range []adapter.Server{
		{Cert: cert}, {Key: key}, {Cert: "absent", Key: "absent"}, {Cert: key, Key: cert}, {CA: "absent"}, {CA: key},
	} {
		if _, err := adapter.Dial(server, adapter.Options{}); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%+v: %v, want %v", server, err, sluice.ErrInvalid)
		}
	}
}

func TestDialNeedsNoServerYet(t *testing.T) {
	t.Parallel()
	e, err := adapter.Dial(adapter.Server{Address: "127.0.0.1:1"}, adapter.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Check(t.Context(), anywhere); !errors.Is(err, engine.ErrUnavailable) {
		t.Errorf("check: %v, want %v", err, engine.ErrUnavailable)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
