// Package systemd reports the state of a service to its service manager, by the protocol of
// sd_notify(3). Each report is a datagram of lines to the socket in NOTIFY_SOCKET.
//
// Begin with [FromEnvironment], which finds the [Manager], and its method Notify. Without a manager,
// all calls do nothing, so callers need no condition.
//
// Read next: the units in deploy/systemd.
package systemd

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// The states of a service.
const (
	// Ready: the service has started.
	Ready = "READY=1"
	// Stopping: the service is ending.
	Stopping = "STOPPING=1"
	// Watchdog: the service is alive.
	Watchdog = "WATCHDOG=1"
)

// Status returns a one-line description of the service's state, for people.
func Status(text string) string { return "STATUS=" + strings.Join(strings.Fields(text), " ") }

// Manager is the service manager that started the service. A nil Manager does nothing.
type Manager struct{ conn net.Conn }

// FromEnvironment finds the manager. Nil: there is none.
func FromEnvironment() (*Manager, error) {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return nil, nil
	}
	// A name that begins with @ is an abstract socket, which the standard library supports.
	conn, err := net.Dial("unixgram", socket)
	if err != nil {
		return nil, fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	return &Manager{conn}, nil
}

// Notify sends lines in one message.
func (m *Manager) Notify(lines ...string) error {
	if m == nil {
		return nil
	}
	_, err := m.conn.Write([]byte(strings.Join(lines, "\n")))
	return err
}

// Close closes the socket.
func (m *Manager) Close() error {
	if m == nil {
		return nil
	}
	return m.conn.Close()
}

// WatchdogInterval returns the unit's WatchdogSec: how often the service must send Watchdog. A
// service that does not is killed and restarted. Send it twice as often. 0: the manager does not
// wait for it.
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
