package temporaltest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

const (
	// Env names the variable that holds host and port of a server to use instead of one of our own.
	Env = "SLUICE_TEST_TEMPORAL"
	// EnvComing names the variable that says that the server in Env is only now being built and started. It holds
	// the path of a file that is there once that has ended: empty, or with the reason why there is no server.
	EnvComing = "SLUICE_TEST_TEMPORAL_COMING"
)

var (
	server = sync.OnceValues(sharedServer)
	// started is kept here, because a server that nobody holds any more ends.
	started *Server
)

// Address gives host and port of a server with the namespace «default» that tests share: the one in
// Env, for which it waits while it is being built, or one in memory that the first call starts and that
// ends with this process. Tests tell their workflows apart by name, or register namespaces.
func Address(t testing.TB) string {
	t.Helper()
	address, err := server()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func sharedServer() (string, error) {
	named := os.Getenv(Env)
	if named == "" {
		var err error
		if started, err = Start(context.Background(), Options{}); err != nil {
			return "", err
		}
		return started.Address, nil
	}
	if file := os.Getenv(EnvComing); file != "" {
		if err := waitForEnd(file); err != nil {
			return "", err
		}
	}
	return named, waitFor(named)
}

// waitForEnd waits until whoever builds and starts the server has said how that ended.
func waitForEnd(file string) error {
	for {
		reason, err := os.ReadFile(file)
		switch {
		case err == nil && len(reason) == 0:
			return nil
		case err == nil:
			return errors.New(string(reason))
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// waitFor waits until a server takes connections.
func waitFor(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), starting)
	defer cancel()
	pause := time.NewTicker(100 * time.Millisecond)
	defer pause.Stop()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the Temporal server that %s names does not answer: %w", Env, err)
		case <-pause.C:
		}
	}
}
