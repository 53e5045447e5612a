package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/hold"
)

const (
	// emptyInterval is the time between two looks whether queues are empty.
	emptyInterval = 100 * time.Millisecond
	// heldInterval is the same while only jobs are left that wait for others.
	heldInterval = time.Second
	// heldPage is how many jobs one look for held jobs reads at once.
	heldPage = 1000
)

// deadIn counts the dead letters of queues.
func deadIn(ctx context.Context, store sluice.Store, queues []string) (dead int, err error) {
	for _, queue := range queues {
		depth, err := store.Depth(ctx, queue, sluice.DepthLimit)
		if err != nil {
			return 0, err
		}
		dead += depth.Dead
	}
	return dead, nil
}

// leftOver returns an error if there are more dead letters than before, or held jobs, so that nobody takes them for done. So
// does a queue that does not exist: its name may be a slip of the pen.
func leftOver(ctx context.Context, store sluice.Store, client *sluice.Client, queues []string, before, held int) error {
	dead, err := deadIn(ctx, store, queues)
	if err != nil {
		return err
	}
	dead -= before
	waiting := "1 job is held"
	if held > 1 {
		waiting = fmt.Sprintf("%d jobs are held, or wait for held ones", held)
	}
	switch {
	case dead > 0 && held > 0:
		return codedError{fmt.Errorf("%s died; %s", jobs(dead), waiting), exitPartly, "look at them with `sluice dead ls " + queues[0] + "` and `sluice jobs --held`"}
	case dead > 0:
		return codedError{fmt.Errorf("%s died", jobs(dead)), exitPartly, "look at them with `sluice dead ls " + queues[0] + "`"}
	case held > 0:
		return codedError{errors.New(waiting), exitPartly, "look at them with `sluice jobs --held`, and release them"}
	}
	unknown, err := firstUnknown(ctx, client, queues...)
	if unknown != nil {
		return *unknown
	}
	return err
}

// waitUntilEmpty waits until every job of the queues is finished, or is held, or waits for a held one: only a person lets those
// go on. It returns how many such jobs are left. False: ctx has ended before.
func waitUntilEmpty(ctx context.Context, store sluice.Store, queues []string) (held int, empty bool) {
	for {
		rest := emptyInterval
		switch active, blocked := unfinishedIn(ctx, store, queues); {
		case active > 0:
		case blocked == 0:
			return 0, true
		default:
			if all, err := allHeld(ctx, store, queues); err == nil && all == blocked {
				return blocked, true
			}
			rest = heldInterval
		}
		select {
		case <-ctx.Done():
			return 0, false
		case <-time.After(rest):
		}
	}
}

// unfinishedIn counts the unfinished jobs of queues: those that wait for another job or are held, and the active others.
func unfinishedIn(ctx context.Context, store sluice.Store, queues []string) (active, blocked int) {
	for _, queue := range queues {
		depth, err := store.Depth(ctx, queue, sluice.DepthLimit)
		if err != nil {
			return 1, 0 // unknown: look again
		}
		active += depth.Ready + depth.Scheduled + depth.Claimed
		blocked += depth.Blocked
	}
	return active, blocked
}

// allHeld counts the jobs of queues that are held, or wait for a held job of these queues.
func allHeld(ctx context.Context, store sluice.Store, queues []string) (n int, err error) {
	behind := make(map[sluice.ID][]sluice.ID)
	var held []sluice.ID
	for _, queue := range queues {
		for filter := (hold.Filter{Queue: queue, Limit: heldPage}); ; {
			page, err := hold.List(ctx, store, filter)
			if err != nil {
				return 0, err
			}
			for _, h := range page {
				held, filter.Before = append(held, h.JobID), h.JobID
			}
			if len(page) < heldPage {
				break
			}
		}
	}
	if len(held) == 0 {
		return 0, nil
	}
	for _, queue := range queues {
		for filter := (sluice.JobFilter{Queue: queue, States: []sluice.State{sluice.StateQueued}, Limit: heldPage}); ; {
			page, err := store.Jobs(ctx, filter)
			if err != nil {
				return 0, err
			}
			for _, job := range page.Jobs {
				if job.BlockedBy != job.ID {
					behind[job.BlockedBy] = append(behind[job.BlockedBy], job.ID)
				}
			}
			if page.Cursor == "" {
				break
			}
			filter.Cursor = page.Cursor
		}
	}
	for ; n < len(held); n++ {
		held = append(held, behind[held[n]]...)
	}
	return n, nil
}
