package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-queue/sluice"
)

// Outage reports whether an error means that this store's server, or a connection to it, was out of reach. Handlers
// meet such errors in their own transactions. Connections of a pool that [Open] made mark their faults. For a
// caller's pool, the server's error code and the address of the fault decide.
func (s *Store) Outage(err error) bool {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return unreachable(server)
	}
	// An earlier fault closed the connection, and the handler may not have seen that fault.
	if errors.Is(err, sluice.ErrUnavailable) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, pgconn.ErrConnClosed) {
		return true
	}
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		return s.isAt(connect.Config.Host, connect.Config.Port)
	}
	var operation *net.OpError
	if errors.As(err, &operation) && !operation.Timeout() {
		address, isTCP := operation.Addr.(*net.TCPAddr)
		return isTCP && s.isAt(address.IP.String(), uint16(address.Port))
	}
	return false
}

// unreachable reports whether the server ends the connection, or refuses connections or writes, for a reason
// outside the caller. Reasons are a shutdown, crash, start or failover, or a pooler that lost its server. Such an
// error ends the connection. Other errors come from a function, or from another server that a statement reaches.
func unreachable(err *pgconn.PgError) bool {
	if err.Code == "25006" { // a demoted server
		return true
	}
	if err.SeverityUnlocalized != "FATAL" && err.SeverityUnlocalized != "PANIC" {
		return false
	}
	switch err.Code {
	case "57P01", "57P02", "57P03", "57P05", "53300":
		return true
	}
	return strings.HasPrefix(err.Code, "08")
}

// isAt reports whether an address may belong to one of the store's servers. A host name matches any address.
func (s *Store) isAt(host string, port uint16) bool {
	config := s.pool.Config().ConnConfig
	same := func(ourHost string, ourPort uint16) bool {
		return ourPort == port && (ourHost == host || net.ParseIP(ourHost) == nil || net.ParseIP(host) == nil)
	}
	if same(config.Host, config.Port) {
		return true
	}
	for _, other := range config.Fallbacks {
		if same(other.Host, other.Port) {
			return true
		}
	}
	return false
}

// markFaults makes the connections of a pool mark their faults as this store's.
func markFaults(config *pgconn.Config) {
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, fault(err)
		}
		return markedConn{conn}, nil
	}
}

type markedConn struct{ net.Conn }

func (c markedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, fault(err)
}

func (c markedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, fault(err)
}

// fault marks an error of a connection. The end of the caller's deadline is no such fault.
func fault(err error) error {
	var network net.Error
	if err == nil || errors.As(err, &network) && network.Timeout() {
		return err
	}
	return connFault{err}
}

// connFault is an error of a connection to the store's server.
type connFault struct{ error }

// Unwrap returns the connection's own error.
func (f connFault) Unwrap() error { return f.error }

// Is reports that the error is a [sluice.ErrUnavailable].
func (f connFault) Is(target error) bool { return target == sluice.ErrUnavailable }

// Timeout and Temporary make connFault a [net.Error], like the errors that it marks.
func (f connFault) Timeout() bool { return false }

// Temporary reports false: a connection with a fault is of no further use.
func (f connFault) Temporary() bool { return false }
