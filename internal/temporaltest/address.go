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
	// Env is the variable with host and port of a server to use instead of an own one.
	Env = "SLUICE_TEST_TEMPORAL"
	// EnvComing is the variable that is set while the server in Env is being built and started. Its
	// value is the path of a file that appears when this has ended: empty, or with the reason why
	// there is no server.
	EnvComing = "SLUICE_TEST_TEMPORAL_COMING"
)

var (
	server = sync.OnceValues(sharedServer)
	// started keeps the server from the garbage collector, which would end it.
	started *Server
)

// Address returns host and port of a server with the namespace `default` that tests share. If Env
// names a server, Address waits until it is built. Otherwise the first call starts one in memory,
// which ends with this process. Tests separate their workflows by name, or register namespaces.
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

// waitForEnd waits until the process that builds and starts the server has reported the result.
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

// waitFor waits until a server accepts connections.
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
