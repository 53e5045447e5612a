// Package freeport finds free ports for servers of tests that must know their port before they
// start.
//
// Begin with [Find], which returns a port of the loopback address. The port is outside the range
// from which systems choose ports by themselves, so it stays free until the server listens.
//
// Read next: packages internal/pgtest and internal/temporaltest, which start such servers.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Systems choose ports from 32768 on by themselves, also for outgoing connections. A free port from
// there may be taken before the server has started.
const (
	first = 20000
	last  = 32767
	tries = 100
)

// Prefer returns a port if it is free, and otherwise that of [Find]. It must be outside the range from which systems choose.
// 0: none is preferred.
func Prefer(port int) (int, error) {
	if port == 0 {
		return Find()
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return Find()
	}
	return port, listener.Close()
}

// Find returns a loopback port that no process listens on now, and that the system chooses for no
// connection.
func Find() (int, error) {
	var failed error
	for range tries {
		port := first + rand.IntN(last-first+1)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, listener.Close()
		}
		failed = err
	}
	return 0, errors.Join(fmt.Errorf("no free port between %d and %d in %d tries", first, last, tries), failed)
}
