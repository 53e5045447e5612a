// Package demo runs matchers in Python, Node and Go side by side on the same queues, kills one of each in the middle, and
// proves by SQL that nothing was done twice, and nothing lost.
package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/ingredients/kitchen"
	"github.com/sluice-queue/sluice/apps/ingredients/languages"
	"github.com/sluice-queue/sluice/internal/pgtest"
)

//go:embed sql/left.sql
var leftSQL string

// Options are what the demo can be told.
type Options struct {
	// Mentions is how many there are, and Duration for how long they come in.
	Mentions int
	Duration time.Duration
	// Lease is how long a claim holds; shorter than the usual 180 s, so that the demo sees one run out.
	Lease time.Duration
	// Work is how long each job takes besides.
	Work time.Duration
	// DB is the URL of an empty PostgreSQL database. Default: a server of the demo's own, which is installed if need be.
	DB string
	// Folder is where the programs and the log go. Default: a new one, deleted afterwards.
	Folder string
	// Matcher is the command of the matcher in Go.
	Matcher []string
	// Out is told what happens.
	Out io.Writer
}

// ErrBroken is the error of a demo whose proof fails.
var ErrBroken = errors.New("the proof fails")

// demo is one under way.
type demo struct {
	Options
	began   time.Time
	url     string
	kitchen *kitchen.Kitchen
	python  languages.Program
	node    languages.Program
	log     *os.File
	made    []made
	crew    []*process
	victims []victim
	telling sync.Mutex // one line at a time
}

// Run runs the demo and returns its proof. A proof that fails is an ErrBroken.
func Run(ctx context.Context, options Options) (proof Proof, err error) {
	d := &demo{Options: options, began: time.Now(), url: options.DB, made: generate(options.Mentions)}
	if d.Folder == "" {
		if d.Folder, err = os.MkdirTemp("", "sluice-ingredients-"); err != nil {
			return proof, err
		}
		defer func() { _ = os.RemoveAll(d.Folder) }()
	} else if err := os.MkdirAll(d.Folder, 0o700); err != nil {
		return proof, err
	}
	if err := d.findPrograms(ctx); err != nil {
		return proof, err
	}
	if d.log, err = os.Create(filepath.Join(d.Folder, "demo.log")); err != nil {
		return proof, err
	}
	defer func() { err = errors.Join(err, d.log.Close()) }()
	if d.url == "" {
		cluster, err := ownServer()
		if err != nil {
			return proof, err
		}
		defer cluster.Stop()
		d.url = cluster.URL
	}
	if err := d.open(ctx); err != nil {
		return proof, err
	}
	defer func() { err = errors.Join(err, d.kitchen.Close()) }()
	return d.run(ctx)
}

func (d *demo) findPrograms(ctx context.Context) (err error) {
	if d.python, err = languages.Find(ctx, "python", d.Folder); err != nil {
		return err
	}
	d.node, err = languages.Find(ctx, "node", d.Folder)
	return err
}

// ownServer starts a PostgreSQL that ends with the demo.
func ownServer() (*pgtest.Cluster, error) {
	if err := pgtest.Install(); err != nil {
		return nil, err
	}
	return pgtest.Start(pgtest.Options{})
}

// open opens the database, which must be empty: the proof counts all that is in it.
func (d *demo) open(ctx context.Context) (err error) {
	preset := kitchen.Preset()
	preset.Lease = d.Lease
	preset.Backoff = sluice.Backoff{Base: 200 * time.Millisecond, Factor: 2, Max: 10 * time.Second, Jitter: 100 * time.Millisecond}
	if err := kitchen.Prepare(ctx, d.url, preset, kitchen.DefaultPantry()); err != nil {
		return err
	}
	if d.kitchen, err = kitchen.Open(ctx, d.url); err != nil {
		return err
	}
	var jobs int
	if err := d.kitchen.Pool().QueryRow(ctx, "select count(*) from sluice.job").Scan(&jobs); err != nil || jobs > 0 {
		return errors.Join(err, fmt.Errorf("the database has %d jobs; the demo needs an empty one", jobs), d.kitchen.Close())
	}
	return nil
}

// run has everything matched, with one process of each language killed, and proves how that went.
func (d *demo) run(ctx context.Context) (Proof, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d.Duration+3*time.Minute, errors.New("the demo took far too long"))
	defer cancel()
	err := d.startAll()
	if err == nil {
		d.tell("%d matchers in Python, Node and Go are started", len(d.crew))
		err = d.feed(ctx)
	}
	if err == nil {
		err = until(ctx, 250*time.Millisecond, func() (bool, error) { return d.finished(ctx) })
	}
	if err = errors.Join(err, d.end()); err != nil {
		return Proof{}, err
	}
	proof, err := d.prove(ctx)
	if err != nil {
		return proof, err
	}
	proof.print(d.Out)
	if !proof.Holds(d.Mentions) {
		return proof, ErrBroken
	}
	return proof, nil
}

// feed takes the mentions in: two fifths bit by bit, a third at once, during which the processes are killed, and the rest
// bit by bit.
func (d *demo) feed(ctx context.Context) error {
	burst, rest := len(d.made)*2/5, len(d.made)*3/4
	if err := d.trickle(ctx, d.made[:burst], d.Duration/2); err != nil {
		return err
	}
	if err := d.take(ctx, d.made[burst:rest]); err != nil {
		return err
	}
	d.tell("%d mentions come in at once", rest-burst)
	if err := d.killOneEach(ctx); err != nil {
		return err
	}
	return d.trickle(ctx, d.made[rest:], d.Duration/4)
}

// trickle takes mentions in, some at a time.
func (d *demo) trickle(ctx context.Context, all []made, within time.Duration) error {
	const steps = 10
	for i := range steps {
		if err := d.take(ctx, all[len(all)*i/steps:len(all)*(i+1)/steps]); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(within / steps):
		}
		if _, err := d.finished(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) take(ctx context.Context, all []made) error {
	mentions := make([]kitchen.Mention, len(all))
	for i, m := range all {
		mentions[i] = m.Mention
	}
	return d.kitchen.Take(ctx, mentions)
}

// finished tells how far things are, and reports whether no job is left.
func (d *demo) finished(ctx context.Context) (bool, error) {
	var mentions, left, python, node, inGo, held int
	if err := d.kitchen.Pool().QueryRow(ctx, leftSQL).Scan(&mentions, &left, &python, &node, &inGo, &held); err != nil {
		return false, err
	}
	d.tell("taken in %4d   unfinished %4d   decided by Python %4d, Node %4d, Go %4d   on hold %3d", mentions, left, python, node, inGo, held)
	return left == 0, nil
}

func (d *demo) tell(text string, args ...any) {
	d.telling.Lock()
	defer d.telling.Unlock()
	fmt.Fprintf(d.Out, "%6.1f s  %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(text, args...))
}
