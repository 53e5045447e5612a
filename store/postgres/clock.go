package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"sync"
	"time"
)

//go:embed sql/server_clock.sql
var serverClockSQL string

const (
	// clockInterval is how often Recover reads the server's clock while no lease has ended.
	clockInterval = time.Second
	// clockStep is the jump from which the server's clock counts as set. A smaller one may be a clock that runs
	// faster.
	clockStep = time.Second
	// secondLook is how long Recover waits after a jump of the clock until it believes that leases have ended.
	// Holders renew at least once a second.
	secondLook = 5 * time.Second
)

// serverClock notices when the server's clock is set forward, or when another server with another clock takes over.
// All leases then end at once, although their holders are well.
type serverClock struct {
	mu     sync.Mutex
	looked time.Time // zero: never
	most   time.Time // the latest that the server's clock can have shown then
	quiet  time.Time // until then, no lease counts as ended
}

// look compares the server's clock with this process's steady clock, and reports whether the server's was set
// forward recently. Unless must is set, look reads the clock at most once per clockInterval.
func (c *serverClock) look(ctx context.Context, db rowsQuerier, must bool) (set bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !must && time.Since(c.looked) < clockInterval {
		return time.Now().Before(c.quiet), nil
	}
	asked := time.Now()
	var says time.Time
	rows, err := db.Query(ctx, serverClockSQL)
	if err != nil {
		return false, fmt.Errorf("look at the server's clock: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&says); err != nil {
			return false, fmt.Errorf("look at the server's clock: %w", err)
		}
	}
	if err := rows.Err(); err != nil {
		return false, fmt.Errorf("look at the server's clock: %w", err)
	}
	answered := time.Now()
	if !c.looked.IsZero() && says.Sub(c.most) > answered.Sub(c.looked)+clockStep {
		c.quiet = answered.Add(secondLook)
	}
	c.looked, c.most = answered, says.Add(answered.Sub(asked))
	return answered.Before(c.quiet), nil
}
