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

// Outage reports whether an error says that this store's server, or a connection to it, was out of reach. Handlers meet
// such errors in their own transactions. Connections of a pool that Open made mark their faults; for the pool of a caller,
// the server's own word and the address of the fault decide.
func (s *Store) Outage(err error) bool {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return unreachable(server)
	}
	// A connection that is closed was closed by an earlier fault, of which the handler may not have been told.
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

// unreachable reports whether a server's error says that it ends the connection, or takes no new ones or no writes, for no
// fault of the caller's: a shutdown, a crash, a start, a failover, a pooler that lost its server. Such an error ends the
// connection. One that does not is a function's own, or of another server that a statement reaches.
func unreachable(err *pgconn.PgError) bool {
	if err.Code == "25006" { // a server that was demoted
		return true
	}
	if err.SeverityUnlocalized != "FATAL" && err.SeverityUnlocalized != "PANIC" {
		return false
	}
	switch err.Code {
	case "57P01", "57P02", "57P03", "53300":
		return true
	}
	return strings.HasPrefix(err.Code, "08")
}

// isAt reports whether an address may be one of the store's servers. A name stands for any address.
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

// markFaults makes the connections of a pool say of their faults that they are this store's.
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

// fault marks an error of a connection. That the caller's own deadline passed is no fault of the connection's.
func fault(err error) error {
	var network net.Error
	if err == nil || errors.As(err, &network) && network.Timeout() {
		return err
	}
	return connFault{err}
}

// connFault is an error of a connection to the store's server.
type connFault struct{ error }

// Unwrap gives the connection's own error.
func (f connFault) Unwrap() error { return f.error }

// Is makes it an ErrUnavailable.
func (f connFault) Is(target error) bool { return target == sluice.ErrUnavailable }

// Timeout and Temporary make it a net.Error, as those are that it marks.
func (f connFault) Timeout() bool { return false }

// Temporary reports false: a connection with a fault is of no use any more.
func (f connFault) Temporary() bool { return false }
