package upkeep

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// pruneShare limits deletions to 1/pruneShare of the time, because busy queues go first.
	pruneShare = 2
	// pruneRest is the longest rest after a transaction. A transaction that waited long on a busy machine
	// disturbed no other meanwhile.
	pruneRest = 20 * time.Millisecond
	// pruneTurn is how long deletions go on before upkeep checks again that it leads.
	pruneTurn = 5 * time.Second
)

// pruning deletes history outside the rounds, so that recovery does not wait for it.
type pruning struct {
	work beside
	all  sync.WaitGroup
	next string // cursor of the current pass; empty: none is under way
}

// pruneBeside continues the pass through the history outside the rounds. After pruneTurn, the upkeep that leads
// then goes on. The next pass begins PruneInterval after the last.
func (u *Upkeep) pruneBeside(ctx context.Context) {
	p := &u.pruning
	if p.work.over() {
		p.work.at = time.Time{}
	}
	if !p.work.due(u.options.PruneInterval) {
		return
	}
	p.all.Go(func() {
		deleted, err := u.prune(ctx, time.Now().Add(pruneTurn))
		if err != nil {
			u.failed(ctx, "prune", err)
		}
		u.logDone(Done{Pruned: deleted})
		p.work.ended <- err != nil || p.next != ""
	})
}

// pruneIf deletes all history that is too old, if all work is to be done.
func (u *Upkeep) pruneIf(ctx context.Context, all bool, done *Done) (err error) {
	if all {
		done.Pruned, err = u.prune(ctx, time.Time{})
	}
	return err
}

// prune continues a pass until it is over, or until an instant. With an instant, prune rests after each
// transaction as pruneShare demands.
func (u *Upkeep) prune(ctx context.Context, until time.Time) (deleted int, err error) {
	p := &u.pruning
	for {
		begun := time.Now()
		out, err := u.store.Prune(ctx, p.next, u.options.PruneBatch)
		if err != nil {
			return deleted, fmt.Errorf("prune: %w", err)
		}
		deleted += out.Deleted
		if p.next = out.Next; p.next == "" {
			return deleted, nil
		}
		if until.IsZero() {
			continue
		}
		took := time.Since(begun)
		rest := min((pruneShare-1)*took, pruneRest)
		if time.Now().Add(rest + took).After(until) {
			return deleted, nil // a later round goes on
		}
		select {
		case <-ctx.Done():
			return deleted, nil
		case <-time.After(rest):
		}
	}
}
