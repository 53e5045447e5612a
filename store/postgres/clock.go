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
	// clockInterval is how often recoveries look at the server's clock where no lease ran out.
	clockInterval = time.Second
	// clockStep is from when on the server's clock was set, and did not only run a little faster than ours.
	clockStep = time.Second
	// secondLook is how much later leases are believed to have run out that did so in a step of the clock. Holders renew
	// at least once a second.
	secondLook = 5 * time.Second
)

// serverClock notices when the clock of the server is set forward, or another server with another clock takes over: all
// leases run out in that moment, though their holders are well.
type serverClock struct {
	mu     sync.Mutex
	looked time.Time // zero: never
	most   time.Time // what the server's clock said then at the most
	quiet  time.Time // until when no lease counts as run out
}

// look compares the server's clock with the steady clock of this process, and reports whether it was set forward a moment
// ago. Unless it must, it looks now and then only.
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
