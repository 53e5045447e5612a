// Package demo runs a wave of payments that all fall due in the same second, through both phases, while the Temporal
// server fails in the middle of it. Then it proves by SQL that nothing was lost, doubled, too early or too fast.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/payments/domain"
	"github.com/sluice-queue/sluice/apps/payments/payment"
	"github.com/sluice-queue/sluice/apps/payments/service"
	"github.com/sluice-queue/sluice/internal/temporaltest"
)

// Options are what the demo can be told.
type Options struct {
	// Payments is how many there are, and DueIn when they fall due, all in the same second.
	Payments int
	DueIn    time.Duration
	// Rate is how many start per second, five seconds' worth at once. Default: as the queue's settings say.
	Rate sluice.Rate
	// Outage is for how long the Temporal server is gone when half of the payments were started; 0: not at all.
	Outage time.Duration
	// Temporal is the address of a server to use. Default: one of the demo's own, which is built if need be. Only its own
	// is killed. Namespace is where the workflows run.
	Temporal  string
	Namespace string
	// Folder is where the database and the logs go. Default: a new one.
	Folder string
	// Limit is how long all of it may take.
	Limit time.Duration
	// Out is told what happens.
	Out io.Writer
}

// ErrBroken is the error of a demo whose proof fails.
var ErrBroken = errors.New("the proof fails")

// demo is one under way.
type demo struct {
	Options
	began   time.Time
	dueAt   time.Time
	server  *temporaltest.Server // nil: somebody else's
	service *service.Service
	domain  domain.Domain

	telling sync.Mutex // one line at a time
}

// Run runs the demo and returns its proof. A proof that fails is an ErrBroken.
func Run(ctx context.Context, options Options) (proof Proof, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, options.Limit, fmt.Errorf("the demo took longer than its limit of %s", options.Limit))
	defer cancel()
	d := &demo{Options: options, began: time.Now()}
	if err := d.makeFolder(); err != nil {
		return proof, err
	}
	if err := d.findServer(ctx); err != nil {
		return proof, err
	}
	if d.server != nil {
		defer func() { err = errors.Join(err, d.server.End()) }()
	}
	log, err := os.Create(filepath.Join(d.Folder, "demo.log"))
	if err != nil {
		return proof, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	d.service, err = service.Open(ctx, service.Options{
		DB: d.file(), Temporal: d.Temporal, Namespace: d.Namespace, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		return proof, err
	}
	defer func() { err = errors.Join(err, d.service.Close()) }()
	if err := d.setRate(ctx); err != nil {
		return proof, err
	}
	return d.wave(ctx)
}

// setRate changes the settings of the queue as an operator does: in the database, for all processes.
func (d *demo) setRate(ctx context.Context) error {
	if d.Rate.IsZero() {
		return nil
	}
	act := sluice.Act{By: "demo", Reason: "another rate was asked for"}
	_, err := d.service.Books.Client.ChangeSettings(ctx, payment.Queue, act, func(s *sluice.Settings) error {
		s.Rate, s.Batch = d.Rate, max(1, int(5*d.Rate.PerSecond()))
		s.Burst = s.Batch
		return nil
	})
	return err
}

// wave submits the payments, waits until all are done, and proves how that went.
func (d *demo) wave(ctx context.Context) (Proof, error) {
	run, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- d.service.Run(run) }()
	err := d.submit(ctx)
	if err == nil {
		err = d.watch(ctx, ended)
	}
	stop()
	if err = errors.Join(err, <-ended); err != nil {
		return Proof{}, err
	}
	proof, err := prove(ctx, d.service.Books, payment.New(d.service.Books))
	if err != nil {
		return proof, err
	}
	proof.print(d.Out, d.file())
	if !proof.Holds(d.Payments) {
		return proof, ErrBroken
	}
	return proof, nil
}

func (d *demo) file() string { return filepath.Join(d.Folder, "payments.db") }

func (d *demo) makeFolder() (err error) {
	if d.Folder != "" {
		return os.MkdirAll(d.Folder, 0o700)
	}
	d.Folder, err = os.MkdirTemp("", "sluice-payments-")
	return err
}

// findServer starts a server of the demo's own, unless another is named.
func (d *demo) findServer(ctx context.Context) (err error) {
	if d.Temporal != "" {
		if d.Outage > 0 {
			d.tell("the server at %s is not ours to kill: there will be no outage", d.Temporal)
			d.Outage = 0
		}
		return nil
	}
	d.server, err = temporaltest.Start(ctx, temporaltest.Options{Store: filepath.Join(d.Folder, "temporal.db")})
	if err != nil {
		return err
	}
	d.Temporal = d.server.Address
	d.tell("a Temporal server of our own is at %s, its file and all else in %s", d.Temporal, d.Folder)
	return nil
}

// submit takes the payments in through phase A, some at a time.
func (d *demo) submit(ctx context.Context) error {
	for _, domain := range d.service.Domains {
		if domain.Queue == payment.Queue {
			d.domain = domain
		}
	}
	d.dueAt = time.Now().Add(d.DueIn).Truncate(time.Second)
	payments, begun := d.payments(), time.Now()
	var all domain.Result
	for len(payments) > 0 {
		n := min(len(payments), domain.MaxSubmission)
		result, err := d.domain.Submit(ctx, d.service.Temporal, payments[:n])
		if err != nil {
			return err
		}
		all.Add(result, 0)
		payments = payments[n:]
	}
	if len(all.Refused) > 0 {
		return fmt.Errorf("%d payments were refused, the first because %s", len(all.Refused), all.Refused[0].Reason)
	}
	d.tell("phase A took %d payments in %.1f s; all are due at %s", d.Payments, time.Since(begun).Seconds(), d.dueAt.Format(time.TimeOnly))
	return nil
}

// payments makes them up. Their ids are of this demo alone, because a server remembers workflows of others.
func (d *demo) payments() []json.RawMessage {
	all := make([]json.RawMessage, d.Payments)
	for i := range all {
		all[i], _ = json.Marshal(payment.Request{ // what it is made of can be written
			ID: fmt.Sprintf("%x-%05d", d.began.UnixMicro(), i+1), Payer: fmt.Sprintf("payer-%02d", i%50), Payee: fmt.Sprintf("shop-%03d", i%200),
			Cents: int64(100 + i*7919%500_000), Currency: []string{"USD", "EUR"}[i%2], DueAt: d.dueAt,
		})
	}
	return all
}

func (d *demo) tell(text string, args ...any) {
	d.telling.Lock()
	defer d.telling.Unlock()
	fmt.Fprintf(d.Out, "%6.1f s  %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(text, args...))
}
