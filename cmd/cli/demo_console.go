package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/upkeep"
)

// demoConsole is the console of a demo, which runs until its end is called.
type demoConsole struct {
	url   string
	ended chan error
	end   context.CancelFunc
}

// showDemo serves the console of the demo's store.
func (a *app) showDemo(ctx context.Context, store sluice.Store, listen string) (*demoConsole, error) {
	if err := ownMachine(listen); err != nil {
		return nil, err
	}
	at, err := parseAddress(a.db)
	if err != nil {
		return nil, err
	}
	a.log.silent = true
	s := &server{app: a, flags: serveFlags{listen: listen, environment: "demo", noUpkeep: true}, at: at, log: a.events(), failed: make(chan error, 2)}
	if err := s.listen(); err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(ctx)
	c := &demoConsole{url: "http://" + s.doors[0].listener.Addr().String() + "/?window=15m", ended: make(chan error, 1), end: end}
	a.note("console: %s", c.url)
	go func() { c.ended <- s.answer(ctx, func() error { return s.work(ctx, store) }) }()
	return c, nil
}

// leave ends the console. Calling leave again is safe.
func (c *demoConsole) leave() error {
	c.end()
	err := <-c.ended
	c.ended <- nil
	return err
}

// ownMachine refuses an address that others reach, because whoever reaches the console is an admin.
func ownMachine(listen string) error {
	if at, err := listenAddress(listen); err != nil || !onLoopback(at) {
		return errors.Join(usagef("--listen %s must be an address of this machine alone, such as %s; for others, use `sluice serve`", listen, defaultListen), err)
	}
	return nil
}

// tend runs upkeep until the returned function is called.
func (d *demoRun) tend(ctx context.Context) (stop func()) {
	ctx, end := context.WithCancel(ctx)
	var tended sync.WaitGroup
	tended.Go(func() {
		_ = upkeep.New(d.store, upkeep.Options{Interval: 250 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)}).Run(ctx)
	})
	return func() {
		end()
		tended.Wait()
	}
}

// stay keeps a worker until an interrupt, so that dead payments can be redriven in the console.
func (d *demoRun) stay(ctx context.Context, c *demoConsole) error {
	d.note("the console stays at %s, and a worker with it: try to redrive the dead letters; Ctrl-C ends it", c.url)
	crew := &crewInside{run: d, logger: slog.New(slog.DiscardHandler)}
	if err := crew.start(ctx); err != nil {
		return err
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-c.ended:
		c.ended <- nil
	case err = <-crew.ended:
		crew.ended <- err
		err = fmt.Errorf("the worker ended: %w", err)
	}
	return errors.Join(err, crew.stop())
}
