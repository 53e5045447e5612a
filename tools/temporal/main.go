// Command temporal runs a whole Temporal server in one process, for tests and demos: frontend, history,
// matching and worker, with the web UI if a port is given for it. It listens on loopback only and has
// no access control.
//
//	temporal -port 7233 -ui-port 8233 -store temporal.db -namespace default=72h
//
// When it can take work it writes one line of JSON to standard output:
//
//	{"ready":true,"address":"127.0.0.1:7233","ui":"http://127.0.0.1:8233","pid":4242}
//
// SIGTERM and SIGINT end it. Its log goes to standard error.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// ending is how long the services may take to end. Requests that are cut off are what clients must
// bear anyway.
const ending = 10 * time.Second

// readyLine is what standard output tells once.
type readyLine struct {
	Ready   bool   `json:"ready"`
	Address string `json:"address"`
	UI      string `json:"ui,omitempty"`
	PID     int    `json:"pid"`
}

func main() {
	err := run(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "temporal:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	opts, err := parseOptions(args)
	if err != nil {
		return err
	}
	// From here on a signal ends the server in order, even while it starts.
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, os.Interrupt)
	if opts.endWithInput {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			end <- os.Interrupt
		}()
	}
	server, err := start(opts)
	if err != nil {
		return err
	}
	line := readyLine{Ready: true, Address: server.address, UI: server.ui, PID: os.Getpid()}
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		return err
	}
	<-end
	time.AfterFunc(ending, func() { os.Exit(0) })
	return server.stop()
}
