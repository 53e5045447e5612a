package upkeep

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// pruneShare is of what part of the time deletions take one at the most: the work of busy queues goes first.
	pruneShare = 2
	// pruneRest is the longest rest after a transaction: one that waited long for its turn on a busy machine has disturbed
	// nobody meanwhile.
	pruneRest = 20 * time.Millisecond
	// pruneTurn is how long deletions go on before it is looked whether this upkeep still leads.
	pruneTurn = 5 * time.Second
)

// pruning deletes history beside the rounds: recovery does not wait for it.
type pruning struct {
	work beside
	all  sync.WaitGroup
	next string // where the pass goes on that is under way; empty: none is
}

// pruneBeside goes on with the pass through the history while the rounds go on. After pruneTurn, who leads then goes on.
// When a pass is over, the next one waits for PruneInterval.
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
		u.tellDone(Done{Pruned: deleted})
		p.work.ended <- err != nil || p.next != ""
	})
}

// pruneIf deletes all that is too old, where everything is to be done.
func (u *Upkeep) pruneIf(ctx context.Context, all bool, done *Done) (err error) {
	if all {
		done.Pruned, err = u.prune(ctx, time.Time{})
	}
	return err
}

// prune goes on with a pass until it is over, or until an instant. Where there is one, it rests after each transaction
// for as long as its share asks.
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
