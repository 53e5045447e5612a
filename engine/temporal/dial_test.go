package temporal_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"path/filepath"
	"testing"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	adapter "github.com/sluice-queue/sluice/engine/temporal"
	"github.com/sluice-queue/sluice/internal/certtest"
)

func TestDialShowsItsCertificateAndKey(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	authority := certtest.New(t, file("authority.pem"))
	certtest.New(t, file("foreign.pem"))
	certtest.Write(t, file("cert.pem"), file("key.pem"), authority.Client(t, "sluice.example"))
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
		Certificates: []tls.Certificate{authority.Server(t, "temporal.example")}, ClientCAs: authority.Pool(), ClientAuth: tls.RequireAndVerifyClientCert,
	})))
	workflowservice.RegisterWorkflowServiceServer(server, f)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)

	known := adapter.Server{
		Address: listener.Addr().String(), APIKey: "open sesame", Cert: file("cert.pem"), Key: file("key.pem"), CA: file("authority.pem"), Name: "temporal.example",
	}
	stranger, mistrusting := known, known
	stranger.Cert, stranger.Key = "", ""
	mistrusting.CA = file("foreign.pem")
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
	folder := t.TempDir()
	cert, key := filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	certtest.Write(t, cert, key, certtest.Authority{}.Client(t, "x"))
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
