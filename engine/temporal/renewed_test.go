package temporal_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	adapter "github.com/sluice-queue/sluice/engine/temporal"
	"github.com/sluice-queue/sluice/internal/certtest"
)

// TestRenewedFilesOfCredentialsNeedNoRestart renews the certificate and the API key of an engine at work. The server ends each
// connection soon, as load balancers do.
func TestRenewedFilesOfCredentialsNeedNoRestart(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	authority := certtest.New(t, file("authority.pem"))
	write := func(client, key string) {
		certtest.Write(t, file("cert.pem"), file("key.pem"), authority.Client(t, client))
		if err := os.WriteFile(file("api.key"), []byte(key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("old", "k1")
	shown := make(chan string, 1)
	f := &fake{start: func(ctx context.Context, _ *workflowservice.StartWorkflowExecutionRequest) error {
		given, _ := metadata.FromIncomingContext(ctx)
		from, _ := peer.FromContext(ctx)
		shown <- fmt.Sprint(from.AuthInfo.(credentials.TLSInfo).State.PeerCertificates[0].Subject.CommonName, given.Get("authorization"))
		return nil
	}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: 50 * time.Millisecond}), grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{authority.Server(t, "temporal.example")}, ClientCAs: authority.Pool(), ClientAuth: tls.RequireAndVerifyClientCert,
	})))
	workflowservice.RegisterWorkflowServiceServer(server, f)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	e, err := adapter.Dial(adapter.Server{
		Address: listener.Addr().String(), APIKeyFile: file("api.key"), Cert: file("cert.pem"), Key: file("key.pem"), CA: file("authority.pem"), Name: "temporal.example",
	}, adapter.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	last := ""
	shows := func(want string) {
		t.Helper()
		until(t, "the server is shown "+want, func() bool {
			if e.Start(t.Context(), anywhere, manyRuns(1))[0] == nil {
				last = <-shown
			}
			return last == want
		})
	}
	shows("old[Bearer k1]")
	write("new", "k2")
	shows("new[Bearer k2]")
	for _, name := range []string{"api.key", "cert.pem"} { // a renewal that is under way
		if err := os.WriteFile(file(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(100 * time.Millisecond)
	last = ""
	shows("new[Bearer k2]")
}
