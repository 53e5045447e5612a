package demo

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/worker"
)

// Settings are the settings of the demo's queue. Retries are quick and leases short, so that the
// jobs of a killed worker run again within seconds.
func Settings() sluice.Settings {
	s := sluice.DefaultSettings()
	s.Lease = 3 * time.Second
	s.RecoverInterval = 500 * time.Millisecond
	s.Backoff = sluice.Backoff{Base: 500 * time.Millisecond, Factor: 2, Max: 5 * time.Second, Jitter: 250 * time.Millisecond}
	return s
}

// NewWorker makes a worker that posts the payments of a queue into the ledger.
func NewWorker(store sluice.Store, ledger Ledger, queue string, slots int, logger *slog.Logger) *worker.Worker {
	w := worker.New(store, worker.Options{Slots: slots, Logger: logger})
	worker.Handle(w, sluice.QueueOf[Payment](queue), func(ctx context.Context, job *worker.Job[Payment]) error {
		if err := askBank(job.Payload, job.Attempt()); err != nil {
			return err
		}
		return ledger.Post(ctx, job.Claim, job.Payload)
	}, worker.QueueOptions{})
	return w
}

// askBank causes the built-in faults.
func askBank(p Payment, attempt int) error {
	switch p.Bank {
	case BankClosed:
		return worker.Permanent(errors.New("the account is closed"))
	case BankUnreachable:
		return errors.New("the bank cannot be reached")
	case BankSlowOnce:
		if attempt <= 1 {
			return errors.New("the bank timed out")
		}
	case BankSlowTwice:
		if attempt <= 2 {
			return errors.New("the bank timed out")
		}
	}
	return nil
}
