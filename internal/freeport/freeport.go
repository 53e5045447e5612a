// Package freeport finds ports for servers of tests that must be told theirs before they start.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Systems give the ports from 32768 on to whoever does not name one, outgoing connections among them: a
// port from there that is free now may be taken before the server has started.
const (
	first = 20000
	last  = 32767
	tries = 100
)

// Find gives a port of loopback that nobody listens on now, and that the system gives to nobody unasked.
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
