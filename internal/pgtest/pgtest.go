package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

var (
	server    = sync.OnceValues(startServer)
	started   *Cluster
	databases atomic.Int64
)

func startServer() (string, error) {
	if named := os.Getenv(Env); named != "" {
		return named, nil
	}
	var err error
	if started, err = Start(Options{}); err != nil {
		return "", err
	}
	return started.URL, nil
}

// Main runs the tests of a package and then stops the cluster that they started, if any. Call it
// from TestMain.
func Main(m *testing.M) {
	code := m.Run()
	if started != nil {
		started.Stop()
	}
	os.Exit(code)
}

// NewDatabase gives the URL of a new and empty database, which is dropped at the end of the test.
// Without a server in Env, the first call starts a cluster, which Main stops.
func NewDatabase(t testing.TB) string {
	t.Helper()
	base, err := server()
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("sluice_test_%d_%d_%d", os.Getpid(), time.Now().UnixMilli(), databases.Add(1))
	admin(t, base, "create database "+name)
	t.Cleanup(func() { admin(t, base, "drop database if exists "+name+" with (force)") })
	at, err := url.Parse(base)
	if err != nil {
		t.Fatalf("%s must be a URL: %v", Env, err)
	}
	at.Path = "/" + name
	return at.String()
}

func admin(t testing.TB, base, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, base)
	if err != nil {
		t.Fatalf("connect to the test server: %v", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
