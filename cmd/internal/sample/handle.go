package sample

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine/local"
	"github.com/sluice-queue/sluice/flow"
	"github.com/sluice-queue/sluice/worker"
)

// body is the payload of most jobs.
type body struct {
	Account string   `json:"account,omitempty"`
	Cents   int      `json:"cents,omitempty"`
	To      string   `json:"to,omitempty"`
	Subject string   `json:"subject,omitempty"`
	URL     string   `json:"url,omitempty"`
	Row     int      `json:"row,omitempty"`
	Items   []string `json:"items,omitempty"`
}

// handle registers the work of each queue.
func (s *Shop) handle() {
	for _, one := range []struct {
		queue string
		do    worker.Handler[body]
		slots int
	}{
		{payments, pay, 6},
		{refunds, pay, 2},
		{mails, send, 4},
		{reports, report, 2},
		{renewals, quick, 4},
		{imports, importRow, 2},
		{crawls, crawl, 4},
		{ledgers, s.ledger, 2},
		{exports, quick, 2},
		{pages, page, 4},
	} {
		worker.Handle(s.worker, sluice.QueueOf[body](one.queue), one.do, worker.QueueOptions{Slots: one.slots})
	}
	local.Handle(s.engine, "ship-order", ship, worker.QueueOptions{})
}

// The errors of groups that have a note.
const (
	closedAccount = "the account %s is closed"
	noMailbox     = "550 the mailbox %s does not exist"
)

// pay fails for good at closed accounts, and for a while at a slow bank.
func pay(ctx context.Context, job *worker.Job[body]) error {
	n := share(job.ID)
	if err := pause(ctx, time.Duration(200+10*n)*time.Millisecond); err != nil {
		return err
	}
	switch {
	case n < 6:
		return worker.Permanent(fmt.Errorf(closedAccount, job.Payload.Account))
	case n < 14:
		return fmt.Errorf("the bank timed out after %d ms", 2000+n)
	case n < 24 && job.Attempt() == 1:
		return errors.New("503 from the bank, with Authorization: Bearer 2f8a1c9d7e6b5a4f3e2d1c0b9a8f7e6d")
	}
	return job.SetResult(map[string]any{"receipt": job.ID.String()[:8], "cents": job.Payload.Cents})
}

func send(ctx context.Context, job *worker.Job[body]) error {
	n := share(job.ID)
	if err := pause(ctx, time.Duration(50+2*n)*time.Millisecond); err != nil {
		return err
	}
	switch {
	case n < 4:
		return worker.Permanent(fmt.Errorf(noMailbox, job.Payload.To))
	case n < 6:
		var none []string
		_ = none[n] // a bug, as programs have them
	case n < 12 && job.Attempt() == 1:
		return errors.New("the mail server is busy")
	}
	return nil
}

func report(ctx context.Context, job *worker.Job[body]) error {
	const steps = 20
	for step := range steps {
		job.Progress(float64(step)/steps, fmt.Sprintf("page %d of %d", step+1, steps))
		if err := pause(ctx, 2*time.Second); err != nil {
			return err
		}
	}
	return job.SetResult(map[string]any{"pages": steps})
}

func quick(ctx context.Context, job *worker.Job[body]) error {
	return pause(ctx, time.Duration(20+share(job.ID))*time.Millisecond)
}

func importRow(ctx context.Context, job *worker.Job[body]) error {
	if err := pause(ctx, 1500*time.Millisecond); err != nil {
		return err
	}
	if job.Payload.Row%37 == 0 {
		return worker.Permanent(fmt.Errorf("row %d has no date", job.Payload.Row))
	}
	return nil
}

// crawl meets a host that wants to be left alone.
func crawl(ctx context.Context, job *worker.Job[body]) error {
	if err := pause(ctx, 3*time.Second); err != nil {
		return err
	}
	if job.LimitKey == "busy.example" {
		return worker.RateLimited(40 * time.Second)
	}
	return nil
}

// ledger is a node of a flow: the first lists accounts, the last sums up.
func (s *Shop) ledger(ctx context.Context, job *worker.Job[body]) error {
	if err := pause(ctx, 2*time.Second); err != nil {
		return err
	}
	if job.Labels[flow.LabelNode] == "accounts" {
		return job.SetResult([]string{"acme", "globex", "initech", "hooli", "umbrella", "wonka"})
	}
	sums, err := flow.Results[int](ctx, s.store, job.Job, "pages")
	if err != nil {
		return err
	}
	return job.SetResult(map[string]int{"pages": len(sums)})
}

func page(ctx context.Context, job *worker.Job[body]) error {
	if err := pause(ctx, time.Duration(1+share(job.ID)/20)*time.Second); err != nil {
		return err
	}
	return job.SetResult(share(job.ID))
}

// ship is a workflow of the local engine.
func ship(ctx context.Context, run *local.Run[body]) (any, error) {
	n := share(run.Job)
	if err := pause(ctx, time.Duration(4+n/5)*time.Second); err != nil {
		return nil, err
	}
	if n < 3 {
		return nil, errors.New("the warehouse has no " + run.Input.Items[0])
	}
	return map[string]any{"parcel": run.Ref, "items": len(run.Input.Items)}, nil
}
