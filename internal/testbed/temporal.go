package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-queue/sluice/internal/freeport"
	"github.com/sluice-queue/sluice/internal/temporaltest"
)

// startTemporal begins to build and start a Temporal server, and puts its future address into the
// environment. stop ends the server, or the build.
func startTemporal() (stop func(), err error) {
	port, err := freeport.Find()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "sluice-temporal-")
	if err != nil {
		return nil, err
	}
	ended := filepath.Join(folder, "ended")
	err = errors.Join(
		os.Setenv(temporaltest.Env, fmt.Sprintf("127.0.0.1:%d", port)),
		os.Setenv(temporaltest.EnvComing, ended))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	started := make(chan *temporaltest.Server)
	go func() {
		defer close(started)
		server, err := temporaltest.Start(ctx, temporaltest.Options{Port: port})
		if err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "testbed:", err)
		}
		if err := sayEnded(ended, err); err != nil {
			fmt.Fprintln(os.Stderr, "testbed:", err)
		}
		if err == nil {
			started <- server
		}
	}()
	return func() {
		cancel()
		if server := <-started; server != nil {
			server.Stop()
		}
		_ = os.RemoveAll(folder)
	}, nil
}

// sayEnded writes the file that tests wait for, in one piece.
func sayEnded(file string, failed error) error {
	reason := ""
	if failed != nil {
		reason = failed.Error()
	}
	half := file + ".half"
	if err := os.WriteFile(half, []byte(reason), 0o600); err != nil {
		return err
	}
	return os.Rename(half, file)
}
