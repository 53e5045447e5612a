package api

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sluice-queue/sluice/internal/sender"
)

// crowding is how many strangers of one address are too many to wait for, if there are too many connections.
const crowding = 16

// crowd holds the open connections of a server.
type crowd struct {
	most int

	mu        sync.Mutex
	open      []*guest // the oldest first
	of        map[net.Conn]*guest
	strangers map[netip.Prefix]int // by address
}

// guest is an open connection.
type guest struct {
	crowd *crowd
	conn  net.Conn
	from  netip.Prefix
	idle  bool        // it has asked something, and asks nothing now
	known atomic.Bool // a caller was known; else it is a stranger's
}

type guestKey struct{}

// Known tells the server of a request that its caller is known. When there are too many connections, the server closes those without
// a known caller first, and so those on which a request is still being sent. The context is that of the request.
func Known(ctx context.Context) {
	if g, is := ctx.Value(guestKey{}).(*guest); is && !g.known.Load() {
		g.crowd.meet(g)
	}
}

// arrive notes a new connection, and lets its requests find it. If there are too many, it closes another one.
func (c *crowd) arrive(ctx context.Context, conn net.Conn) context.Context {
	g := &guest{crowd: c, conn: conn, from: sender.NetworkOf(conn.RemoteAddr().String())}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of, c.strangers = make(map[net.Conn]*guest), make(map[netip.Prefix]int)
	}
	c.open, c.of[conn] = append(c.open, g), g
	c.strangers[g.from]++
	if len(c.open) > c.most {
		worst := c.worst()
		c.forget(worst)
		_ = worst.conn.Close() // the server notices and reports it as closed
	}
	return context.WithValue(ctx, guestKey{}, g)
}

// note is called for each change of a connection.
func (c *crowd) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g, is := c.of[conn]
	switch {
	case !is:
	case state == http.StateActive, state == http.StateIdle:
		g.idle = state == http.StateIdle
	case state == http.StateClosed, state == http.StateHijacked:
		c.forget(g)
	}
}

// meet makes a stranger known.
func (c *crowd) meet(g *guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[g.conn] == g && !g.known.Swap(true) {
		c.countOut(g.from)
	}
}

// worst returns which connection to close, the newest aside: the oldest stranger of the most crowding address, else the oldest idle
// one, else the oldest stranger, else the oldest. Strangers of a crowd come and go, and so others are in time to say who they are.
func (c *crowd) worst() *guest {
	others := c.open[:len(c.open)-1]
	var from netip.Prefix
	most := 0
	for at, n := range c.strangers {
		if n > most {
			from, most = at, n
		}
	}
	for _, fits := range []func(*guest) bool{
		func(g *guest) bool { return most > crowding && !g.known.Load() && g.from == from },
		func(g *guest) bool { return g.idle },
		func(g *guest) bool { return !g.known.Load() },
	} {
		if at := slices.IndexFunc(others, fits); at >= 0 {
			return others[at]
		}
	}
	return c.open[0]
}

// forget takes a connection out of the crowd.
func (c *crowd) forget(g *guest) {
	delete(c.of, g.conn)
	if at := slices.Index(c.open, g); at >= 0 {
		c.open = slices.Delete(c.open, at, at+1)
	}
	if !g.known.Load() {
		c.countOut(g.from)
	}
}

// countOut counts a stranger less.
func (c *crowd) countOut(from netip.Prefix) {
	if c.strangers[from]--; c.strangers[from] <= 0 {
		delete(c.strangers, from)
	}
}
