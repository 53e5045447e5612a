// Package systemd tells a service manager how the service does, by the protocol of sd_notify(3): a datagram of lines to
// the socket that NOTIFY_SOCKET names.
package systemd

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// What a service says.
const (
	// Ready: it has started.
	Ready = "READY=1"
	// Stopping: it is ending.
	Stopping = "STOPPING=1"
	// Watchdog: it lives.
	Watchdog = "WATCHDOG=1"
)

// Status says for people how the service does, on one line.
func Status(text string) string { return "STATUS=" + strings.Join(strings.Fields(text), " ") }

// Manager is who started the service. A nil one takes everything and tells nobody.
type Manager struct{ conn net.Conn }

// FromEnvironment finds the manager; nil: none wants to be told.
func FromEnvironment() (*Manager, error) {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return nil, nil
	}
	// A name that begins with @ is an abstract one; the standard library knows that, too.
	conn, err := net.Dial("unixgram", socket)
	if err != nil {
		return nil, fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	return &Manager{conn}, nil
}

// Tell says something, all of it in one message.
func (m *Manager) Tell(lines ...string) error {
	if m == nil {
		return nil
	}
	_, err := m.conn.Write([]byte(strings.Join(lines, "\n")))
	return err
}

// Close lets go of the socket.
func (m *Manager) Close() error {
	if m == nil {
		return nil
	}
	return m.conn.Close()
}

// WatchdogInterval is how often the service must say Watchdog, or it is taken for hung, killed and started anew (the
// unit's WatchdogSec); 0: nobody waits for it. Say it twice as often.
func WatchdogInterval() time.Duration {
	if pid := os.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	micros, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if err != nil || micros <= 0 || micros > int64(24*time.Hour/time.Microsecond) {
		return 0
	}
	return time.Duration(micros) * time.Microsecond
}
