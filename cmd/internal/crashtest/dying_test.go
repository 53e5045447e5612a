package crashtest

import (
	"context"
	"os"
	"syscall"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
)

// These are the steps at which a dispatcher dies.
const (
	never           = "never"
	afterClaim      = "after the claim"
	beforeStart     = "after the intent, before the start"
	inBatch         = "in the middle of a batch"
	afterStart      = "after the start, before it is written down"
	afterSettlement = "after it is written down"
)

// die ends the process with SIGKILL, so nothing is cleaned up.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// dyingStore is a store whose process dies at a step.
type dyingStore struct {
	sluice.Store
	step string
}

// Unwrap returns the decorated store.
func (s dyingStore) Unwrap() sluice.Store { return s.Store }

func (s dyingStore) Claim(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	claimed, err := s.Store.Claim(ctx, request)
	if s.step == afterClaim && len(claimed.Jobs) > 0 {
		die()
	}
	return claimed, err
}

func (s dyingStore) Settle(ctx context.Context, settlements []sluice.Settlement) ([]error, error) {
	errs, err := s.Store.Settle(ctx, settlements)
	if s.step == afterSettlement {
		die()
	}
	return errs, err
}

// dyingEngine is an engine whose process dies at a step.
type dyingEngine struct {
	engine.Engine
	step string
}

func (e dyingEngine) Start(ctx context.Context, target engine.Target, runs []engine.Run) []error {
	switch e.step {
	case beforeStart:
		die()
	case inBatch:
		e.Engine.Start(ctx, target, runs[:len(runs)/2])
		die()
	}
	errs := e.Engine.Start(ctx, target, runs)
	if e.step == afterStart {
		die()
	}
	return errs
}
